"""People, places and organisations by rule in Chinese, Japanese and scripts without capitals."""

from __future__ import annotations

import polars as pl
import pytest

from benchmarks.language_names import scores
from graphrag_pipeline.extraction.rules.cjk import find_cjk
from graphrag_pipeline.extraction.rules.nlp import NlpOptions, extract_nlp
from graphrag_pipeline.graph.resolution.names import take_apart

PERSON, GEO, ORGANIZATION = "PERSON", "GEO", "ORGANIZATION"
WITHOUT_CAPITALS = ("ar", "he", "hi", "ja", "ko", "th", "zh")


def names(text: str) -> dict[str, str]:
    chunks = pl.DataFrame({"id": ["1"], "text": [text]})
    rows = extract_nlp(chunks, NlpOptions()).entities.select("title", "type").iter_rows()
    return dict(rows)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "李国强是东海集团的董事长。李董事长出生于宁波。李國強在台北演講。東海集團在台北有分公司。"
            "国强说，东海集团会扩大。",
            {"李国强": PERSON, "李國強": PERSON, "国强": PERSON, "李董事长": PERSON,
             "东海集团": ORGANIZATION,
             "東海集團": ORGANIZATION, "台北": GEO, "宁波": GEO},
        ),
        (
            "林小雨在苏州的河川公司工作。河川公司出售船只。总经理是周文博。",
            {"林小雨": PERSON, "周文博": PERSON, "苏州": GEO, "河川公司": ORGANIZATION},
        ),
        (
            "佐伯健一は横浜の港商事で働いている。港商事は船を売る。社長は森川綾子である。",
            {"佐伯健一": PERSON, "森川綾子": PERSON, "横浜": GEO, "港商事": ORGANIZATION},
        ),
        (
            "山田太郎さんは東京の会社で働く。山田さんは医者です。",
            {"山田太郎": PERSON, "山田": PERSON, "東京": GEO},
        ),
        (
            "やまだたろうは医師である。ヤマダ電機は大きい。彼はバス会社で働く。",
            {"ヤマダ電機": ORGANIZATION, "バス": "OTHER"},
        ),
    ],
)  # fmt: skip
def test_people_places_and_firms_are_found_and_nothing_else(
    text: str, expected: dict[str, str]
) -> None:
    assert names(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "大型公司和商业公司都在缺省分区安装文档，任何一次许可都要检查。",
        "許可程式在任何平台都可以安装，周一更换内核，方法简单。",
        "関連付けは根本的な原理で、多種多様な関係性がある。一区画だけを使う。",
    ],
)
def test_common_words_that_look_like_names_are_none(text: str) -> None:
    assert [found for found in find_cjk(text) if found[2] != "CONCEPT"] == []


def test_simplified_and_traditional_signs_spell_one_name() -> None:
    simplified, traditional = (take_apart(t, ORGANIZATION) for t in ("东海集团", "東海集團"))
    assert simplified.spellings == traditional.spellings
    assert not simplified.spellings & take_apart("西海集团", ORGANIZATION).spellings


def test_particles_and_prefixes_are_no_part_of_a_name() -> None:
    assert "한지영" in names("동생 한지영은 서울에서 공부합니다.")
    assert "서울" in names("동생 한지영은 서울에서 공부합니다.")
    assert names("وقال السيد خالد العلي إنه في جدة ودبي.").keys() >= {"خالد العلي", "جدة", "دبي"}
    assert names("גברת כהן עובדת בחיפה.") == {"כהן": PERSON, "חיפה": GEO}


def test_a_korean_term_is_a_noun_without_its_particle() -> None:
    text = "새 패키지를 만들었다. 그 패키지는 크다. 큰 패키지가 좋다. 문이 열렸다. 또 열렸다."
    assert names(text) == {"패키지": "CONCEPT"}


@pytest.mark.parametrize("half", ["dev", "held"])
@pytest.mark.parametrize("language", WITHOUT_CAPITALS)
def test_most_names_found_in_a_script_without_capitals_are_right(language: str, half: str) -> None:
    by_type = scores(language, half)
    for kind in (PERSON, GEO):
        assert by_type[kind].right >= 0.84 * by_type[kind].n_found
        assert by_type[kind].right >= 0.75 * by_type[kind].n_marked


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        ("올해 주택 시장은 어렵고 국방부 장관은 쉬었다.", {"주택", "국방부"}),
        ("제2차 세계 대전이 끝난 뒤 국제 경기가 열렸다.", {"대전", "경기"}),
        ("قال الرئيس توجيهها إليهم صعب والمدينة الجديدة بعيدة.", {"توجيهها إليهم", "الجديدة"}),
        ("השופטת ציינה כי הבנק תשלם, והרחוב כבית מגורים.", {"ציינה", "בנק תשלם", "רחוב כבית"}),
        ("राष्ट्रपति चुनाव का विकास हर द्वीप में हुआ।", {"चुनाव", "विकास", "हर द्वीप"}),
        ("กาแฟของคุณหรือเปล่า การเมืองของเขาเปลี่ยนในเดือนมิถุนายนถึงสิงหาคม", {"หรือเปล่า", "นถึงสิงหาคม"}),
        ("房地产市场和贸易港口都很大，五百张底片也在。", {"房地产市", "贸易港", "张底片"}),
        ("生徒さんは友人の紹介で先物市場と街区を見た。", {"生徒", "紹介", "先物市", "街区"}),
    ],
)
def test_words_of_everyday_name_nobody_and_no_place(text: str, absent: set[str]) -> None:
    found = {title for title, kind in names(text).items() if kind in (PERSON, GEO, ORGANIZATION)}
    assert not found & absent
    assert not any(title.startswith("เมือง") for title in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("어제 강미정이 왔고 동생 준호는 갔다.", {"강미정": PERSON, "준호": PERSON}),
        ("وصل الجنرال جون بيرغوين إلى صفاقس.", {"جون بيرغوين": PERSON, "صفاقس": GEO}),
        ("ביקר ב[אוניברסיטת בן גוריון] ואז פגש את דנה ברקוביץ.",
         {"אוניברסיטת בן גוריון": ORGANIZATION, "דנה ברקוביץ": PERSON}),
        ("वह बैंक ऑफ बड़ौदा में है और रमेश पाल ने पूछा।",
         {"बैंक ऑफ बड़ौदा": ORGANIZATION, "रमेश पाल": PERSON}),
        ("ไปจังหวัดนครปฐมเปิดร้าน แล้วคุณชูชาติ มีสุข มา",
         {"จังหวัดนครปฐม": GEO, "ชูชาติ มีสุข": PERSON}),
        ("连镇江的客人也来了，唐老师在昆明市第一人民医院。",
         {"镇江": GEO, "唐老师": PERSON, "昆明市第一人民医院": ORGANIZATION}),
        ("さいたま市の内山さくらさんと弟の翔太は国土交通省へ行った。",
         {"さいたま市": GEO, "内山さくら": PERSON, "翔太": PERSON, "国土交通省": ORGANIZATION}),
    ],
)  # fmt: skip
def test_names_are_found_whole_where_no_title_leads_to_them(
    text: str, expected: dict[str, str]
) -> None:
    assert expected.items() <= names(text).items()
