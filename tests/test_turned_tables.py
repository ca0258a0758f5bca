"""Tables on their side, forms, workbooks as XML, tables drawn by databases, dates, comments."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

import pytest
from asked_files import index_asked
from openpyxl import Workbook
from openpyxl.comments import Comment
from read_files import read

from benchmarks.answers import passages_of
from graphrag_pipeline.core.turned_tables import turned
from graphrag_pipeline.query import QueryEngine

WORKBOOK = """<?xml version="1.0"?>
<?mso-application progid="Excel.Sheet"?>
<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"
xmlns:ss="urn:schemas-microsoft-com:office:spreadsheet"
xmlns:html="http://www.w3.org/TR/REC-html40">
<Styles>
<Style ss:ID="s23"><NumberFormat ss:Format="0%"/></Style>
</Styles>
<Worksheet ss:Name="Boats">
<Table ss:ExpandedColumnCount="5" ss:ExpandedRowCount="6">
<Row><Cell ss:MergeAcross="4"><Data ss:Type="String">Fleet of 2009</Data></Cell></Row>
<Row ss:StyleID="s21"><Cell><Data ss:Type="String">Boat</Data></Cell>
<Cell><Data ss:Type="String">Built</Data></Cell>
<Cell><Data ss:Type="String">Length (m)</Data></Cell>
<Cell><Data ss:Type="String">Share</Data></Cell>
<Cell><Data ss:Type="String">Bought</Data></Cell></Row>
<Row><Cell><Data ss:Type="String">Sula</Data></Cell>
<Cell><Data ss:Type="Number">1987</Data></Cell>
<Cell><Data ss:Type="Number">12.5</Data></Cell>
<Cell ss:StyleID="s23"><Data ss:Type="Number">0.25</Data></Cell>
<Cell ss:StyleID="s22"><Data ss:Type="DateTime">1999-05-03T00:00:00.000</Data></Cell></Row>
<Row><Cell><Data ss:Type="String">Terne</Data></Cell>
<Cell ss:Index="3"><Data ss:Type="Number">9.25</Data></Cell>
<Cell ss:StyleID="s23"><Data ss:Type="Number">0.5</Data>
<Comment ss:Author="Petra Holm">
<ss:Data xmlns="http://www.w3.org/TR/REC-html40"><B>Petra Holm:</B>
<Font>&#10;Shared with the harbour office</Font></ss:Data></Comment>
</Cell>
<Cell ss:StyleID="s22"><Data ss:Type="DateTime">2003-07-21T00:00:00.000</Data></Cell></Row>
<Row ss:Index="6"><Cell><ss:Data ss:Type="String"><B>Alke</B></ss:Data></Cell>
<Cell><Data ss:Type="Number">2001</Data></Cell>
<Cell ss:Formula="=RC[-1]/100"><Data ss:Type="Number">20.01</Data></Cell>
<Cell ss:StyleID="s23"><Data ss:Type="Number">0.25</Data></Cell>
<Cell ss:StyleID="s22"><Data ss:Type="DateTime">2008-01-10T00:00:00.000</Data></Cell></Row>
</Table>
</Worksheet>
</Workbook>
"""
FILES = {
    "models.csv": "Model,Aria 10,Borea 20,Cirrus 30\nPrice,10.50,12.00,9.80\n"
    "Weight (kg),1.2,1.5,0.9\nColour,red,blue,green\n",
    "invoice.csv": "Name,Ilse Brandt\nInvoice number,2024-0193\nDate,2024-03-14\n"
    "Total,1249.50\nCurrency,EUR\nDue,2024-04-13\n",
    "cars.md": "| Car | Aro | Bex |\n|---|---|---|\n| Seats | 4 | 5 |\n| Fuel | gas | oil |"
    "\n| Doors | 3 | 5 |\n",
    "fleet.xml": WORKBOOK,
    "crew.xls": WORKBOOK.replace("Boats", "Ships").replace("Boat<", "Ship<"),
    "duck.txt": """D select * from quays;
┌─────────┬────────┐
│  quay   │ depth  │
│ varchar │ double │
├─────────┼────────┤
│ East    │    4.5 │
│ West    │    6.2 │
│ Old     │    3.1 │
└─────────┴────────┘
""",
    "psql.txt": """harbour=# select * from cranes;
-[ RECORD 1 ]---------
crane    | North
capacity | 40
-[ RECORD 2 ]---------
crane    | South
capacity | 25
-[ RECORD 3 ]---------
crane    | Old
capacity | 12
""",
    "pilots.txt": """*************************** 1. row ***************************
   pilot: Arne Foss
 licence: 7712
