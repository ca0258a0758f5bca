"""Tables drawn in plain text, lists that are tables, and what stands around tables of databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline.ingest.reading.files import read_file
from graphrag_pipeline.ingest.reading.model import ReadDocument, ReadingOptions

SHIPS = [["ship", "home port", "tons"], ["Astrid Wend", "Tromsø", "12,450"], ["Kari", "", "8,300"]]

REPORT = """\
ship         home port   tons
-----------  ---------  ------
Astrid Wend  Tromsø     12,450
Kari                     8,300

Source: port office
"""
PSQL = """\
Ships of today

    ship     | home port |  tons
-------------+-----------+--------
 Astrid Wend | Tromsø    | 12,450
 Kari        |           |  8,300
(2 rows)
"""
MYSQL = """\
+-------------+-----------+--------+
| ship        | home port | tons   |
+-------------+-----------+--------+
| Astrid Wend | Tromsø    | 12,450 |
| Kari        |           | 8,300  |
+-------------+-----------+--------+
"""
LISTED = """\
Ships
=====

.. list-table:: Of today
   :header-rows: 1

   * - ship
     - home port
     - tons
   * - Astrid Wend
     - Tromsø
     - 12,450
   * - Kari
     -
     - 8,300

After it.
"""


def document(name: str, text: str) -> ReadDocument:
    return read_file(Path(name), ReadingOptions(), data=text.encode()).documents[0]


def tables(name: str, text: str) -> list[list[list[str]]]:
    read = document(name, text)
    drawn = [read.text[b.start : b.end] for b in read.blocks if b.kind == "table"]
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in table.split("\n")]
        for table in drawn
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.txt", REPORT), ("a.txt", PSQL), ("a.log", MYSQL), ("a.rst", LISTED)],
)
def test_a_drawn_table_keeps_its_cells_apart(name: str, text: str) -> None:
    (table,) = tables(name, text)
    assert [table[0], *table[2:]] == SHIPS


@pytest.mark.parametrize(
    ("head", "rows"),
    [
        ("Objet             Quantité   Montant", ["Bouée rouge       2          48,00 €"]),
        ("Услуга          Срок     Цена", ["Ремонт насоса   2 дня    1 850,00"]),
    ],
)
def test_columns_below_a_head_are_a_table_where_figures_end_their_rows(
    head: str, rows: list[str]
) -> None:
    (table,) = tables("a.txt", "\n".join(("Facture", "", head, *rows, "", "Merci.")))
    assert [len(row) for row in table] == [3, 3, 3]
    assert not tables("a.txt", f"{head}\nUne ligne   de mots   seuls")


def test_a_text_that_excel_saves_with_tabs_is_a_table() -> None:
    wages = "Name\tTown\tWage\r\nIna Sol\tBergen\t41,200\r\nPer Lund\tOslo\t39,800\r\n"
    rows = read_file(Path("wages.txt"), ReadingOptions(), data=wages.encode("utf-16")).documents
    assert [row.text for row in rows] == [
        "Name: Ina Sol\nTown: Bergen\nWage: 41,200",
        "Name: Per Lund\nTown: Oslo\nWage: 39,800",
    ]
    verses = "Gen\t1\tIn the beginning it was so.\nGen\t2\tThen it was.\nGen\t3\tMore of it.\n"
    (text,) = read_file(Path("verses.txt"), ReadingOptions(), data=verses.encode()).documents
    assert text.text == verses.strip()


def test_what_stands_around_a_drawn_table_stays() -> None:
    assert document("a.txt", REPORT).text.endswith("\n\nSource: port office")
    assert document("a.txt", PSQL).text.startswith("Ships of today\n")
    assert document("a.txt", PSQL).text.endswith("\n\n(2 rows)")
    assert document("a.rst", LISTED).text.endswith("\nAfter it.")


@pytest.mark.parametrize(
    "text",
    [
        "A title of words\n=== ====\nThis line does not keep to the columns.",
        "--- ---\nno head above it",
        "one two\n--- ---\n",
        "The answer\n----------\nis prose below a heading, and so it stays as it was.",
        "-- \nIda Brandt",
        "+---+",
    ],
)
def test_lines_of_dashes_draw_no_table_by_themselves(text: str) -> None:
    assert document("a.txt", text).text == text.strip()


def test_a_bar_within_a_cell_of_a_grid_is_no_edge() -> None:
    grid = "+----+-------+\n| id | who   |\n+----+-------+\n| 2  | I | L |\n+----+-------+\n"
    assert "| 2 | I \\| L |" in document("a.txt", grid).text


def test_a_grid_of_restructured_text_has_rows_of_several_lines() -> None:
    grid = (
        "+-----+-----+\n| a   | b   |\n+=====+=====+\n| one | x   |\n| two |     |\n+-----+-----+\n"
    )
    (table,) = tables("a.rst", grid)
    assert table[2] == ["one two", "x"]


def test_null_of_a_database_is_no_value_and_what_stands_above_has_no_quotes() -> None:
    ledger = (
        '"Statement";"Account 12"\n"Period:";"January"\n\n'
        '"day";"payee";"amount"\n"2026-01-02";"Ida Brandt";"-84,00"\n"2026-01-03";\\N;"9,00"\n'
    )
    caption, first, second = read_file(
        Path("a.csv"), ReadingOptions(), data=ledger.encode()
    ).documents
    assert caption.text == "Statement Account 12\nPeriod: January"
    assert "payee: Ida Brandt" in first.text
    assert "payee" not in second.text
