"""Records: what the rows of tables and the objects of JSON become."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Engine
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.extraction.rules.records import names_in_field
from graphrag_pipeline.index import Index
from graphrag_pipeline.ingest.reading import ReadingOptions, read_file

SHIPS = (
    "id,name,captain,home_harbour_id,built,tonnage,notes\n"
    "1,Marigold,Ida Brandt,1,1902,310 t,She was lost off the cape in 1911. Nobody knows why.\n"
    '2,Petrel,"Moen, Ole",2,3 May 1911,"1,200",She sailed to the islands for many years.\n'
)


def read(name: str, content: str):
    return read_file(Path(name), ReadingOptions(), data=content.encode()).documents


def marked(document) -> dict[str, list[str]]:
    """Return the lines of a record by what they are."""
    lines: dict[str, list[str]] = {}
    for start, end, kind in document.blocks:
        lines.setdefault(kind, []).extend(document.text[start:end].split("\n"))
    return lines


def test_a_row_says_what_names_something_what_is_a_key_and_what_a_value():
    marigold, _ = read("ships.csv", SHIPS)
    assert marked(marigold) == {
        "title": ["name: Marigold"],
        "field": ["captain: Ida Brandt"],
        "key": ["home_harbour_id: 1"],
        "value": ["id: 1", "built: 1902", "tonnage: 310 t", "notes: "],
    }
    assert marigold.metadata == {"home_harbour_id": "1", "built": "1902", "tonnage": "310 t"}
    assert marigold.text.startswith("name: Marigold\nid: 1\ncaptain: ")


CELLS = (
    "Ada",
    "Ida Brandt",
    "Oslo; Bergen",
    "1984",
    "x1",
    "P1",
    "",
    "3 May 1911",
    'a "b"\\',
    "é\tn",
)
COLUMNS = ("id", "Title", "name", "text", "body", "first name", "Last_Name", "v.1", "captain")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_rows_of_a_table_are_read_as_objects_with_the_same_fields(data):
    columns = data.draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=6, unique=True))
    cells = st.lists(st.sampled_from(CELLS), min_size=len(columns), max_size=len(columns))
    rows = data.draw(st.lists(cells.filter(any), min_size=1, max_size=30))
    table = io.StringIO()
    csv.writer(table).writerows([columns, *rows])
    objects = json.dumps([dict(zip(columns, row, strict=True)) for row in rows])
    assert read("a.csv", table.getvalue()) == read("a.json", objects)


def test_a_column_that_tells_rows_apart_gives_titles_and_keys_where_none_is_set():
    documents = read("x.csv", "ship_code,vessel,port\nA1,Marigold,Kelmouth\nB2,Petrel,Kelmouth\n")
    assert [(d.key, d.title) for d in documents] == [("A1", "Marigold"), ("B2", "Petrel")]


def test_an_issue_is_called_by_its_summary_and_not_by_one_of_its_labels():
    rows = (
        "Summary,Issue key,Status,Assignee,Labels,Labels\n"
        "Login fails after reset,SHOP-412,Open,Beatriz Nogueira,auth,login\n"
        "Add invoices as PDF,SHOP-398,Done,Lars Eide,billing,\n"
    )
    assert [d.title for d in read("jira.csv", rows)] == [
        "Login fails after reset",
        "Add invoices as PDF",
    ]
    boxes = "No.,Labels,Label\n1,red; green,Oak Street\n2,blue; white,Elm Street\n"
    assert [d.title for d in read("boxes.csv", boxes)] == ["Oak Street", "Elm Street"]


def test_a_name_in_two_columns_is_one_title():
    (ada,) = read("staff.csv", "employee_id,First Name,last_name,team\n7,Ada,Berg,Research\n")
    assert (ada.key, ada.title) == ("7", "Ada Berg")
    assert ada.text == "name: Ada Berg\nemployee_id: 7\nteam: Research"


def test_a_name_that_is_an_object_is_a_title():
    rows = [
        {"id": {"crew": "K-7"}, "name": {"first": "Ada", "last": "Berg", "in_full": "Ada L. Berg"}},
        {"id": {"crew": "K-9"}, "name": {"common": "Kelm", "official": "Free Port of Kelm"}},
        {"id": {"crew": "K-10"}, "name": {"nob": {"value": "Kjelm"}}},
    ]
    ada, kelm, other = read("crew.json", json.dumps(rows))
    assert (ada.key, ada.title, kelm.title, other.title) == ("K-7", "Ada Berg", "Kelm", "Kjelm")
    assert ada.text == "name: Ada Berg\nname.in_full: Ada L. Berg\nid.crew: K-7"
    assert "name.official: Free Port of Kelm" in kelm.text


def test_a_list_of_one_value_is_that_value():
    (port,) = read("ports.json", json.dumps([{"name": "Kelm", "seat": ["Oln"], "tags": [["a"]]}]))
    assert port.text == "name: Kelm\nseat: Oln\ntags.1: a"


def test_nested_objects_and_lists_name_things_by_the_path():
    film = {"title": "Alien", "director": {"name": "Nora Falk"}, "cast": ["Per Lund", "Ada Berg"]}
    (document,) = read("films.json", json.dumps([film]))
    assert marked(document)["field"] == [
        "director.name: Nora Falk",
        "cast.1: Per Lund",
        "cast.2: Ada Berg",
    ]


ROWS = [{"name": "Marigold", "owner": "Ida Brandt"}, {"name": "Petrel", "owner": "Per Lund"}]


@pytest.mark.parametrize(
    ("envelope", "beside"),
    [
        ({"data": ROWS, "source": "Harbour Office"}, {"source": "Harbour Office"}),
        ({"count": 2, "next": "https://x.org/2", "ships": ROWS}, {"count": 2}),
        ({"response": {"data": {"items": ROWS}}}, {}),
    ],
)
def test_the_array_in_an_envelope_is_records_and_what_is_beside_it_is_metadata(envelope, beside):
    documents = read("ships.json", json.dumps(envelope))
    assert [(d.title, marked(d)["field"]) for d in documents] == [
        ("Marigold", ["owner: Ida Brandt"]),
        ("Petrel", ["owner: Per Lund"]),
    ]
    assert all(beside.items() <= document.metadata.items() for document in documents)


@pytest.mark.parametrize(
    "record",
    [
        {"name": "Fjordline", "ships": ROWS},
        {"company": "Fjordline", "ships": ROWS},
        {"ships": ROWS, "captains": ROWS},
        {"data": [1, {"a": "b"}]},
        {"data": []},
    ],
)
def test_an_object_with_a_name_or_other_content_of_its_own_is_one_record(record):
    documents = read("x.json", json.dumps({**record, "more": "x"}))
    assert len(documents) == 1


def test_beside_a_text_fields_that_name_something_and_short_values_are_written():
    rows = "title,text,author,date,url\nPlans,We have some.,Ada Berg,2020-01-01,https://a.b/c\n"
    (document,) = read("news.csv", rows)
    assert document.text == "We have some.\n\ntitle: Plans\nauthor: Ada Berg\ndate: 2020-01-01"
    assert document.metadata == {
        "author": "Ada Berg",
        "date": "2020-01-01",
        "url": "https://a.b/c",
    }


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        ("owner", "Baltor Freight", "ORGANIZATION"),
        ("customer", "Nordwind GmbH", "ORGANIZATION"),
        ("owner", "Xanthe Stone", "PERSON"),
        ("tenant", "Ola Brink", "PERSON"),
        ("captain", "Xanthe Freight", "PERSON"),
        ("owner", "Port of Sundport", "ORGANIZATION"),
        ("owner", "City of Bergen", "ORGANIZATION"),
        ("customer", "Bank of Norland", "ORGANIZATION"),
    ],
)
def test_an_owner_is_a_firm_where_the_name_ends_with_a_trade_or_is_of_something(field, value, kind):
    (piece,) = names_in_field("field", field, value)
    assert piece[2:] == (value, kind)


@pytest.mark.parametrize(
    "values",
    [
        ["12", "1,300", "7 %"],
        ["2020-01-02", "3 May 1911", "12/05/2017 10:30"],
        ["true", "false", "n/a"],
        ["https://a.b/c", "www.a.org", "a@b.org"],
    ],
)
def test_numbers_dates_truth_values_and_addresses_name_nothing(values):
    rows = "".join(f'Ship {letter},"{v}"\n' for letter, v in zip("ABC", values, strict=True))
    documents = read("a.csv", f"name,about\n{rows}")
    assert [set(marked(document)) for document in documents] == [{"title", "value"}] * 3


def test_titles_are_related_to_what_their_fields_name_and_the_evidence_is_the_field(
    engine: Engine,
):
    engine.write({"ships.csv": SHIPS})
    engine.index()
    rows = engine.rows(
        """SELECT m.description, substr(c.text, m.start_char + 1, m.end_char - m.start_char)
           FROM resolved_relationship_mentions m JOIN chunks c ON c.id = m.chunk_id
           WHERE m.description LIKE '%captain%' ORDER BY ALL"""
    )
    assert rows == [
        ("Marigold — captain: Ida Brandt", "captain: Ida Brandt"),
        ("Petrel — captain: Ole Moen", "captain: Moen, Ole"),
    ]
    types = dict(engine.rows("SELECT title, type FROM entities"))
    assert (types["Ida Brandt"], types["Ole Moen"]) == ("PERSON", "PERSON")
    ((about,),) = engine.rows("SELECT description FROM entities WHERE title = 'Marigold'")
    assert "built: 1902; tonnage: 310 t" in about


STATEMENT = """Buchungstag;Verwendungszweck;Auftraggeber/Empfänger;Betrag
02.05.2024;Kartenzahlung;REWE Markt GmbH;-54,23
03.05.2024;Gehalt Mai;Nordwerft AG;3.120,50
06.05.2024;Miete Mai;Hausverwaltung Brandt;-980,00
07.05.2024;Kartenzahlung;Shell Tankstelle;-61,10
08.05.2024;Geburtstag;MARIA LOPEZ;-50,00
"""


def test_a_bank_statement_has_no_persons_but_those_who_are_paid(engine: Engine):
    engine.write({"umsatz.csv": STATEMENT})
    engine.index()
    assert engine.rows("SELECT type, title FROM entities ORDER BY ALL") == [
        ("ORGANIZATION", "Hausverwaltung Brandt"),
        ("ORGANIZATION", "Nordwerft AG"),
        ("ORGANIZATION", "REWE Markt GmbH"),
        ("ORGANIZATION", "Shell Tankstelle"),
        ("PERSON", "MARIA LOPEZ"),
    ]


def test_notes_of_a_record_are_prose_and_times_with_a_zone_no_keys():
    rows = ["Astrid,2024-05-08T08:15:00Z,Astra asked", "Belle,2024-05-09T10:00:00+02:00,Ok"]
    first, _ = read("a.csv", "\n".join(["name,seen,notes", *rows]))
    assert marked(first) == {
        "title": ["name: Astrid"],
        "value": ["seen: 2024-05-08T08:15:00Z", "notes: "],
    }


HARBOURS = "id,name,country\n1,Kelmouth,Ardmark\n2,Sellenby,Ardmark\n"
LINKS = """
SELECT m.description, substr(c.text, m.start_char + 1, m.end_char - m.start_char)
FROM resolved_relationship_mentions m JOIN chunks c ON c.id = m.chunk_id
WHERE contains(substr(c.text, m.start_char + 1, m.end_char - m.start_char), '_id: ') ORDER BY ALL
"""


def test_a_foreign_key_relates_to_the_record_it_is_of_whenever_that_comes(
    engine: Engine, tmp_path: Path
):
    engine.write({"a/ships.csv": SHIPS})
    engine.index()
    assert engine.rows(LINKS) == []
    engine.write({"a/harbours.csv": HARBOURS})
    engine.index()
    assert engine.rows(LINKS) == [
        ("Marigold — home_harbour: Kelmouth", "home_harbour_id: 1"),
        ("Petrel — home_harbour: Sellenby", "home_harbour_id: 2"),
    ]
    fresh = Engine(tmp_path / "fresh")
    fresh.write({"a/harbours.csv": HARBOURS, "a/ships.csv": SHIPS})
    fresh.index()
    everything = "SELECT source, target, description, weight, pmi FROM relationships ORDER BY ALL"
    assert engine.rows(everything) == fresh.rows(everything)
    engine.write({"a/harbours.csv": None})
    engine.index()
    assert engine.rows(LINKS) == engine.rows("FROM record_links") == []


def test_a_foreign_key_relates_to_a_record_of_another_table_of_its_file(engine: Engine):
    dump = """CREATE TABLE harbours (id int, name text, country text);
