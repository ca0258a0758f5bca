"""Tables as banks, offices and statistics of several countries save them, and what is asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asked_files import index_asked
from read_files import read
from test_formats import make_xlsx

from benchmarks.answers import passages_of
from graphrag_pipeline.query import QueryEngine

FILES = {
    "gemeinden.csv": "Gemeinde;Einwohner;Steuern CHF\nAarfeld;12'480;18'450'300.50\n"
    "Brunnwil;3'912;4'120'075.00\nCasteldorf;45'003;92'700'110.25\n",
    "revenue.csv": 'State,Revenue\nKerala,"₹ 2,45,67,890.00"\nGoa,"₹ 31,05,000.00"\n'
    'Punjab,"₹ 1,10,00,250.50"\n',
    "communes.csv": "Commune;Habitants;Part\nLanvern;12\u202f340;12,5\u00a0%\n"
    "Plouhec;8\u202f901;7,25\u00a0%\nOrlan;101\u202f222;80,25\u00a0%\n",
    "invoice.csv": "Work,Hours,Rate,Charge\nWelding,4,95,380\nPaint,2,41.5,83\nTar,1,20,20\n"
    ",,Subtotal,483\n,,VAT 25%,120.75\n,,Total,603.75\n",
    "shifts.csv": "Mate,Watches\nOdda Brim,12\nJorn Teal,8\nMate,Watches\nSive Marn,20\n",
    "menu.csv": "Dish,Size,Price\nStarters,,\nPea soup,S,6.5\nHerring,S,8\nMains,,\nCod,L,19.9\n",
    "visits.md": "# Lights\n\n| Year | Visitors |\n|---|---|\n| 2021 | 120 |\n| 2022 | 340 |\n"
    "| 2023 | 205 |\n",
    "landings 2023.csv": "Port,Landings\nVard,10\nHolm,20\nLund,5\n",
    "landings 2024.csv": "Port,Landings\nVard,14\nHolm,18\nLund,9\n",
    "gdp.csv": 'Country,GDP\nArland,"1,200*"\nBoria,980 [1]\nCasta,"2,400 (e)"\n* revised,\n',
    "ships.csv": "Port,السفن\nAden,١٢٠\nSalalah,٩٥\nSudan,٦٠\n",
    "iris.csv": '"Sepal","Species"\n"1",5.1,"setosa"\n"2",4.9,"setosa"\n"3",7.0,"versicolor"\n',
    "fees.csv": 'Member,Fee\nCarl Duus,"980,00"\nDina Eck,"2 010,25"\nBerit Aune,"1 200,50"\n',
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    yield from index_asked(FILES, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        (
            "Wie viele Einwohner haben alle Gemeinden zusammen?",
            "gemeinden.csv — Einwohner: 61,395 in all, in 3 records",
        ),
        ("Which Gemeinde has the fewest Einwohner?", "Brunnwil — Einwohner: 3'912"),
        (
            "What is the average revenue?",
            "revenue.csv — Revenue: ₹ 12,891,046.83 on average, in 3 records",
        ),
        (
            "How many habitants are there in total?",
            "communes.csv — Habitants: 122,463 in all, in 3 records",
        ),
        ("What is the average part?", "communes.csv — Part: 33.33\u00a0% on average, in 3 records"),
        ("How many watches in total?", "shifts.csv — Watches: 40 in all, in 3 records"),
        ("How many mates are there?", "shifts.csv — 3 records"),
        ("Which dish is the most expensive?", "Cod — Price: 19.9"),
        ("What is the average price?", "menu.csv — Price: 11.47 on average, in 3 of 5 records"),
        ("Which year had the most visitors?", "Lights — Year: 2022; Visitors: 340"),
        ("How many landings did Vard have in 2023?", "Vard — Landings: 10"),
        ("How many landings did Vard have in 2024?", "Vard — Landings: 14"),
        ("Which country has the highest GDP?", "Casta — GDP: 2,400 (e)"),
        ("What is the total GDP?", "gdp.csv — GDP: 4,580 in all, in 3 records"),
        ("What is the total of السفن?", "ships.csv — السفن: 275 in all, in 3 records"),
        ("What is the average Sepal?", "iris.csv — Sepal: 5.67 on average, in 3 records"),
        ("Who pays the highest fee?", "Dina Eck — Fee: 2 010,25"),
    ],
)
def test_what_is_asked_stands_first(asked: QueryEngine, question: str, told: str) -> None:
    assert passages_of(asked.answer(question, "bm25").text)[0] == told


@pytest.mark.parametrize(
    ("question", "never"),
    [
        ("What is the average charge?", "on average"),  # of works, or of the tax, too
        ("What is the total charge?", "in all"),  # 483, or 603.75
        ("How many dishes are there?", "records"),  # starters and mains are none
    ],
)
def test_no_figure_is_told_where_rows_are_at_odds(
    asked: QueryEngine, question: str, never: str
) -> None:
    assert never not in passages_of(asked.answer(question, "bm25").text)[0]


def test_a_pivot_table_has_the_names_of_its_second_row() -> None:
    heads = [["Sum of Amount", "Column Labels"], ["Row Labels", "Cash", "Card", "Grand Total"]]
    rows: list[list[object]] = [["North", 120, 300, 420], ["South", 50, 70, 120]]
    documents = read("a.xlsx", make_xlsx(S=[*heads, *rows])).documents
    assert [document.text for document in documents] == [
        "Sum of Amount Column Labels",
        "Row Labels: North\nCash: 120\nCard: 300\nGrand Total: 420",
        "Row Labels: South\nCash: 50\nCard: 70\nGrand Total: 120",
    ]


def test_notes_with_a_number_in_brackets_are_no_rows() -> None:
    table = "Region,Waste,Note\nNorth,120,[1]\nSouth,98,\n,,\n[1] Of two districts\n[p] = early\n"
    keys = [document.key for document in read("a.csv", table).documents]
    assert keys == ["caption", "row-1", "row-2"]


def test_text_as_excel_saves_it_has_cells_of_several_lines() -> None:
    table = 'Name\tRole\tNotes\nÅse Lind\tCaptain\t"Joined 2019\nspeaks Finnish"\nArda\tMate\tnew\n'
    documents = read("a.txt", table.encode("utf-16")).documents
    assert [d.text for d in documents] == [
        "Name: Åse Lind\nRole: Captain\nNotes: Joined 2019\nspeaks Finnish",
        "Name: Arda\nRole: Mate\nNotes: new",
    ]
