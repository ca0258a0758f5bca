"""Tables of web pages: their heads name columns, and no entities; their cells stand in columns."""

import io
from collections.abc import Sequence
from datetime import time

import polars as pl
import pytest
from openpyxl import Workbook
from read_files import only, read
from test_equations import docx

from graphrag_pipeline.extraction.rules.nlp import NlpOptions, extract_nlp

MERGED = """<table><thead>
<tr><th rowspan=2>Town</th><th colspan="2">2025</th><th colspan="2">2024</th></tr>
<tr><th>Tons</th><th>Boats</th><th>Tons</th><th>Boats</th></tr></thead>
<tr><td rowspan=2>Tarnfjord</td><td>140</td><td>4</td><td>90</td><td>3</td></tr>
<tr><td>7</td><td>1</td><td>6</td><td>2</td></tr></table>"""


def table(*rows: str) -> str:
    cells = "".join(f"<tr>{row}</tr>" for row in rows)
    return only(read("a.html", f"<body><table>{cells}</table></body>")).text


def test_a_head_is_told_from_the_rows_and_columns_keep_their_names() -> None:
    assert only(read("a.html", MERGED)).text.split("\n") == [
        "| Town | 2025 Tons | 2025 Boats | 2024 Tons | 2024 Boats |",
        "| --- | --- | --- | --- | --- |",
        "| Tarnfjord | 140 | 4 | 90 | 3 |",
        "| Tarnfjord | 7 | 1 | 6 | 2 |",
    ]
    rows = ("<th>Ship</th><th>Captain</th>", "<td>Frida</td><td>Tor Juul</td>")
    assert table(*rows) == "| Ship | Captain |\n| --- | --- |\n| Frida | Tor Juul |"
    labels = ("<td>Name</td><td>Home town</td>", "<td>Sixten Hult</td><td>Rydal</td>")
    assert table(*labels).split("\n")[1] == "| --- | --- |"


def test_rows_without_a_head_stay_rows() -> None:
    assert "---" not in table("<td>Sixten Hult</td><td>Rydal</td>", "<td>Bo Li</td><td>Oden</td>")
    assert "---" not in table("<th>Ship</th><td>Frida</td>", "<th>Captain</th><td>Tor Juul</td>")
    assert "---" not in table("<th>Ship</th><th>Captain</th>", "<th>Frida</th><th>Tor Juul</th>")
    wide = table(*["<td rowspan=9999 colspan=9999>a</td><td>b</td>"] * 3)
    assert len(wide) < 1_000


def test_years_over_names_are_a_head_of_two_rows() -> None:
    lines = [
        "| Town | 2024 Boats | 2024 Tons | 2025 Boats | 2025 Tons |",
        "| --- | --- | --- | --- | --- |",
        "| Osvik | 7 | 310 | 9 | 350 |",
    ]
    two = ("<td rowspan=2>Town</td><td colspan=2>2024</td><td colspan=2>2025</td>",)
    names = "<td>Boats</td><td>Tons</td>" * 2
    numbers = "".join(f"<td>{cell}</td>" for cell in ("Osvik", 7, 310, 9, 350))
    assert table(*two, names, numbers).split("\n") == lines
    written = (
        "|  | 2024 |  | 2025 |  |\n|---|--:|---|---|---|\n| Town | Boats | Tons | Boats | Tons |"
    )
    assert only(read("a.md", f"{written}\n{lines[2]}\n")).text.split("\n") == lines
    one = "| Town | 2024 |  | 2025 |  |\n|---|---|---|---|---|\n| Osvik | 7 | 310 | 9 | 350 |\n" * 2
    assert only(read("a.md", one)).text == one.strip()


def test_a_rule_within_a_table_of_org_names_no_columns() -> None:
    rule = "|---+---|\n"
    ledger = f"{rule}| Who | Fee |\n{rule}| Ida | 120 |\n| Per | 80 |\n{rule}| Total | 200 |\n"
    assert only(read("a.org", f"* Fees\n{ledger}* Notes\n")).text.split("\n")[1:] == [
        "| Who | Fee |",
        "| --- | --- |",
        "| Ida | 120 |",
        "| Per | 80 |",
        "| Total | 200 |",
        "# Notes",
    ]
    assert "---" not in only(read("a.org", "| Ida | 120 |\n| Per | 80 |\n")).text


