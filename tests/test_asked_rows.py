"""Questions that a row of a table answers, or one field of a record that others tell apart."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asked_files import index_asked

from benchmarks.answers import passages_of
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.index import Index
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.evidence.asked_figures import is_within_bounds
from graphrag_pipeline.query.question import AnalysedQuestion

SHIPS = """# Ships of the harbour

The harbour master keeps this list.

| ship | country | status |
|------|---------|--------|
| Astrid | Norway | docked |
| Belle | France | at sea |
| Kestrel \\| Tern | Scotland | repaired |
"""
ORDERS = """order,customer,item,status
1001,Baltor Freight,rope,shipped
1002,Cafe Lumen,lamp oil,shipped
1003,Varde Shipping,anchor,open
1004,Holm & Co,sail cloth,shipped
"""
FERRIES = """Ferry,Flag,Launched,Owner,Length (m),Fare
Aurora,Norway,1998,Elvik Lines,112,"1.500,00"
Selene,Greece,2004,Hellas Lines,140,900
Marlin,Denmark,2011-05-01,Borg & Sons,86,"1.050,00"
"""
ISSUES = """Summary,Issue key,Status,Assignee,Reporter
Checkout fails with empty basket,SHOP-412,Open,Petra Novak,Luis Ortega
Add a second way to pay,SHOP-413,Done,Ian Moss,Petra Novak
"""
INVOICES = """invoice_no,supplier,month,amount,paid
7001,Karlsen GmbH,March 2024,420.00,2024-04-02
7002,Bolt AG,March 2024,99.50,2024-04-03
7003,Karlsen GmbH,April 2024,377.00,2024-05-02
"""
BERTHS = """<html><body><h1>Berths</h1><table>
<tr><th colspan=2>Place</th><th colspan=2>Depth (m)</th></tr>
<tr><th>quay</th><th>berth</th><th>low</th><th>high</th></tr>
<tr><td>Quay 4</td><td>Alfa</td><td>7.2</td><td>9.1</td></tr>
<tr><td>Quay 5</td><td>Bravo</td><td>6.0</td><td>8.0</td></tr></table></body></html>"""


@pytest.fixture(scope="module")
def asked(tmp_path_factory) -> Iterator[QueryEngine]:
    long = "".join(f"| Boat {n} | Land {n} | moored |\n" for n in range(400))
    files = {
        **{"ships.md": SHIPS, "orders.csv": ORDERS, "ferries.csv": FERRIES, "berths.html": BERTHS},
        **{"issues.csv": ISSUES, "invoices.csv": INVOICES},
        "boats.md": f"# Boats\n\n| boat | land | state |\n|---|---|---|\n{long}",
    }
    yield from index_asked(files, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        (
            "Which ship comes from Norway?",
            "Ships of the harbour — ship: Astrid; country: Norway; status: docked",
        ),
        (
            "Which ship is repaired?",
            "Ships of the harbour — ship: Kestrel | Tern; country: Scotland; status: repaired",
        ),
        (
            "How deep is Quay 5 at low water?",
            "Berths — Place quay: Quay 5; Place berth: Bravo; Depth (m) low: 6.0; "
            "Depth (m) high: 8.0",
        ),
        ("What is the status of order 1003?", "Varde Shipping — status: open"),
        ("How long is the Marlin?", "Marlin — Length (m): 86"),
        ("Who owns the Marlin?", "Marlin — Owner: Borg & Sons"),
        ("When was the Selene launched?", "Selene — Launched: 2004"),
        ("What is the status of the order of Cafe Lumen?", "Cafe Lumen — status: shipped"),
        (
            "Who is assigned SHOP-412?",
            "Checkout fails with empty basket — Assignee: Petra Novak",
        ),
        ("Who reported SHOP-413?", "Add a second way to pay — Reporter: Petra Novak"),
        (
            "Payment of the invoice of Karlsen in March",
            "Invoices: 7001 — paid: 2024-04-02",
        ),
        ("Payment of the invoice of Karlsen in April", "Invoices: 7003 — paid: 2024-05-02"),
    ],
)
def test_what_is_asked_for_stands_first(asked: QueryEngine, question: str, told: str) -> None:
    assert passages_of(asked.answer(question).text)[0] == told


def test_a_row_is_quoted_by_itself_with_its_head_however_far_above(asked: QueryEngine) -> None:
    answer = asked.answer("In which land is Boat 377?")
    assert answer.citations[0].text == "| Boat 377 | Land 377 | moored |"
    assert passages_of(answer.text)[0] == "Boats — boat: Boat 377; land: Land 377; state: moored"


def test_of_two_long_tables_each_has_its_own_head(tmp_path) -> None:
    (tmp_path / "docs").mkdir()
    rows = [f"| Buoy {n} | {n}.5 |\n" for n in range(200)]
    crews = [f"| Skipper {n} | Lugger {n} | ashore |\n" for n in range(200)]
    tables = (
        f"| buoy | depth |\n|---|---|\n{''.join(rows)}\n"
        f"| who | vessel | place |\n|---|---|---|\n{''.join(crews)}\n"
        f"| Skipper 900 | Lugger 900 | afloat |\n"
    )
    (tmp_path / "docs" / "a.md").write_text(f"# Lists\n\n{tables}")
    index = Index(Settings(home=str(tmp_path / "home")))
    index.update(tmp_path / "docs")
    answer = index.answer("Where is the vessel Lugger 177?")
    assert "who: Skipper 177; vessel: Lugger 177; place: ashore" in passages_of(answer.text)[0]
    answer = index.answer("Where is Skipper 900?")
    assert "| Skipper 900 | Lugger 900 | afloat |" in passages_of(answer.text)[0]


def test_a_row_of_many_dashes_holds_up_no_question(tmp_path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(f"{SHIPS}| {'-' * 500}x | Norway | lost |\n")
    index = Index(Settings(home=str(tmp_path / "home")))
    index.update(tmp_path / "docs")
    answer = index.answer("Which ship of Norway is lost?")
    assert "country: Norway; status: lost" in passages_of(answer.text)[0]


@pytest.mark.parametrize(
    ("question", "ships"),
    [
        ("Which ferries have a length over 100 m?", {"Aurora", "Selene"}),
        ("Which ferries have a length of at most 112 m?", {"Aurora", "Marlin"}),
        ("Which ferries were launched after 2000?", {"Selene", "Marlin"}),
        ("Which ferries were launched before 2004?", {"Aurora"}),
        ("Which ferries have a fare of more than 1,000?", {"Aurora", "Marlin"}),
        ("Which ferries have a fare of no more than 1,000?", {"Selene"}),
        ("Welche Fähren haben eine Länge (length) unter 100 m?", {"Marlin"}),
    ],
)
def test_rows_within_the_bounds_of_a_question_stand_first(
    asked: QueryEngine, question: str, ships: set[str]
) -> None:
    first = passages_of(asked.answer(question).text)[: len(ships)]
    assert {line.partition(" — ")[0] for line in first} == ships


@pytest.mark.parametrize(
    ("question", "value", "is_within"),
    [
        ("Is it longer than 1.2 m?", "1,3", True),
        ("Is it longer than 1.2 m?", "1,1", False),
        ("Is it under 1,000,000?", "999 999", True),
        ("Was it built since 1960?", "3.5.1959", False),
        ("Was it built until 1960?", "3.5.1960", True),
        ("Has it more than 2 million?", "1", True),
        ("Was it made before 2 May?", "1998", True),
        ("Was it made before 2 May?", "none", True),
        ("Is it longer than that?", "1", True),
    ],
)
def test_bounds_leave_out_figures_beyond_them(question: str, value: str, is_within: bool) -> None:
    assert is_within_bounds(AnalysedQuestion.of(question), value) is is_within