*************************** 2. row ***************************
   pilot: Tora Nes
 licence: 8123
2 rows in set (0.00 sec)
""",
    "members.csv": "Member,Joined,Left\nAnna Rey,2019-04-02,2023-01-01\nBo Lind,2012-11-30,\n"
    "Cy Dahl,2021-01-15,2022-06-30\nDi Moe,1998-07-09,2010-02-02\n",
    "orders.csv": "Order,Placed\nA1,12/31/2023\nA2,1/15/2024\nA3,11/02/2023\n",
    "trips.csv": "Trip,Sailed\nT1,3/4/2024\nT2,5/1/2024\nT3,2/9/2023\n",
    "towns.csv": 'Town,Population\nVard,980¹\nHolm,"1,200²"\nLund,450\n¹ estimate\n² census\n',
    "parcels.csv": "Parcel,Mass\nP1,2 kg\nP2,800 g\nP3,1.2 kg\n",
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    yield from index_asked(FILES, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Which model is the cheapest?", "Cirrus 30 — Price: 9.80"),
        ("What is the average price?", "models.csv — Price: 10.77 on average, in 3 records"),
        ("How many models are there?", "models.csv — 3 records"),
        ("When is the invoice due?", "Ilse Brandt — Due: 2024-04-13"),
        ("What share does the Terne have?", "Terne — Share: 50%"),
        ("How long is the Alke?", "Alke — Length (m): 20.01"),
        ("Which quay is the deepest?", "Duck — quay: West; depth: 6.2"),
        ("What is the average capacity?", "Psql — capacity: 25.67 on average, in 3 records"),
        ("What is the licence of Tora Nes?", "Pilots — pilot: Tora Nes; licence: 8123"),
        ("Who joined first?", "Di Moe — Joined: 1998-07-09"),
        ("Which member joined most recently?", "Cy Dahl — Joined: 2021-01-15"),
        ("Which order was placed last?", "Orders: A2 — Placed: 1/15/2024"),
        ("What is the total population?", "towns.csv — Population: 2,630 in all, in 3 records"),
    ],
)
def test_what_is_asked_stands_first(asked: QueryEngine, question: str, told: str) -> None:
    assert passages_of(asked.answer(question, "bm25").text)[0] == told


@pytest.mark.parametrize(
    ("question", "never"),
    [
        ("How many cars are there?", "3 records"),  # a car is a column
        ("What is the total mass of the parcels?", "in all"),  # of kg and g
    ],
)
def test_nothing_is_told_of_what_is_unsure(asked: QueryEngine, question: str, never: str) -> None:
    assert never not in asked.answer(question, "bm25").text


def test_which_came_first_is_untold_where_days_may_be_months(asked: QueryEngine) -> None:
    trips = [p for p in passages_of(asked.answer("Which trip sailed first?", "bm25").text)]
    last = passages_of(asked.answer("Which trip sailed last?", "bm25").text)
    assert trips == last


@pytest.mark.parametrize(
    "table",
    [
        "Country,Capital\nNorway,Oslo\nChad,Moundou\nMali,Bamako",
        "Title,Pages\nOld Quay,120\nNew Quay,unknown\nDeep,90",
        "Team,Home,Away\nLions,3,1\nTigers,postponed,postponed\nBears,2,0",
        "Item,2022,2023\nRevenue,10 M,12 M\nChair,Ann,Bo\nStaff,40,44",
        "Stop,Bus 1,Bus 2\nVard,08:00,09:00\nHolm,08:20,09:20\nLund,-,09:40",
        "Product,Price,Unit\nRope,12,m\nTar,n/a,kg\nNet,30,pc",
    ],
)
def test_tables_that_stand_upright_stay_so(table: str) -> None:
    assert turned([line.split(",") for line in table.split("\n")]) is None


def test_comments_on_cells_are_said_in_their_row() -> None:
    book = Workbook()
    sheet = book.active
    assert sheet
    for row in (["Flat", "Tenant", "Rent"], ["1A", "Olga Weiss", 700], ["1B", "Samir Haddad", 820]):
        sheet.append(row)
    sheet["C3"].comment = Comment("Karl Meier:\nRaised in May", "Karl Meier")
    sheet["C1"].comment = Comment("Without heating", "Karl Meier")
    book.save(file := BytesIO())
    caption, _, samir = read("rents.xlsx", file.getvalue()).documents
    assert caption.text == "Without heating"
    assert samir.text.endswith("Rent: 820\nComment: Rent: Raised in May")