def test_what_names_columns_is_no_entity() -> None:
    document = only(read("a.html", MERGED.replace("Boats", "Captain").replace(">4<", ">Tor Juul<")))
    blocks = [[b._asdict() for b in document.blocks]]
    chunks = pl.DataFrame({"id": ["c"], "text": [document.text], "blocks": blocks})
    titles = set(extract_nlp(chunks, NlpOptions()).entities["title"])
    assert "Tor Juul" in titles
    assert not titles & {"Captain", "Town", "Tons"}


def test_files_written_into_addresses_are_no_text() -> None:
    data = "data:image/png;base64," + "iVBORw0KGgo" * 90
    page = f"# T\n\nSee ![the quay]({data} 'Q') here.\n\n[image1]: <{data}>\n\nEnd {data}."
    assert only(read("a.md", page)).text == "# T\n\nSee the quay here.\n\nEnd ."
    kept = "The data: see [it](data.csv)."
    assert only(read("b.md", kept)).text == kept


def test_equations_stand_in_tables_too() -> None:
    cell = "<w:tc><w:p><m:oMath><m:r><m:t>{}</m:t></m:r></m:oMath></w:p></w:tc>"
    row = "<w:tr>" + cell.format("a=1") + cell.format("b=2") + "</w:tr>"
    assert "| a=1 | b=2 |" in only(read("a.docx", docx(f"<w:tbl>{row}{row}</w:tbl>"))).text


def test_a_row_of_a_head_and_a_cell_is_a_field_whose_name_is_no_entity() -> None:
    text = table("<th>Owner</th><td>Juni Halle</td>", "<th>Built:</th><td>1998</td>")
    assert text == "Owner: Juni Halle\nBuilt: 1998"
    chunk = {"id": "1", "text": text, "blocks": [{"start": 0, "end": len(text), "kind": "table"}]}
    assert extract_nlp(pl.DataFrame([chunk]), NlpOptions()).entities["title"].to_list() == [
        "Juni Halle"
    ]


def test_the_first_row_over_numbers_names_columns() -> None:
    rows = (
        "<td>Ship</td><td>Captain</td><td>Tons</td>",
        "<td>Ran</td><td>Tor Juul</td><td>40</td>",
    )
    assert table(*rows).split("\n")[1] == "| --- | --- | --- |"
    assert "---" not in table(rows[1], rows[1])


def test_half_of_the_names_of_columns_are_enough_where_they_stand_over_other_words() -> None:
    head = "<td>Ship</td><td>Captain</td><td>Owner</td>"
    below = [
        "<td>Ran</td><td>Tor Juul</td><td>Rydal Freight</td>",
        "<td>Ask</td><td>Ib Juhl</td><td>Oden Lines</td>",
    ]
    assert table(head, *below).split("\n")[1] == "| --- | --- | --- |"
    assert "---" not in table(*below, below[0])
    assert "---" not in table(head, *below, head)
    assert "---" not in table(head, below[0], "<td>Owner</td><td>Ib Juhl</td><td>Oden Lines</td>")


def test_the_second_of_two_rows_names_columns_below_wide_cells_over_numbers() -> None:
    rows = [
        "<td colspan=2>Place</td><td colspan=2>Water</td>",
        "<td>Quay</td><td>Berth</td><td>Low</td><td>High</td>",
        "<td>Four</td><td>Alfa</td><td>7.2</td><td>9.1</td>",
    ]
    head = "| Place Quay | Place Berth | Water Low | Water High |"
    assert table(*rows).split("\n")[:2] == [head, "| --- | --- | --- | --- |"]
    assert "---" not in table(*rows[:2], rows[1])


CALC = """<style>comment { display:none; }</style><body><hr><p><center><h1>Overview</h1>
<A HREF="#table0">Fleet</A><br><A HREF="#table1">Crew</A><br></center></p><hr>
<A NAME="table0"><h1>Sheet 1: <em>Fleet</em></h1></A><table><tr><td>Ran</td><td>
<a class="comment-indicator"></a><comment>Ask Vigdis Moe</comment>Tor Juul</td></tr></table>
<A NAME="table1"><h1>Sheet 2: <em>Crew</em></h1></A><table><tr><td>Ib Juhl</td></tr></table>"""


