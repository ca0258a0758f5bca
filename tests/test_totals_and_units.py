"""Rows that add up others are no entities, and neither are money and measures."""

from __future__ import annotations

from pathlib import Path

import pytest
from read_files import read

from conftest import build_graph
from graphrag_pipeline.extraction.rules.nlp import names_in


def graph_of(folder: Path, files: dict[str, str]) -> tuple[set[str], set[frozenset[str]]]:
    with build_graph(folder, files).store.read() as con:
        rows = con.execute("SELECT lower(title) FROM entities").fetchall()
        pairs = con.execute("SELECT lower(source), lower(target) FROM relationships").fetchall()
    titles = {str(row[0]) for row in rows}
    return titles, {frozenset(map(str, pair)) for pair in pairs}


TOTALS = ("Total", "Summe", "Insgesamt:", "TOTAAL", "Totale generale", "I alt", "**Razem**")


def test_a_row_that_adds_up_the_others_is_no_entity(tmp_path: Path):
    files = {}
    for total in TOTALS:
        table = f"Port,Firm,Boats\nEmden,Baltor Freight,120\nLeer,Onno Lines,100\n{total},,220\n"
        rows = "".join(f"| {line.replace(',', ' | ')} |\n" for line in table.splitlines()[1:])
        page = f"# Boats\n\n| Port | Firm | Boats |\n| --- | --- | --- |\n{rows}"
        files |= {f"{len(files)}.csv": table, f"{len(files)}.md": page}
    titles, pairs = graph_of(tmp_path, files)
    assert {"emden", "baltor freight", "leer", "onno lines"} <= titles
    assert frozenset(("emden", "baltor freight")) in pairs
    assert titles.isdisjoint(total.strip("*:").lower() for total in TOTALS)


def test_a_total_within_a_name_is_one(tmp_path: Path):
    titles, _ = graph_of(tmp_path, {"a.csv": "Firm,Town\nTotal Marine,Emden\nSum Tech,Leer\n"})
    assert {"total marine", "sum tech"} <= titles


def test_units_in_columns_are_values_and_no_entities(tmp_path: Path):
    table = (
        "Region,Manager,Currency,Unit,Month\nNordkap,Ida Brandt,NOK,kg,May\n"
        "Vestland,Ole Berg,Euro,tons,June\nSunnfjord,Tor Dahl,NOK,kg,May\n"
    )
    assert read("a.csv", table).documents[0].metadata["Currency"] == "NOK"
    titles, pairs = graph_of(tmp_path, {"a.csv": table})
    assert titles == {"nordkap", "ida brandt", "vestland", "ole berg", "sunnfjord", "tor dahl"}
    assert frozenset(("vestland", "ole berg")) in pairs


def test_a_table_of_currencies_is_about_them(tmp_path: Path):
    table = "currency,bank\nEuro,Bank of Emden\nKrone,Bank of Bergen\n"
    assert graph_of(tmp_path, {"a.csv": table})[1] == {
        frozenset(("euro", "bank of emden")),
        frozenset(("krone", "bank of bergen")),
    }


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("They paid 300 Euro and USD 20 to Ida Holm.", ["Ida Holm"]),
        ("Sie zahlte Ida Holm 30 Pfund und 1.200 Euro.", ["Ida Holm"]),
        ("The Euro Tunnel Company paid Ida Holm.", ["Euro Tunnel Company", "Ida Holm"]),
        ("Ida Holm likes Mark Pound.", ["Ida Holm", "Mark Pound"]),
    ],
)
def test_money_is_no_name_in_a_text(text: str, names: list[str]):
    assert names_in(text) == names
