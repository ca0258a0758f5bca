"""Names and terms in Chinese and Japanese text, which writes no spaces, by rule.

A name is found by its last characters (大学, 公司, 省) or its first (a surname before a title or a
verb of saying), and bounded on its left by characters that do not occur inside names: particles,
prepositions, punctuation. What the rules do not know is found by repetition: a string without
such characters that comes back within the text is a term.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

CJK = (
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_CJK_CHARACTER = re.compile(f"[{CJK}]")
_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_HIRAGANA = "\u3040-\u309f"

_FUNCTION = (
    "的了是在和與与及或而也都就又把被让讓给給对對向从從由于於以為为因但如若则則并且还還已曾将將"
    "要应應这這那此其之所他她它我你您们們吗嗎呢吧啊着著很更最太不没沒个個些每各某什么麼谁誰怎至到"
    "即使比跟往去来來说說称稱问問"
)
_EDGE = (
    "上下中里裡内內外前后後间間时時有会會自同名位道年月"
    "日等该該无無可过過得地大小多少新一二三两兩几幾"
)
_ORGANISATION = (
    "股份有限公司 有限公司 公司 集团 集團 大学 大學 学院 "
    "學院 研究所 研究院 实验室 實驗室 银行 銀行 "
    "委员会 委員會 科学院 科學院 中学 中學 小学 小學 医院 "
    "醫院 出版社 协会 協會 学会 學會 基金会 基金會 "
    "博物馆 博物館 图书馆 圖書館 法院 检察院 政府 工厂 工廠 报社 報社 日报 日報 电视台 電視臺 "
    "联盟 聯盟 俱乐部 俱樂部 国会 國會 议会 議會 株式会社 会社 財団 新聞社 新聞"
)
_PLACE = (
    "自治区 自治區 特别行政区 特別行政區 共和国 共和國 王国 "
    "王國 省 市 县 縣 区 區 州 镇 鎮 乡 鄉 村 河 "
    "江 湖 山 岛 島 港 海峡 海峽 半岛 半島 高原 平原 盆地 "
    "沙漠 机场 機場 车站 車站 大桥 大橋 广场 廣場 "
    "寺 県 都 府 町 駅"
)
_EVENT = (
    "战争 戰爭 战役 戰役 革命 起义 起義 运动会 運動會 奥运会 奧運會 博览会 博覽會 会议 "
    "會議 条约 條約"
)
_KNOWN_PLACES = (
    "中国 中國 美国 美國 英国 英國 法国 法國 德国 德國 日本 韩国 韓國 俄罗斯 俄羅斯 印度 加拿大 "
    "澳大利亚 澳洲 意大利 西班牙 越南 泰国 新加坡 台湾 "
    "臺灣 香港 澳门 澳門 北京 上海 天津 重庆 重慶 "
    "广州 廣州 深圳 南京 杭州 成都 武汉 武漢 西安 台北 "
    "臺北 东京 東京 大阪 京都 纽约 紐約 伦敦 倫敦 "
    "巴黎 柏林 华盛顿 華盛頓 莫斯科 欧洲 歐洲 亚洲 亞洲 非洲 长江 長江 黄河 黃河"
)
_SURNAMES = (
    "欧阳歐陽司马司馬诸葛諸葛上官"
    "王李张張刘劉陈陳杨楊赵趙黄黃周吴吳徐孙孫胡朱高林何"
    "郭马馬罗羅梁宋郑鄭谢謝韩韓唐冯馮于董萧蕭程曹袁邓鄧"
    "许許傅沈曾彭吕呂苏蘇卢盧蒋蔣蔡贾賈丁魏薛叶葉阎閻"
    "余潘杜戴夏钟鐘汪田任姜范方石姚谭譚廖邹鄒熊金陆陸"
    "郝孔白崔康毛邱秦江史顾顧侯邵孟龙龍万萬段雷钱錢汤湯尹黎易常武乔喬贺賀赖賴龚龔文鲁魯"
)
_HONORIFIC = (
    "先生 女士 小姐 教授 博士 院士 老师 老師 医生 醫生 总统 "
    "總統 主席 总理 總理 部长 部長 省长 省長 市长 "
    "市長 校长 校長 院长 院長 经理 經理 总裁 總裁 董事长 "
    "董事長 将军 將軍 同志 记者 記者 导演 導演 さん 氏"
)
_OFFICE_BEFORE = (
    "教授 博士 院士 主席 总统 總統 总理 總理 部长 部長 市长 "
    "市長 校长 校長 院长 院長 总裁 總裁 董事长 董事長 "
    "创始人 創始人 作家 诗人 詩人 科学家 科學家 记者 記者 "
    "导演 導演 工程师 工程師 经理 經理 首席执行官"
)
_SAYING = (
    "说 說 表示 认为 認為 指出 称 稱 宣布 强调 強調 出生 毕业 畢業 创立 創立 创办 創辦 担任 擔任 "
    "加入 获得 獲得 回答 去世 发现 發現 发表 發表 访问 "
    "訪問 提出 设计 設計 主持 来到 來到 回到 告诉 告訴"
)
_WEAK_CUE = "和与與在于於是的曾从從则則又也、"
_COMMON = (
    "方法 方面 方式 方向 方案 文化 文学 文章 文明 文件 文字 高度 高级 高速 "
    "高等 金属 金融 白色 石油 石头 万一 黄金 黄色 江河 周围 周年 任务 常常 "
    "常见 程序 程度 马上 金额 安全 雷达 水平 孔子 孟子 汤药 史料 史学 江山 "
    "段落 江湖 林业 高山 田地 汪洋 龙头 高峰 高潮 文献 方程 谢谢 许多 万物 "
    "于是 文學 文獻 金屬 黃金 黃色 許多 謝謝 萬物 萬一 馬上 任務 常見 周圍 "
    "高級 "
)
_COMMON_WORDS = frozenset(_COMMON.split())
_VERB_EDGE = "说說称稱问問写寫去来來出生任职職位于於"
_PUNCTUATED_TITLE = re.compile("《([^《》\n]{1,60})》|〈([^〈〉\n]{1,60})〉|『([^『』\n]{1,40})』")
_KATAKANA = re.compile("[\u30a1-\u30fa\u30fc\uff66-\uff9f]{2,}(?:[・·][\u30a1-\u30fa\u30fc]{2,})*")


def _alternatives(words: str) -> str:
    return "|".join(sorted(words.split(), key=lambda word: (-len(word), word)))


_BODY = f"(?:(?![{_FUNCTION}])[{_HAN}])"
_LEFT_WORDS = (
    "后来|後來|导师|導師|共同|继续|繼續|董事长|董事長|位于|位於|前往|来自|來自|通过|通過|"
    "参加|參加|进入|進入|加入|担任|擔任|毕业|畢業|就读|就讀|创办|創辦|创立|創立|成立|出生|"
    "访问|訪問|离开|離開|考入|回到|来到|來到|宣布|表示|任教|发生|發生|以及|第一|合作|收购|"
    "收購|研究(?![所院])|举行|舉行|教授|博士|先生|女士|主席|总统|總統"
)
_TRANSLITERATED = re.compile(
    f"(?:{_alternatives(_OFFICE_BEFORE)}|导师|導師)?(?P<name>{_BODY}{{1,6}}(?:[·・‧]{_BODY}{{1,6}})+)"
)
_SPLIT = re.compile(
    f"(?:{_LEFT_WORDS}|[{_FUNCTION}{_HIRAGANA}]|[0-9〇零一二三四五六七八九十]+[年月日]|[^{_HAN}])+"
)
_SUFFIXED = re.compile(
    f"(?P<ORGANIZATION>{_BODY}{{1,14}}?(?:{_alternatives(_ORGANISATION)})+)"
    f"|(?P<EVENT>{_BODY}{{1,10}}?(?:{_alternatives(_EVENT)}))"
    f"|(?P<GEO>{_alternatives(_KNOWN_PLACES)}|{_BODY}{{1,6}}?(?:{_alternatives(_PLACE)}))"
)
_GIVEN = f"(?:(?![{_FUNCTION}{_VERB_EDGE}])[{_HAN}])"
_FULL_NAME = f"(?:欧阳|歐陽|司马|司馬|诸葛|諸葛|上官|[{_SURNAMES}]){_GIVEN}{{1,2}}?"
_STRONG_CUE = f"{_alternatives(_HONORIFIC)}|{_alternatives(_SAYING)}|[（(]|\\d{{4}}年"
_PERSON = re.compile(
    f"(?:(?<![{_HAN}])|(?<=[{_FUNCTION}])|(?<=年)|(?<=共同))"
    f"(?P<name>{_FULL_NAME})(?:(?P<strong>(?={_STRONG_CUE}))|(?=[{_WEAK_CUE}，,]))"
)
_AFTER_OFFICE = re.compile(
    f"(?:{_alternatives(_OFFICE_BEFORE)})(?P<name>{_FULL_NAME})"
    f"(?={_STRONG_CUE}|[{_FUNCTION}]|[^{_HAN}]|$)"
)
_MAX_GRAM = 8
_MIN_REPEATS = 2
_MAX_PEOPLE = 300
_REPETITION_REACH = 50_000
_BARE = frozenset(f"{_ORGANISATION} {_PLACE} {_EVENT} {_OFFICE_BEFORE}".split())

Found = tuple[int, int, str]


def is_cjk(character: str) -> bool:
    """Say whether a character belongs to a script written without spaces (Han, kana)."""
    return bool(_CJK_CHARACTER.match(character))


def find_cjk(text: str) -> list[Found]:
    """Return (start, end, type) of names and repeated terms, without overlaps, in order."""
    if not _CJK_CHARACTER.search(text):
        return []
    taken: list[Found] = []
    free = bytearray(len(text))
    for found in (*_titles(text), *_persons(text), *_suffixed(text), *_repeated(text)):
        _take(found, free, taken)
    return sorted(taken)


def _take(found: Found, free: bytearray, taken: list[Found]) -> None:
    start, end, _ = found
    if not any(free[start:end]):
        free[start:end] = b"\x01" * (end - start)
        taken.append(found)


def _titles(text: str) -> Iterator[Found]:
    for match in _PUNCTUATED_TITLE.finditer(text):
        start, end = match.span(match.lastindex or 0)
        yield start, end, "WORK"
    for match in _TRANSLITERATED.finditer(text):
        start, end = match.span("name")
        yield start, end, "PERSON"
    for match in _KATAKANA.finditer(text):
        yield match.start(), match.end(), "OTHER"


def _persons(text: str) -> Iterator[Found]:
    """Yield people, and every later occurrence in the text of a full name once found."""
    names = {match["name"] for match in _AFTER_OFFICE.finditer(text)}
    weak: Counter[str] = Counter()
    for match in _PERSON.finditer(text):
        if match["strong"] is None:
            weak[match["name"]] += 1
        else:
            names.add(match["name"])
    names |= {name for name, count in weak.items() if count >= _MIN_REPEATS}
    names = set(sorted(filter(_plausible, names))[:_MAX_PEOPLE])
    if not names:
        return
    ordered = sorted(names, key=lambda name: (-len(name), name))
    for match in re.finditer("|".join(map(re.escape, ordered)), text):
        yield match.start(), match.end(), "PERSON"


_NOT_PEOPLE = re.compile(
    f"(?:{_alternatives(_KNOWN_PLACES)}|{_alternatives(_PLACE)}|.*(?:{_alternatives(_PLACE)}))$"
)


def _plausible(name: str) -> bool:
    return name not in _COMMON_WORDS and not _NOT_PEOPLE.match(name) and not _LEFT.search(name)


_LEFT = re.compile(_LEFT_WORDS)


def _suffixed(text: str) -> Iterator[Found]:
    for part in _parts(text):
        start, end = part
        for match in _SUFFIXED.finditer(text, start, end):
            yield match.start(), match.end(), match.lastgroup or "OTHER"


def _parts(text: str) -> Iterator[tuple[int, int]]:
    """Yield the stretches between particles, punctuation and verbs that cannot be in a name."""
    begin = 0
    for match in _SPLIT.finditer(text):
        if match.start() - begin > 1:
            yield begin, match.start()
        begin = match.end()
    if len(text) - begin > 1:
        yield begin, len(text)


def _repeated(text: str) -> Iterator[Found]:
    """Yield strings that recur in the first part of the text, the longest first."""
    places: dict[str, list[int]] = {}
    for start, end in _parts(text[:_REPETITION_REACH]):
        for position in range(start, end - 1):
            for stop in range(position + 2, min(end, position + _MAX_GRAM) + 1):
                places.setdefault(text[position:stop], []).append(position)
    grams = [gram for gram, found in places.items() if len(found) >= _MIN_REPEATS]
    for gram in sorted(grams, key=lambda gram: (-len(gram), places[gram][0])):
        if gram[0] in _EDGE or gram[-1] in _EDGE or gram in _BARE:
            continue
        for position in places[gram]:
            yield position, position + len(gram), "CONCEPT"