def test_a_spreadsheet_saved_as_a_page_has_no_comments_and_is_not_called_overview() -> None:
    document = only(read("fleet.html", CALC))
    assert document.title == "Fleet"
    assert "Vigdis" not in document.text
    assert "| Ran | Tor Juul |" in document.text


def names_of_columns(text: str) -> list[str]:
    lines = read("a.csv", text).documents[0].text.split("\n")
    return [line.partition(": ")[0] for line in lines]


def test_a_head_of_three_rows_names_each_column_whole() -> None:
    head = "Hospital,Beds,,,\n,2023,,2024,\n,Day,Night,Day,Night\n"
    rows = "St. Olaf,40,22,44,25\nRikshaug,90,61,91,66\n"
    assert names_of_columns(head + rows) == [
        *("Hospital", "Beds 2023 Day", "Beds 2023 Night", "Beds 2024 Day", "Beds 2024 Night"),
    ]


def test_addresses_over_addresses_name_no_columns() -> None:
    rows = "anna@x.example,Anna Berg,Nordal AS\nlars@x.example,Lars Holm,Nordal AS\n"
    assert [d.title for d in read("a.csv", rows).documents] == ["Anna Berg", "Lars Holm"]
    assert names_of_columns("e@mail.example,name\n1,Anna Berg\n2,Lars Holm\n")[0] == "name"


def test_ends_of_lines_that_a_database_escapes_are_no_letters() -> None:
    rows = '"id","said"\n"1","Say \\"stay\\""\n"2","One\\ntwo \\\\n"\n"3","\\N"\n'
    told = {d.key: d.text for d in read("a.csv", rows).documents}
    assert "said: One two \\n" in told["2"]
    assert told["3"] == "id: 3"


FLEET = [
    ["", "Fleet", "", "", ""],
    ["", "Norway", "", "Spain", ""],
    ["", "Boats", "Tons", "Boats", "Tons"],
    ["Year", "n", "t", "n", "t"],
    ["2023", "4", "140", "6", "210"],
    ["2024", "5", "150", "7", "220"],
]
MERGED_FLEET = """<table><tr><td rowspan=4>Year</td><td colspan=4>Fleet</td></tr>
<tr><td colspan=2>Norway</td><td colspan=2>Spain</td></tr>
<tr><td>Boats</td><td>Tons</td><td>Boats</td><td>Tons</td></tr>
<tr><td>n</td><td>t</td><td>n</td><td>t</td></tr>
<tr><td>2023</td><td>4</td><td>140</td><td>6</td><td>210</td></tr></table>"""


def as_csv(rows: list[list[str]]) -> str:
    return "".join(",".join(row) + "\n" for row in rows)


def as_markdown(rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(row)} |\n" for row in rows]
    return "".join([lines[0], "|---" * len(rows[0]), "|\n", *lines[1:]])


def workbook(rows: Sequence[Sequence[object]], *merged: str) -> bytes:
    book = Workbook()
    sheet = book.create_sheet(index=0)
    book.remove(book["Sheet"])
    for row in rows:
        sheet.append([*row])
    for cells in merged:
        sheet.merge_cells(cells)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def test_a_head_of_four_rows_names_each_column_whole() -> None:
    names = [
        f"Fleet {land} {what}" for land in ("Norway", "Spain") for what in ("Boats n", "Tons t")
    ]
    said = "\n".join(["Year: 2023", *map(": ".join, zip(names, FLEET[4][1:], strict=True))])
    merged = workbook(FLEET, "B1:E1", "B2:C2", "D2:E2")
    for read_as in (read("a.csv", as_csv(FLEET)), read("a.xlsx", merged)):
        assert read_as.documents[0].text == said
    head = f"| Year | {' | '.join(names)} |"
    for name, content in (("a.md", as_markdown(FLEET)), ("a.html", MERGED_FLEET)):
        assert only(read(name, content)).text.split("\n")[:3] == [
            head,
            "| --- | --- | --- | --- | --- |",
            "| 2023 | 4 | 140 | 6 | 210 |",
        ]


