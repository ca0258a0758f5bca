"""Questions for a numbered part of a text (§ 5, Article 12), and for statutes by their names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asked_files import index_asked

from benchmarks.answers import passages_of
from graphrag_pipeline.query import QueryEngine

_OTHER = "\n\n".join(
    f"## § {n} Ausnahmen\n\n(1) Von § 5 kann nach Nr. {n} abgewichen werden. § 5 gilt nicht.\n"
    for n in range(20, 40)
)
STEGE = (
    "# Gesetz zur Ordnung der Stege und Molen (StegSchG)\n\n## § 1 Zweck\n\nStege sind frei.\n\n"
    "## § 5 Winterlager\n\n(1) Boote liegen im Winter an Land. Der Platz wird verlost.\n\n"
    "(2) Die Gebühr beträgt 0,5 Monatsmieten.\n\n" + _OTHER
)
FAEHREN = (
    "# Fährverordnung (FährV)\n\n## § 5 Glocke\n\n(1) Die Fähre läutet vor dem Ablegen.\n\n"
    "(2) Bei Nebel läutet sie zweimal.\n\n" + _OTHER
)
BYLAWS = (
    "# Bylaws of the Mooring Club\n\n## Article 2 Members\n\nThey pay in May, see Article 12.\n\n"
    "## Article 12 Keys\n\nKeys stay with the warden. Article 2 applies.\n"
)
RULES = "# 係留規則\n\n## 第3条 鍵\n\n鍵は番人が保管する。\n\n## 第4条 火\n\n第3条の鍵は返す。\n"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    files = {"stege.md": STEGE, "faehren.md": FAEHREN, "bylaws.md": BYLAWS, "rules.md": RULES}
    yield from index_asked(files, tmp_path_factory)


@pytest.mark.parametrize("method", ["auto", "bm25"])
@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Was regelt § 5 StegSchG?", "Boote liegen im Winter an Land"),
        ("Was steht in § 5 Abs. 2 des Stegschutzgesetzes?", "0,5 Monatsmieten"),
        ("Was bestimmt § 5 der Fährverordnung?", "läutet vor dem Ablegen"),
        ("What does Article 12 of the bylaws say?", "Keys stay with the warden"),
        ("係留規則の第3条は何ですか？", "鍵は番人が保管する"),
    ],
)
def test_a_part_that_is_asked_for_by_its_number_stands_first(
    engine: QueryEngine, method: str, question: str, said: str
) -> None:
    assert said in passages_of(engine.answer(question, method).text)[0]
