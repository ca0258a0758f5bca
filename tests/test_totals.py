"""Questions for an average, a total or a number of the rows of a table."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from asked_files import index_asked

from benchmarks.answers import passages_of
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.evidence import totals

VOYAGES = [
    ("V1", "Aurora", "Port Rowan", "done", "$1,200.50", "yes"),
    ("V2", "Aurora", "Bergen", "open", "$800.00", "no"),
    ("V3", "Marlin", "Port Rowan", "done", "$99.50", "no"),
    ("V4", "Selene", "Bergen", "lost", "$400.00", "yes"),
    ("V5", "Marlin", "Port Rowan", "open", "$100.00", "yes"),
]
FILES = {
    "voyages.csv": "voyage,ship,harbour,state,freight,insured\n"
    + "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in VOYAGES),
    "fänge.csv": "Boot;Hafen;Ertrag\nAlk;Kiel;12,5\nButt;Husum;10\nCora;Kiel;7,5\n",
    "sails.json": json.dumps(
        [
            {"sail": sail, "cloth": cloth, "area": area}
            for sail, cloth, area in (
                ("Genoa", "dacron", 41),
                ("Jib", "linen", 19),
                ("Spanker", "dacron", 30),
            )
        ]
    ),
    "dues.csv": "port,year,dues_2000,dues_2001\nHull,2000,4,5\nBrest,2001,6,7\nFlores,2001,8,9\n",
    "löhne.csv": "Matrose;Lohn\nAlk;1.250,50\nButt;980,25\nCora;3.000,00\nDorn;1.000\n",
    "gear.csv": 'gear,stock\nNet,3.5\nRope,"4,5"\nBuoy,2\n',
    "tows.csv": "tug,tow_id\nAlk,11\nButt,12\nCora,14\n",
    "crews.csv": "name,berth,asleep,light,lights\nOle,4,yes,1,0\nPer,5,no,0,1\nNils,6,yes,1,0\n",
    "sheds.csv": "shed,kind,dues\nA,net,5\nB,net,7\nC,total,12\n",
    "costs.csv": "item,costs\nTar,12\nRope,30\nOakum,8\nTotal,50\n",
    "hands.csv": "hand,remarks,wages\n"
    + "".join(
        f"{hand},{remarks},{wages}\n"
        for hand, remarks, wages in (
            ("Ole", "came aboard at night and was sober for once", "11"),
            ("Per", "keeps watch and is sober on most of the days", "about 9"),
            ("Nils", "speaks of nothing but the herring and its price", "8"),
        )
    ),
    "fares.md": "# Fares of the ferry\n\nWe sell passes.\n\n## Passes\n\n"
    "| Pass | Price per month | Crossings |\n|---|---|---|\n| Day | 4 | 2 |\n| Week | 19 | 14 |\n"
    "| Year | 100 | 700 |\n\n## Quays\n\n| Quay | Depth | Side |\n|---|---|---|\n"
    "| North | 4.5 m | town |\n| South | 3 m | town |\n| Isle | 6 m | sea |\n",
    "mills.html": "<h1>Mills of the fen</h1><table><tr><th>Mill</th><th>Length (m)</th></tr>"
    "<tr><td>Ely</td><td>1,200</td></tr><tr><td>March</td><td>950</td></tr>"
    "<tr><td>Over</td><td>1,150</td></tr></table><p>The dike is 4 km long.</p>",
    "sales.csv": "sale,client,turnover,currency,qty\n"
    "1,Ada,100,EUR,2\n2,Ada,300,EUR,3\n3,Bo,50,USD,1\n4,Cy,70,USD,4\n",
    "vets.csv": "no,vet,licensed,grade,visits\n"
    "1,Ina,yes,nan,-2\n2,Jon,no,7,(4)\n3,Kay,yes,NaN,−1\n4,Lou,yes,9,5\n",
    "orte.csv": "Ort;Kreis;Gewicht;Leute\n"
    "Ulm;A;0,125;1.250\nRot;A;1,250;2.300\nAst;B;2,125;9.480\n",
    "plan.csv": "post,planned,spent\nRent,10,9\nSalt,20,\nCoal,30,31\nGrand total,60,40\n",
    "isles.csv": "isle,people,sheep\nMora,10,5\nTolo,25,7\nEkar,40,–\nThe realm,75,12\n",
    "taxes.csv": "tax,yield\nSalt,10\nSubtotal land,10\nBeer,20\nWine,7\n",
    "shifts.csv": "shift,watches\nA,2\nB,4\nC,6\n",
    "guards.csv": "guard,watches\nD,7:30\nE,8:00\nF,4:15\n",
    "doses.csv": "dose,finding,unit\nIron,18,g\nZinc,80,mg\nLime,5,mg\n",
    "stores.csv": "article,in_stores,shelf\nPeg,4,A\nPin,,B\nPot,7,A\n",
    "guests.csv": "inn,stars\nBear,3\nLion,4\nSwan,5\n",
    "marks.csv": "form,mark\n7A,61\n7B,55\n8A,72\nAll forms,62.7\n",
    "rents.md": "# Rents\n\n| Room | Rent |\n|---|---|\n"
    "| Loft | $20 |\n| Hall | €15 |\n| Barn | €9 |\n",
    "gipfel.csv": "Gipfel;Höhe\nUlm;2713\nRot;3657\nAst;2941\n",
    "bills.csv": "no,client,net,share\nB1,Mill,€ 4.00,10 %\nB2,Hall,€ 6.50,20 %\n"
    "B3,Barn,€ -1.50,60 %\n"
    "Total,,€ 9.00,\n",
    "yard.md": "# Yard\n\nThe yard has 14 slips in total. An average refit takes nine weeks.\n",
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    yield from index_asked(FILES, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What is the average freight?", "freight: $520 on average, in 5 records"),
        (
            "What is the average freight of the voyages from Port Rowan?",
            "freight: $466.67 on average, in 3 of 5 records with harbour: Port Rowan",
        ),
        ("What is the total freight?", "freight: $2,600 in all, in 5 records"),
        (
            "What is the total freight of the open voyages?",
            "freight: $900 in all, in 2 of 5 records with state: open",
        ),
        ("How many voyages are there?", "5 records"),
        ("How many voyages are open?", "2 of 5 records with state: open"),
        ("How many voyages does the Aurora have?", "2 of 5 records with ship: Aurora"),
        (
            "How many insured voyages are there from Port Rowan?",
            "2 of 5 records with harbour: Port Rowan and insured: yes",
        ),
        ("How many asleep crews are there?", "2 of 3 records with asleep: yes"),
        (
            "What is the average number of berths of asleep crews?",
            "berth: 5 on average, in 2 of 3 records with asleep: yes",
        ),
        ("What are the total costs?", "costs: 50 in all, in 3 records"),
        ("How many ships are in the voyages?", "3 values of ship, in 5 records"),
        ("How many sails are dacron?", "2 of 3 records with cloth: dacron"),
        ("Was ist der durchschnittliche Ertrag?", "Ertrag: 10 on average, in 3 records"),
        (
            "Wie hoch ist der Ertrag insgesamt in Kiel?",
            "Ertrag: 20 in all, in 2 of 3 records with Hafen: Kiel",
        ),
        (
            "What is the average price per month of a pass?",
            "Price per month: 41 on average, in 3 records",
        ),
        ("What is the average depth of the quays?", "Depth: 4.5 m on average, in 3 records"),
        ("How many quays have the side town?", "2 of 3 records with Side: town"),
        ("How many mills are there?", "3 records"),
        ("Was ist der Durchschnitt vom Lohn?", "Lohn: 1,557.69 on average, in 4 records"),
        (
            "What is the total turnover in EUR?",
            "turnover: 400 in all, in 2 of 4 records with currency: EUR",
        ),
        ("What is the total qty of the sales?", "qty: 10 in all, in 4 records"),
        ("What is the average grade of the vets?", "grade: 8 on average, in 2 of 4 records"),
        ("What are the total visits of the vets?", "visits: -2 in all, in 4 records"),
        ("Wie hoch ist das Gewicht insgesamt?", "Gewicht: 3.5 in all, in 3 records"),
        (
            "Wie hoch ist das Gewicht insgesamt im Kreis A?",
            "Gewicht: 1.375 in all, in 2 of 3 records with Kreis: A",
        ),
        ("What is the total planned?", "planned: 60 in all, in 3 records"),
        ("What is the total spent?", "spent: 40 in all, in 2 of 3 records"),
        ("How many posts are there?", "3 records"),
        ("Was ist die durchschnittliche Höhe?", "Höhe: 3,103.67 on average, in 3 records"),
        ("What is the average net of the bills?", "net: € 3 on average, in 3 records"),
        ("What is the average share of the bills?", "share: 30 % on average, in 3 records"),
        ("What is the total net of the bills?", "net: € 9 in all, in 3 records"),
        ("What is the average sail area?", "area: 30 on average, in 3 records"),
    ],
)
def test_a_figure_of_all_rows_that_are_meant_stands_first(
    asked: QueryEngine, question: str, told: str
) -> None:
    answer = asked.answer(question, "bm25")
    first = passages_of(answer.text)[0]
    table, _, figure = first.partition(" — ")
    assert figure == told
    cited = answer.citations[0]
    assert table in (cited.uri.partition("#")[0].rsplit("/", 1)[-1], cited.document_title)
    if "records with " in told and " and " not in told:
        # The row that is cited is one of those meant.
        text = asked.index.rows("SELECT text FROM documents WHERE id = $id", id=cited.document_id)
        field, _, value = told.rpartition("records with ")[2].partition(": ")
        row = cited.text if cited.text.startswith("|") else text[0]["text"]
        assert f"{field}: {value}" in row.split("\n") or f"| {value} |" in row


def test_what_was_asked_in_another_language_before_changes_nothing(asked: QueryEngine) -> None:
    totals._of_rows.cache_clear()
    for question, told in (
        ("Was ist der Durchschnitt vom Lohn?", "Lohn: 1,557.69 on average"),
        ("What is the average number of berths of asleep crews?", "berth: 5 on average"),
    ):
        assert told in passages_of(asked.answer(question, "bm25").text)[0]


@pytest.mark.parametrize(
    "question",
    [
        "How many voyages are not open?",  # another choice than the value said
        "How many voyages are open or lost?",
        "How many voyages have a freight over 500?",
        "How many voyages from Hull are there?",  # a name that no row has
        "What is the average stock of gear?",  # decimals written in two ways
        "What is the average tow?",  # a number that measures nothing
        "How many shipyards are there?",  # another word than ship
        "How many crews have lights?",  # of two flags called so
        "How many fares are there?",  # the document, and not what a row is called
        "How many voyages have a freight?",  # a field without a value
        "How many old voyages are there?",  # a word that nothing accounts for
        "What is the average freight per ship?",
        "What are the total dues of the sheds?",  # a table with a total that is not in its place
        "What are the average wages of the hands?",  # not all of them numbers
        "How many hands are sober?",  # a word within longer texts
        "What is the total turnover?",  # in two currencies
        "What is the average rent?",  # in two currencies
        "What is the average finding?",  # in two units
        "Was ist der Durchschnitt der Leute?",  # 1.250 is 1,250 or 1.25
        "How many people are there in total?",  # the last row is the total of the others
        "How many sheep are there?",  # a field of numbers and a dash
        "What is the total yield of the taxes?",  # a subtotal among the rows
        "What are the average watches?",  # of two tables, one with times
        "What is the total of the sales no?",
        "How many articles are in stores?",  # a field, and the name of the file
        "How many guests are there?",  # each row is another inn
        "How many forms are there?",  # one row is of all others
        "What is the average mark?",
        "How many vets are not licensed?",  # a column is called no
        "How many vets should be licensed?",
        "How many vets must be licensed?",
        "What are the average dues in 2001?",  # the year, or the field dues_2001
    ],
)
def test_nothing_is_told_of_other_rows_than_those_meant(asked: QueryEngine, question: str) -> None:
    for passage in passages_of(asked.answer(question, "bm25").text):
        assert "on average, in" not in passage
        assert "in all, in" not in passage
        assert " records" not in passage


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("How many slips does the yard have in total?", "14 slips"),
        ("How long does an average refit take?", "nine weeks"),
        ("What is the freight of V3?", "freight: $99.50"),
    ],
)
def test_texts_and_single_rows_answer_as_before(
    asked: QueryEngine, question: str, told: str
) -> None:
    assert told in passages_of(asked.answer(question, "bm25").text)[0]