def test_names_said_again_over_each_column_are_as_those_over_several() -> None:
    frame = ",price,price,volume,volume\n,mean,max,mean,max\ntown,,,,\nKelm,12.5,14.0,30,41\n"
    lines = only(read("a.csv", frame)).text.split("\n")
    assert lines == [
        "town: Kelm",
        "price mean: 12.5",
        "price max: 14.0",
        "volume mean: 30",
        "volume max: 41",
    ]
    shifts = "Who,Mon,,Tue,\n,Early,Late,Early,Late\nIda Moen,Quay,,Gate,\nPer Holm,,Quay,,Gate\n"
    assert [document.text for document in read("a.csv", shifts).documents] == [
        "Who: Ida Moen\nMon Early: Quay\nTue Early: Gate",
        "Who: Per Holm\nMon Late: Quay\nTue Late: Gate",
    ]


@pytest.mark.parametrize(
    ("heads", "cells"),
    [
        (["05:00", "05:30"], ["05:02", "05:32"]),
        (["5:00 pm", "5:30 pm"], ["12.4", "12.9"]),
        (["08:00-08:45", "09:00-09:45"], ["Latin", "Art"]),
        (["2024-01-01", "2024-02-01"], ["14", "18"]),
        (["01/03/2025", "08/03/2025"], ["present", "absent"]),
        (["2023", "2022"], ["Ida Moen", "Per Holm"]),
    ],
)
def test_heads_that_look_like_values_name_columns(heads: list[str], cells: list[str]) -> None:
    rows = [["Stop", *heads], ["Kelm", *cells], ["Osvik", *cells]]
    said = [f"Stop: {name}\n{heads[0]}: {cells[0]}\n{heads[1]}: {cells[1]}" for name in ("Kelm",)]
    assert [d.text for d in read("a.csv", as_csv(rows)).documents][:1] == said
    page = "".join(f"<td>{'</td><td>'.join(row)}</td>" + "<tr>" for row in rows)
    text = only(read("a.html", f"<table><tr>{page}</table>")).text
    assert text.split("\n")[:2] == [f"| Stop | {heads[0]} | {heads[1]} |", "| --- | --- | --- |"]


def test_hours_of_a_workbook_are_as_it_shows_them() -> None:
    rows = [["Room 4"], [None, time(8), time(9, 30)], ["Monday", "Latin", "Art"]]
    read_as = read("a.xlsx", workbook([*rows, ["Friday", "Art", None]], "A1:C1"))
    assert [document.text for document in read_as.documents] == [
        "Room 4",
        "column-1: Monday\n08:00: Latin\n09:30: Art",
        "column-1: Friday\n08:00: Art",
    ]


@pytest.mark.parametrize(
    "rows",
    [
        [["05:00", "Kelm", "departs"], ["05:30", "Osvik", "departs"]],
        [["Kelm", "05:00", "05:45"], ["Osvik", "05:30", "06:15"], ["Rydal", "06:10", "07:00"]],
        [["2025-01-03", "Ida Moen", "14"], ["2025-01-04", "Per Holm", "9"]],
        [["Ida Moen", "1985", "2001"], ["Per Holm", "1979", "1999"]],
    ],
)
def test_values_over_values_of_their_kind_are_a_row(rows: list[list[str]]) -> None:
    first = read("a.csv", as_csv(rows)).documents[0].text
    assert sorted(line.partition(": ")[2] for line in first.split("\n")) == sorted(rows[0])


def test_a_grid_of_words_below_an_empty_corner_has_a_head() -> None:
    rows = ("<td></td><td>Monday</td><td>Friday</td>", "<td>8:00</td><td>Latin</td><td>Art</td>")
    assert table(*rows, rows[1].replace("8", "9")).split("\n")[:2] == [
        "|  | Monday | Friday |",
        "| --- | --- | --- |",
    ]
    assert "---" not in table(rows[0], rows[1], rows[1].replace("8:00", ""))


def test_a_power_is_no_digit_of_its_number() -> None:
    text = only(
        read("a.html", "<p>10<sup>3</sup> m, in 1998<sup><a href='#n'>2</a></sup>, m<sup>2")
    ).text
    assert text == "10^3 m, in 1998^2, m2"
