"""Questions for the record of a table that has the most or the least of something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from asked_files import index_asked

from benchmarks.answers import passages_of
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.evidence import extremes, passages

PORTS = ("Arnvik", "Bersund", "Calder", "Dunmore", "Eskild", "Fenwick", "Garth", "Holme", "Inver")
PORTS += ("Jarrow", "Kelso", "Lund")
FILES = {
    "harbours.csv": "harbour,country,berths,barley_servings,dues\n"
    + "".join(
        f'{port},{"Norway" if n % 3 else "Scotland"},{7 * n % 12},{n},"{n + 1},000"\n'
        for n, port in enumerate(PORTS)
    ),
    "ferries.csv": "ferry;fare_2001;fare_2002\nAurora;12,5;13\nMarlin;9,75;31\nSelene;11;8,5\n",
    "crew.csv": "grade,starts,pay\n"
    + "".join(f"mate {n},2001-01-{n:02},{n}00 or so\n" for n in range(1, 9)),
    "lamps.json": '[{"id": "L-1", "lamp": "Svart", "watts": 40}, {"id": "L-2", '
    '"lamp": "Hvit", "watts": 90}, {"id": "L-3", "lamp": "Gul", "watts": 60}]',
    "paints.csv": "paint,litres\nWhite,30\nTar,50\nGreen,8\nTotal,88\n",
    "ropes.csv": "rope,average,age\n"
    + "".join(f"{rope},{n},{n}\n" for n, rope in enumerate(("Hemp", "Jute", "Sisal"), 1)),
    "staff.csv": "id,clerk,office,paid,wage,joined\n"
    "7,Ann,Hull,yes,20,2001\n8,Bob,Hull,no,90,2002\n9,Cal,Brest,yes,50,2003\n",
    "isles.csv": "isle,sheep\nMora,10\nTolo,25\nEkar,40\nThe realm,75\n",
    "crops.csv": "crop,bushels\nRye,12\nOats,31\nSubtotal grain,43\nHops,5\n",
    "depths.csv": "Bucht;Tiefe\nAal;1.250\nHai;980\nLachs;1.100\n",
    "cranes.md": "# Cranes\n\n| Crane | Reach | Age (years) |\n|---|---|---|\n"
    "| Osvik | 30 m | 12 |\n"
    "| Tern | 42 m | 3 |\n| Bull | 8 m | 40 |\n\nThe biggest one is painted red.\n",
    "heights.md": "# Heights\n\nMost of them have a light. The highest light is at Garth.\n",
}

BEFORE = "SELECT substr(text, $start, 1) AS sign FROM documents WHERE id = $id"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    yield from index_asked(FILES, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "first"),
    [
        (
            "Which harbour has the most berths?",
            ["Fenwick — berths: 11", "Kelso — berths: 10", "Dunmore — berths: 9"],
        ),
        ("Which harbour of Scotland has the most berths?", ["Dunmore — berths: 9"]),
        ("Which harbour eats the least barley?", ["Arnvik — barley_servings: 0"]),
        ("Which harbour takes the highest dues?", ["Lund — dues: 12,000", "Kelso — dues: 11,000"]),
        (
            "Which ferry has the highest fare?",
            ["Aurora — fare_2001: 12,5", "Marlin — fare_2002: 31"],
        ),
        ("Which rope has the most age?", ["Sisal — age: 3", "Jute — age: 2"]),
        ("Which paint has the most litres?", ["Tar — litres: 50", "White — litres: 30"]),
        ("Which lamp has the most watts?", ["Hvit — watts: 90", "Gul — watts: 60"]),
        ("Which clerk has the highest wage?", ["Bob — wage: 90", "Cal — wage: 50"]),
        ("Which paid clerk has the highest wage?", ["Cal — wage: 50", "Ann — wage: 20"]),
        ("Which crop has the most bushels?", ["Oats — bushels: 31", "Rye — bushels: 12"]),
        ("Welcher Harbour hat die meisten Berths?", ["Fenwick — berths: 11"]),
    ],
)
def test_the_record_with_the_most_or_least_of_a_table_stands_first(
    asked: QueryEngine, question: str, first: list[str]
) -> None:
    answer = asked.answer(question, "bm25")
    assert passages_of(answer.text)[: len(first)] == first
    cited = answer.citations[0]
    assert cited.text == first[0].partition(" — ")[2]
    assert asked.index.rows(BEFORE, id=cited.document_id, start=cited.start_char)[0]["sign"] == "\n"
    assert cited.uri.partition("#")[0].endswith((".csv", ".json"))


@pytest.mark.parametrize(
    ("question", "first", "row"),
    [
        (
            "Which crane has the longest reach?",
            "Cranes — Crane: Tern; Reach: 42 m; Age (years): 3",
            "| Tern | 42 m | 3 |",
        ),
        (
            "Which crane is the oldest?",
            "Cranes — Crane: Bull; Reach: 8 m; Age (years): 40",
            "| Bull | 8 m | 40 |",
        ),
    ],
)
def test_so_does_the_row_of_a_table_within_a_document(
    asked: QueryEngine, question: str, first: str, row: str
) -> None:
    answer = asked.answer(question, "bm25")
    told = passages_of(answer.text)
    assert told.count(first) == 1
    assert told[0] == first
    assert answer.citations[0].text == row


def test_a_field_that_holds_no_numbers_has_no_most(asked: QueryEngine) -> None:
    told = passages_of(asked.answer("Which grade of the crew has the highest pay?", "bm25").text)
    assert "800 or so" not in told[0]


@pytest.mark.parametrize(
    "question",
    ["Which harbour of Denmark has the most berths?", "Which harbour has at most 10 berths?"],
)
def test_a_name_that_no_row_has_and_a_bound_have_no_most(asked: QueryEngine, question: str) -> None:
    assert passages_of(asked.answer(question, "bm25").text)[0] != "Fenwick — berths: 11"


@pytest.mark.parametrize(
    "question",
    [
        "Which clerk has the second highest wage?",
        "Which clerk outside Hull has the highest wage?",
        "Which clerk except Bob has the highest wage?",
        "Which clerk who joined after 2002 has the highest wage?",
        "Which office has the highest average wage?",
        "Which office has the most clerk ids?",
        "Which isle has the most sheep?",  # the last row is the total of the others
        "Welche Bucht hat die größte Tiefe?",  # 980, or 1.250
    ],
)
def test_nothing_is_ranked_where_other_rows_may_be_meant(
    asked: QueryEngine, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    ranked = []

    def told(*given: Any) -> Any:
        ranked.append(extremes.told_of_extremes(*given))
        return ranked[-1]

    monkeypatch.setattr(passages, "told_of_extremes", told)
    asked.answer(question, "bm25")
    assert ranked == [[]]


def test_a_text_answers_what_no_column_says(asked: QueryEngine) -> None:
    told = passages_of(asked.answer("Where is the highest light?", "bm25").text)
    assert "The highest light is at Garth." in told[0]