INSERT INTO harbours VALUES (1, 'Kelmouth', 'Ardmark'), (2, 'Sellenby', 'Ardmark');
CREATE TABLE ships (id int, name text, home_harbour_id int);
INSERT INTO ships VALUES (1, 'Marigold', 1), (2, 'Petrel', 2);
"""
    engine.write({"register.sql": dump})
    engine.index()
    assert engine.rows(LINKS) == [
        ("Marigold — home_harbour: Kelmouth", "home_harbour_id: 1"),
        ("Petrel — home_harbour: Sellenby", "home_harbour_id: 2"),
    ]


def test_a_relationship_says_by_which_field_its_ends_are_related(engine: Engine):
    crew = [{"name": "Crew of the Marigold", "members": [{"name": "Ole Moen", "since": 1901}]}]
    engine.write(
        {
            "a/ships.csv": SHIPS,
            "a/harbours.csv": HARBOURS,
            "crew.json": json.dumps(crew),
            "note.txt": "Ida Brandt met Ole Moen in Sellenby.",
        }
    )
    engine.index()
    ends = "list_sort([source, target])"
    types = dict(engine.rows(f"SELECT {ends}::VARCHAR, type FROM relationships"))
    expected = {
        "[Ida Brandt, Marigold]": "captain",
        "[Kelmouth, Marigold]": "home_harbour",
        "[Ardmark, Kelmouth]": "country",
        "['Crew of the Marigold', Ole Moen]": "members",
        "[Ida Brandt, Sellenby]": "",
    }
    types = {pair.replace("'", ""): kind for pair, kind in types.items()}
    assert {k.replace("'", ""): v for k, v in expected.items()}.items() <= types.items()


def test_a_table_that_joins_two_others_relates_their_records(engine: Engine):
    engine.write(
        {
            "films.csv": "film_id,title\n1,The Long Voyage\n2,Harbour Lights\n",
            "actors.csv": "actor_id,name\n7,Nora Falk\n8,Per Lund\n",
            "cast.csv": "film_id,actor_id,part\n1,7,Captain\n1,8,Cook\n2,7,Widow\n",
        }
    )
    engine.index()
    assert [row for (row, _) in engine.rows(LINKS)] == [
        "Harbour Lights — actor: Nora Falk",
        "The Long Voyage — actor: Nora Falk",
        "The Long Voyage — actor: Per Lund",
    ]


def test_a_manager_is_a_record_of_the_same_file_and_a_number_without_its_file_is_nobody(
    engine: Engine,
):
    engine.write(
        {"staff.csv": "id,name,manager_id,team_id\n1,Ada Berg,,1\n2,Per Lund,1,2\n3,Bo Ek,1,1\n"}
    )
    engine.index()
    assert [row for (row, _) in engine.rows(LINKS)] == [
        "Bo Ek — manager: Ada Berg",
        "Per Lund — manager: Ada Berg",
    ]


def test_an_answer_quotes_a_field_with_the_title_of_its_record(tmp_path: Path):
    folder = tmp_path / "ships"
    folder.mkdir()
    (folder / "ships.csv").write_text(SHIPS)
    index = Index(Settings(home=str(tmp_path / "home")))
    index.update(folder)
    answer = index.answer("Who is the captain of the Petrel?", method="ppr")
    assert "Petrel — captain: Moen, Ole" in answer.text
    assert "captain: Moen, Ole" in [citation.text for citation in answer.citations]


def test_an_answer_says_what_a_key_refers_to_and_whom_a_nameless_record_is_about(tmp_path: Path):
    folder = tmp_path / "ships"
    folder.mkdir()
    (folder / "ships.csv").write_text(SHIPS)
    (folder / "harbours.csv").write_text(HARBOURS)
    (folder / "calls.csv").write_text("ship_id,harbour_id,cargo\n1,2,Timber\n2,1,Salt\n1,1,Coal\n")
    index = Index(Settings(home=str(tmp_path / "home")))
    index.update(folder)
    home = index.answer("What is the home harbour of the Petrel?", method="bm25").text
    assert "Petrel — home_harbour_id: Sellenby (2)" in home
    cargo = index.answer("Who had a cargo of timber?", method="bm25").text
    assert "Marigold (Calls: row-1) — cargo: Timber" in cargo


BOARD = {
    "name": "Refit",
    "lists": [{"id": "l1", "name": "To do"}, {"id": "l2", "name": "Done"}],
    "members": [{"id": "m1", "fullName": "Ida Brandt"}, {"id": "m2", "fullName": "Ole Moen"}],
    "cards": [
        {"id": "c1", "name": "Paint the hull", "idList": "l2", "idMembers": ["m1"]},
        {"id": "c2", "name": "Mend the sail", "idList": "l1", "idMembers": ["m1", "m2"]},
    ],
}


def test_arrays_of_an_object_that_refer_to_each_other_are_tables(engine: Engine):
    engine.write({"board.json": json.dumps(BOARD)})
    engine.index()
    keys = ["about", "cards!c1", "cards!c2", "lists!l1", "lists!l2", "members!m1", "members!m2"]
    found = engine.rows("SELECT split_part(uri, '#', 2) FROM documents ORDER BY 1")
    assert found == [(key,) for key in keys]
    assert engine.rows("SELECT description FROM record_links ORDER BY 1") == [
        ("Mend the sail — idList: To do",),
        ("Mend the sail — idMembers: Ida Brandt",),
        ("Mend the sail — idMembers: Ole Moen",),
        ("Paint the hull — idList: Done",),
        ("Paint the hull — idMembers: Ida Brandt",),
    ]


def test_an_array_among_named_things_is_no_envelope_of_records():
    api = {"info": {"title": "Berth API"}, "servers": [{"url": "https://a.b"}], "paths": {"x": "y"}}
    (document,) = read("a.json", json.dumps(api))
    assert "Berth API" in document.text
    assert len(read("a.json", json.dumps({"page": {"n": 1}, "ships": [{"name": "A"}] * 2}))) == 2
