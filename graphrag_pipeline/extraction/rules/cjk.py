"""Names and terms in Chinese and Japanese text, which writes no spaces, by rule.

A name is found by its last characters (大学, 公司, 省) or its first (a surname before a title or a
verb of saying), and bounded on its left by characters that do not occur inside names: particles,
prepositions, punctuation. What the rules do not know is found by repetition: a string without
such characters that comes back within the text is a term.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import takewhile

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import alternatives, word_lists
from graphrag_pipeline.extraction.rules.japanese import is_japanese, japanese_names, katakana_bodies

CJK = (
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_CJK_CHARACTER = pattern_of(f"[{CJK}]")
# Most texts are in other scripts, so the patterns are compiled when one in these comes.
_compiled = cache(partial(re.compile, flags=re.M))
_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_HIRAGANA = "\u3040-\u309f"

_LISTS = word_lists("nlp_cjk.txt")
_FUNCTION = "".join(sorted(_LISTS["function"]))
_EDGE = "".join(sorted(_LISTS["edge"]))
_ORGANISATION = _LISTS["organisation"]
_PLACE = _LISTS["place"]
_EVENT = _LISTS["event"]
# Short names of countries are parts of other words too, but for those listed by hand.
_SHORTEST_COUNTRY = 3
_DOUBLE = "欧阳|歐陽|司马|司馬|诸葛|諸葛|上官|司徒|皇甫|令狐|慕容|尉迟"
_SURNAMES = "".join(sorted(set("".join(_LISTS["surname"])) - set("欧歐阳陽诸諸葛上官")))
_HONORIFIC = _LISTS["honorific"]
_OFFICE_BEFORE = _LISTS["office_before"]
_SAYING = _LISTS["saying"]
_WEAK_CUE = "".join(_LISTS["weak_cue"])
_COMMON_WORDS = _LISTS["common"]
_VERB_EDGE = "".join(_LISTS["verb_edge"])
_PUNCTUATED_TITLE = pattern_of("《([^《》\n]{1,60})》|〈([^〈〉\n]{1,60})〉|『([^『』\n]{1,40})』")
_PAPERS = ("日报", "日報", "晚报", "晚報", "晨报", "晨報", "时报", "時報", "周刊", "週刊", "新聞")
_KATAKANA = pattern_of("[\u30a1-\u30fa\u30fc\uff66-\uff9f]{2,}(?:[・·][\u30a1-\u30fa\u30fc]{2,})*")


def _public(section: str) -> frozenset[str]:
    """Return public names in the signs they are listed in and in simplified ones."""
    simplified = {pair[0]: pair[1] for pair in word_lists("han_variants.txt")["simplified"]}
    listed = word_lists("nlp_script_names.txt")[section]
    return listed | {"".join(simplified.get(sign, sign) for sign in name) for name in listed}


@cache
def _known_places() -> frozenset[str]:
    countries = word_lists("nlp_places.txt")["country_cjk"]
    return (
        _LISTS["known_place"]
        | _public("zh_place")
        | {name for name in countries if len(name) >= _SHORTEST_COUNTRY}
    )


# Some of the characters that are in no name are parts of words that are: 研究所, 华为, 成都.
_FUNCTION_HERE = (
    f"(?:[{''.join(c for c in _FUNCTION if c not in '所为為都')}]"
    "|(?<![究务務出易])所|(?<![华華])[为為]|(?<![成首])都)"
)
_BODY = f"(?:(?!{_FUNCTION_HERE})[{_HAN}])"
# A title before a name, and not the end of one word with the start of the next: 城市|长期.
_CHIEFS = alternatives(office for office in _OFFICE_BEFORE if office[-1] in "长長")
_CHIEF = f"(?:{_CHIEFS})(?![期江沙城度远遠大达達久途安])"
_LEFT_WORDS = (
    f"有(?!限)|{alternatives(_LISTS['left'])}|研究(?![所院])|建[设設](?![银銀])"
    f"|第一(?![人实實中小医醫機机汽])|{_CHIEF}"
)
# Signs that spell foreign names.
_SOUND = f"[{''.join(sorted(''.join(_LISTS['sound'])))}]"
_OFFICES = alternatives({*_OFFICE_BEFORE, "导师", "導師"})
_TRANSLITERATED = f"(?:{_OFFICES})?(?P<name>{_SOUND}{{1,6}}(?:[·・‧•]{_SOUND}{{1,6}})+)"
_SPLIT = (
    f"(?:{_LEFT_WORDS}|{_FUNCTION_HERE}|[{_HIRAGANA}]"
    f"|[0-9〇零一二三四五六七八九十]+[年月日]|[^{_HAN}])+"
)


# 宁波市, but not the first of 上海市场.
_OWN_KIND = "(?:市(?![场場民政长長区區内內中立])|省(?![长長会會内內政略出])|[县縣州区區])"
# Nor the first of a longer word: 市场, 港口, 岛屿, 镇定.
_NOT_FIRST = "(?![场場民政长長会會内內中立略出口屿嶼定芋运運岩脉脈峰羊])"


@cache
def _suffixed_name() -> re.Pattern[str]:
    return re.compile(
        f"(?P<ORGANIZATION>(?:{alternatives(_LISTS['known_body'])})(?:公司|集团|集團)?"
        f"|{_BODY}{{1,14}}?(?:{alternatives(_ORGANISATION)})+"
        f"|{_BODY}{{2,4}}(?:{alternatives(_LISTS['trade'])}))"
        f"|(?P<EVENT>{_BODY}{{1,10}}?(?:{alternatives(_EVENT)}))"
        f"|(?P<GEO>(?:{alternatives(_known_places())}){_OWN_KIND}?"
        f"|(?![该該]){_BODY}{{2,5}}?(?:{alternatives(_PLACE)}){_NOT_FIRST}"
        f"|(?<=市){_BODY}{{1,3}}?[区區])"
    )


# 若 is "if", and in many given names.
_FUNCTION_BUT_IF = _FUNCTION.replace("若", "")
_GIVEN = f"(?:(?![{_FUNCTION_BUT_IF}{_VERB_EDGE}一二三四五六七八九十次])[{_HAN}])"
_SELDOM = "".join(_LISTS["surname_seldom"])
_PLAIN = "".join(sorted(set(_SURNAMES) - _LISTS["surname_or_word"]))
_FULL_NAME = f"(?:{_DOUBLE}|[{_SURNAMES}]){_GIVEN}{{1,2}}?"
_STRONG_CUE = f"{alternatives(_HONORIFIC)}|{alternatives(_SAYING)}|[（(]|\\d{{4}}年"
_BEGINS = f"(?:(?<![{_HAN}])|(?<=[{_FUNCTION}])|(?<=年)|(?<=共同))"
_MET = f"(?:{alternatives(_LISTS['verb_before'])})"
# Signs by which a given name is told: 婷 is in hardly a word, 志 in names and words.
_NAMING = f"[{''.join(sorted(_LISTS['naming']))}]"
_IN_NAME = f"[{''.join(sorted(set(''.join(_public('zh_first')))))}]"
_NAMED = (
    f"(?:{_BEGINS}|{alternatives(_LISTS['verb_before'] | _OFFICE_BEFORE)})"
    f"(?P<name>[{_PLAIN}]{_NAMING}(?={_STRONG_CUE}|[{_FUNCTION}]|[^{_HAN}]|$)"
    f"|[{_SURNAMES}](?:{_IN_NAME}{_NAMING}|{_NAMING}{_IN_NAME})|[{_PLAIN}]{_GIVEN}{_NAMING})"
)
_GREETED = (
    f"^(?:亲爱的|親愛的|尊敬的)?(?P<name>(?![各大诸諸])[{_HAN}]{{2,4}})[，,：:]\\s*(?=[你您]好)"
)
_PERSON = f"{_BEGINS}(?P<name>{_FULL_NAME})(?:(?P<strong>(?={_STRONG_CUE}))|(?=[{_WEAK_CUE}，,]))"
_AFTER_OFFICE = (
    f"(?:{alternatives(_OFFICE_BEFORE)})(?P<name>[{_PLAIN}]{_GIVEN}{{1,2}}?|{_FULL_NAME})"
    f"(?={_STRONG_CUE}|[{_FUNCTION}]|[^{_HAN}]|$)"
)
_THREE_SIGNS = f"(?:[{_PLAIN}]{_GIVEN}{{2}}|(?:{_DOUBLE}){_GIVEN}{{1,2}})"
_AFTER_IS = f"是(?P<name>{_THREE_SIGNS})(?![{_HAN}])"
# Three signs that begin with a surname and stand alone, or before what people are, do or have.
_ALONE = (
    f"(?:(?<![{_HAN}])|{_MET})(?P<name>{_THREE_SIGNS})(?=[{_WEAK_CUE}]|{_STRONG_CUE}|[^{_HAN}]|$)"
)
# A surname of one sign is named with what is said of it: 唐老师. One of two is a name alone.
_CIVIL = f"(?:{alternatives(_LISTS['civil'])})"
_CALLED = f"(?:{_BEGINS}|{_MET})(?P<name>(?:{_DOUBLE})(?={_CIVIL})|(?!任)[{_SURNAMES}]{_CIVIL})"
_LABELLED = f"[：:] ?(?P<name>{_FULL_NAME}(?:[、，,；;] ?{_FULL_NAME})*)(?![{_HAN}])"
_MOST_BEFORE = 4
_MAX_GRAM = 8
_MIN_REPEATS = 2
_MAX_PEOPLE = 300
_REPETITION_REACH = 50_000
_BARE = _ORGANISATION | _PLACE | _EVENT | _OFFICE_BEFORE

Span = tuple[int, int]
Found = tuple[int, int, str]


def is_cjk(character: str) -> bool:
    """Say whether a character belongs to a script written without spaces (Han, kana)."""
    return bool(_CJK_CHARACTER.match(character))


def find_cjk(text: str) -> list[Found]:
    """Return (start, end, type) of names and repeated terms, without overlaps, in order."""
    if text.isascii() or not _CJK_CHARACTER.search(text):
        return []
    names: list[Found] = []
    free = bytearray(len(text))
    japanese = is_japanese(text, len(_CJK_CHARACTER.findall(text)))
    parts = list(_parts(text))
    by_rule = japanese_names(text) if japanese else _chinese(text, parts)
    bodies = katakana_bodies(text) if japanese else ()
    for candidate in (*bodies, *_titles(text), *by_rule, *_repeated(text, parts)):
        _take(candidate, free, names)
    return sorted(names)


def _chinese(text: str, parts: Iterable[Span]) -> Iterator[Found]:
    yield from _persons(text)
    yield from _suffixed(text, parts)


def _take(candidate: Found, free: bytearray, names: list[Found]) -> None:
    start, end, _ = candidate
    if not any(free[start:end]):
        free[start:end] = b"\x01" * (end - start)
        names.append(candidate)


def _titles(text: str) -> Iterator[Found]:
    for match in _PUNCTUATED_TITLE.finditer(text):
        start, end = match.span(match.lastindex or 0)
        yield start, end, "ORGANIZATION" if text.endswith(_PAPERS, start, end) else "WORK"
    for match in _compiled(_TRANSLITERATED).finditer(text):
        start, end = match.span("name")
        yield start, end, "PERSON"
    for match in _KATAKANA.finditer(text):
        kind = "GEO" if match.group() in _known_places() else "OTHER"
        yield match.start(), match.end(), kind


def _persons(text: str) -> Iterator[Found]:
    """Yield people, and every later occurrence in the text of a full name once found."""
    rules = (_AFTER_OFFICE, _ALONE, _AFTER_IS, _NAMED, _known_given())
    names = {match["name"] for rule in rules for match in _compiled(rule).finditer(text)}
    weak: Counter[str] = Counter()
    for match in _compiled(_PERSON).finditer(text):
        if match["strong"] is None:
            weak[match["name"]] += 1
        else:
            names.add(match["name"])
    often = (name for name, n in weak.items() if n >= _MIN_REPEATS)
    names |= {name for name in often if len(name) > 2 and name[0] in _PLAIN}
    names = {name for name in names if len(name) > 2 or _may_be_short(name)} | _listed_people(text)
    names = set(sorted(filter(_plausible, names))[:_MAX_PEOPLE])
    if not names:
        return
    names |= _called_by_given_name(text, names)
    for rule in (_CALLED, _GREETED):
        names |= {match["name"] for match in _compiled(rule).finditer(text)}
    longest_first = sorted(names, key=lambda name: (-len(name), name))
    for match in re.finditer("|".join(map(re.escape, longest_first)), text):
        yield match.start(), match.end(), "PERSON"


@cache
def _known_given() -> str:
    """Return the pattern of a plain surname and a frequent given name, and of kin by that name."""
    given = (name for name in _public("zh_first") if len(name) > 1)
    return f"(?P<name>[{_PLAIN}](?:{alternatives(given)}))"


def _listed_people(text: str) -> set[str]:
    """Return the people that stand behind a colon, alone or in a list."""
    lists = _compiled(_LABELLED).finditer(text)
    return {name.strip() for listed in lists for name in re.split("[、，,；;]", listed["name"])}


def _may_be_short(name: str) -> bool:
    """Say whether two signs may be a name: 高峰 by its second one, and not 高度."""
    return name[0] in _PLAIN or _compiled(_IN_NAME).match(name, 1) is not None


def _called_by_given_name(text: str, names: set[str]) -> set[str]:
    """Return the given names by which a text speaks of people, too: 国强说."""
    given = sorted(re.escape(name[1:]) for name in names if len(name) == 3)
    pattern = f"{_BEGINS}({'|'.join(given)})(?={_STRONG_CUE})"
    return set(re.findall(pattern, text)) if given else set()


_KIND_OF_BODY = f"(?:{alternatives(_LISTS['kind_of_body'])})+(?:{alternatives(_ORGANISATION)})"
_NOT_PEOPLE = f"(?:.*(?:{alternatives(_PLACE)}))$"


def _plausible(name: str) -> bool:
    return (
        name[:2] not in _COMMON_WORDS
        and name[:2] not in _known_places()
        and name[1:] not in _known_places()
        and (
            name[0] not in _SELDOM
            or _compiled(f".+{_NAMING}|.{_IN_NAME}+$").match(name) is not None
        )
        and name not in _known_places()
        and not _compiled(_NOT_PEOPLE).match(name)
        and not _compiled(_LEFT_WORDS).search(name)
    )


_TEAM = f"{_BODY}{{0,4}}?(?:{alternatives(_LISTS['team'])})(?![伍友員员长長列])"


def _suffixed(text: str, parts: Iterable[Span]) -> Iterator[Found]:
    for begin, end in parts:
        place = begin
        while match := _suffixed_name().search(text, place, end):
            start, place = match.span()
            kind = match.lastgroup or "OTHER"
            if kind == "GEO" and (known := _known_within(text, start, place)):
                place = known
            elif kind == "GEO" and (team := _compiled(_TEAM).match(text, place, end)):
                place = team.end()
                yield start, place, "ORGANIZATION"
            elif not _is_generic(match):
                yield start + _before_name(match.group(), kind), place, kind


def _known_within(text: str, start: int, end: int) -> int:
    """Return where a known place begins within an unknown one: 山东 in 下一轮山."""
    if text[start:end] in _known_places():
        return 0
    return next((n for n in range(start + 1, end) if _begins_with_place(text[n : n + 4])), 0)


def _before_name(written: str, kind: str) -> int:
    """Return how many signs stand before the known place of a body: two of 利用天津市政府."""
    begins = (n for n in range(_MOST_BEFORE) if _begins_with_place(written[n:]))
    return next(begins, 0) if kind == "ORGANIZATION" else 0


def _begins_with_place(written: str) -> bool:
    return any(written[:length] in _known_places() for length in (4, 3, 2))


def _is_generic(match: re.Match[str]) -> bool:
    """Say whether a match names a kind of thing alone: 大型公司, 分区."""
    written = match.group()
    if written in _LISTS["generic"]:
        return True
    if match.lastgroup == "GEO":
        known = written in _known_places()
        return not known and written.endswith(tuple(_LISTS["no_place_end"]))
    return bool(_compiled(_KIND_OF_BODY).fullmatch(written))


def _parts(text: str) -> Iterator[Span]:
    """Yield the stretches between particles, punctuation and verbs that cannot be in a name."""
    begin = 0
    for match in _compiled(_SPLIT).finditer(text):
        if match.start() - begin > 1:
            yield begin, match.start()
        begin = match.end()
    if len(text) - begin > 1:
        yield begin, len(text)


def _repeated(text: str, parts: Iterable[Span]) -> Iterator[Found]:
    """Yield strings that recur in the first part of the text, the longest first."""
    places: dict[str, list[int]] = {}
    for start, end in takewhile(lambda part: part[1] <= _REPETITION_REACH, parts):
        for position in range(start, end - 1):
            for stop in range(position + 2, min(end, position + _MAX_GRAM) + 1):
                places.setdefault(text[position:stop], []).append(position)
    grams = [gram for gram, starts in places.items() if len(starts) >= _MIN_REPEATS]
    for gram in sorted(grams, key=lambda gram: (-len(gram), places[gram][0])):
        if gram[0] in _EDGE or gram[-1] in _EDGE or gram in _BARE:
            continue
        for position in places[gram]:
            yield position, position + len(gram), "CONCEPT"
