"""What stands around the rows of a table: lines above, units under its names, notes below."""

import io

import pytest
from read_files import read
from test_formats import make_xlsx


def texts(name: str, content: str | bytes) -> dict[str, str]:
    result = read(name, content)
    assert result.quarantined == []
    return {document.key: document.text for document in result.documents}


ROWS = {"row-1": "Harbour: Sarn\nBoats: 12", "row-2": "Harbour: Lund\nBoats: 14"}
TABLE = "Harbour,Boats\nSarn,12\nLund,14\n"


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("Boats by harbour, 2024\n\n", ""),
        ("Port office,Lund,2024\n\n", ""),
        ("Made by the port office, Lund\nwith data of 2024, revised\n\n", ""),
        ("", "\n* provisional\nSource: port office, 2024\n"),
        ("", "Source: the port office,\n"),
        ("Boats, by harbour\n\n", "\nOf 2024, revised.\n"),
    ],
)
def test_lines_around_a_table_are_no_rows_and_name_no_columns(above: str, below: str) -> None:
    read_as = texts("a.csv", f"{above}{TABLE}{below}")
    lines = [line.rstrip(",") for line in f"{above}{below}".split("\n") if line]
    assert read_as.pop("caption").split("\n") == lines
    assert read_as == ROWS


@pytest.mark.parametrize(
    ("content", "last"),
    [
        (TABLE.replace("\n", "\n\n", 1), ROWS["row-2"]),
        ("Name,City\n\nAda,Sarn\nBo,Lund\n", "Name: Bo\nCity: Lund"),
        ("Name,Quote\nAda,Hello.\nBo,Fine.\n", "Name: Bo\nQuote: Fine."),
        ("Sentence\nHello there.\nFine.\n", "Sentence: Fine."),
        ('Name,Note\nAda,"a\n\nb, c"\nBo,"d\n\ne."\n', "Name: Bo\nNote: d\n\ne."),
        ("Name,Role\nAda,\nBo,\n", "Name: Bo"),
        ("Name,Role\nAda,cook\nBo Lind Jr.,\n", "Name: Bo Lind Jr."),
        ("Said,By\nWe are going home.,Ada\nWe will never stay.,\n", "Said: We will never stay."),
        ("Name,Age\n\nAda,unknown\nBo,41\nCy,22\n", "Name: Bo\nAge: 41"),
        ("Name,Age\nAl,50\nBo,41\n\nAda,unknown\nCy,22\nDi,23\n", "Name: Bo\nAge: 41"),
    ],
)
def test_rows_stay_rows(content: str, last: str) -> None:
    assert texts("a.csv", content)["row-2"] == last


def test_labels_and_values_above_the_bookings_of_a_bank_are_fields() -> None:
    bookings = (
        '"Day";"Payee";"Sum (EUR)"\n"03.01.2024";"Otten";"-6,40"\n"05.01.2024";"Falk";"9,00"\n'
    )
    read_as = texts("a.csv", f'"Account:";"DE02 120"\n"From:";"01.01.2024"\n\n{bookings}')
    assert read_as["caption"] == "Account: DE02 120\nFrom: 01.01.2024"
    assert [*read_as][1:] == ["table-2!row-1", "table-2!row-2"]


def test_what_mysql_writes_with_its_null_has_its_escapes() -> None:
    written = "id\tname\tnote\n1\tPump A\tone\\ntwo\n2\tPump B\tC:\\\\tmp\n3\tPump C\t\\N\n"
    notes = [text.partition("note: ")[2] for text in texts("a.tsv", written).values()]
    assert notes == ["one two", "C:\\tmp", ""]


def test_units_under_names_belong_to_them() -> None:
    rows = [["Ship", "Length", "Speed"], ["", "m", "kn"], ["Ada", 12, 5], ["Bo", 14, 7]]
    expected = {
        "row-1": "Ship: Ada\nLength (m): 12\nSpeed (kn): 5",
        "row-2": "Ship: Bo\nLength (m): 14\nSpeed (kn): 7",
    }
    assert texts("a.csv", "\n".join(",".join(map(str, row)) for row in rows)) == expected
    assert texts("a.xlsx", make_xlsx(S=rows)) == expected
    named = texts("a.csv", "Ship,Length,Port\n,m,Sarn\nAda,12,Lund\nBo,14,Kel\n")
    assert set(named["row-1"].split("\n")) == {"Length: m", "Port: Sarn"}


def test_notes_below_the_rows_of_a_sheet_are_no_rows() -> None:
    rows = [
        ["Harbour", "Boats"],
        ["Sarn", 12],
        ["Lund", 14],
        [],
        ["Source: port office"],
        ["¹ old"],
    ]
    assert texts("a.xlsx", make_xlsx(S=rows)) == {"caption": "Source: port office\n¹ old", **ROWS}


def test_units_in_brackets_belong_to_the_names_above_them_where_no_number_is() -> None:
    rows = [["name", "species", "weight"], ["(at birth)", "[kind of goods]", "(in grams)"]]
    expected = "name (at birth): Clippy\nspecies (kind of goods): clip\nweight (in grams): 0.9"
    assert texts("a.xlsx", make_xlsx(S=[*rows, ["Clippy", "clip", 0.9]])) == {"row-1": expected}


def test_notes_scattered_over_the_cells_above_a_table_name_no_columns() -> None:
    notes = [["Lots", "", "of"], ["people", "write"], ["at", "", "the", "top"], ["of", "", "it"]]
    rows = [["Name", "Trade", "Age", "Town"], ["Ada", "weaver", 41, "Sarn"], ["Bo", "", 38, "Lund"]]
    assert texts("a.xlsx", make_xlsx(S=[*notes, *rows])) == {
        "caption": "Lots of\npeople write\nat the top\nof it",
        "row-1": "Name: Ada\nTrade: weaver\nAge: 41\nTown: Sarn",
        "row-2": "Name: Bo\nAge: 38\nTown: Lund",
    }


FEES = [["Berth", "Fee", "Days"], ["North", 30, 2], ["South", 25, 9]]
BELOW = {
    "table-2!row-1": "Berth: North\nFee: 30\nDays: 2",
    "table-2!row-2": "Berth: South\nFee: 25\nDays: 9",
}


@pytest.mark.parametrize("gap", ["\n", ",,\n", "\n\n"])
def test_tables_below_each_other_have_their_own_columns(gap: str) -> None:
    fees = "\n".join(",".join(map(str, row)) for row in FEES)
    assert texts("a.csv", f"{TABLE}{gap}{fees}\n") == ROWS | BELOW


@pytest.mark.parametrize("head", ["Quay,Berths", "Quay,Depth in metres"])
def test_one_column_of_numbers_is_named_anew_by_a_word_like_its_name(head: str) -> None:
    below = texts("a.csv", f"{TABLE}\n{head}\nNorth,30\nSouth,25\n")
    name = head.partition(",")[2]
    assert below == ROWS | {
        "table-2!row-1": f"Quay: North\n{name}: 30",
        "table-2!row-2": f"Quay: South\n{name}: 25",
    }


@pytest.mark.parametrize("value", ["N/A", "Unknown", "closed", "not counted", "Not counted"])
def test_a_record_without_its_number_after_an_empty_line_begins_no_table(value: str) -> None:
    below = texts("a.csv", f"{TABLE}\nRo,{value}\nKel,30\n")
    number = ROWS["row-1"].splitlines()[1].partition(":")[0]
    assert f"{number}: {value}" in below["row-3"]
    assert f"{number}: 30" in below["row-4"]


def test_tables_below_each_other_in_a_sheet_have_their_own_columns() -> None:
    rows = [["Harbour", "Boats"], ["Sarn", 12], ["Lund", 14], [], ["Fees, 2024"], *FEES]
    caption = {"table-2!caption": "Fees, 2024"}
    assert texts("a.xlsx", make_xlsx(S=rows)) == ROWS | caption | BELOW


def test_merged_cells_of_the_first_table_are_none_of_those_below() -> None:
    from openpyxl import load_workbook

    first = [["Quay", "Boats", None], [None, "May", "June"], ["Sarn", 12, 13], ["Lund", 14, 15]]
    book = load_workbook(io.BytesIO(make_xlsx(S=[*first, [], *FEES, [], *FEES])))
    book["S"].merge_cells("B1:C1")
    file = io.BytesIO()
    book.save(file)
    read = texts("a.xlsx", file.getvalue())
    assert read["row-1"] == "Quay: Sarn\nBoats May: 12\nBoats June: 13"
    third = {key.replace("table-2", "table-3"): text for key, text in BELOW.items()}
    assert {key: text for key, text in read.items() if "!" in key} == BELOW | third


def test_a_share_is_said_as_the_sheet_shows_it() -> None:
    from openpyxl import load_workbook

    rows = [["Name", "Share", "Rise", "Tons"], ["Alder", 0.25, -0.035, 3], ["Birch", "n/a", 1.5, 4]]
    book = load_workbook(io.BytesIO(make_xlsx(S=rows)))
    for cell in book["S"]["B"][1:]:
        cell.number_format = "0%"
    for cell in book["S"]["C"][1:]:
        cell.number_format = '0.0" "%'
    file = io.BytesIO()
    book.save(file)
    assert texts("a.xlsx", file.getvalue()) == {
        "row-1": "Name: Alder\nShare: 25%\nRise: -3.5%\nTons: 3",
        "row-2": "Name: Birch\nShare: n/a\nRise: 150%\nTons: 4",
    }


def test_files_written_into_cells_and_values_are_no_text() -> None:
    picture = "data:image/png;base64," + "iVBORw0KGgo" * 90
    assert texts("a.csv", f"Ship,Photo\nAda,{picture}\n") == {"row-1": "Ship: Ada"}
    assert texts("a.json", f'[{{"ship": "Ada", "photo": "{picture}"}}]') == {"row-1": "ship: Ada"}
    assert texts("a.jsonl", f'{{"ship": "Ada", "photo": "{picture}"}}\n') == {"row-1": "ship: Ada"}


BERTHS = [["Quay", "Depth"], ["Four", 7], ["Five", 8], ["Six", 9]]
SHIPS = [["Ship", "Captain"], ["Astrid", "Ida Brandt"], ["Belle", "Ole Brekke"]]


def _beside(left: list, right: list) -> list:
    longest = max(len(left), len(right))
    wide = [[*rows, *[["", ""]] * (longest - len(rows))] for rows in (left, right)]
    return [[*a, None, *b] for a, b in zip(*wide, strict=True)]


def test_tables_beside_each_other_have_each_their_own_rows():
    rows = [["Port of Sundport"], *_beside(BERTHS, SHIPS)]
    assert texts("a.xlsx", make_xlsx(S=rows)) == {
        "caption": "Port of Sundport",
        "row-1": "Quay: Four\nDepth: 7",
        "row-2": "Quay: Five\nDepth: 8",
        "row-3": "Quay: Six\nDepth: 9",
        "table-2!row-1": "Ship: Astrid\nCaptain: Ida Brandt",
        "table-2!row-2": "Ship: Belle\nCaptain: Ole Brekke",
    }


def test_tables_of_as_many_rows_beside_each_other_are_told_by_a_name_that_both_have():
    read = texts("a.xlsx", make_xlsx(S=_beside(BERTHS[:3], [["Quay", "Owner"], *SHIPS[1:]])))
    assert read["row-1"] == "Quay: Four\nDepth: 7"
    assert read["table-2!row-1"] == "Quay: Astrid\nOwner: Ida Brandt"


def test_an_empty_column_within_a_table_divides_no_rows():
    read = texts("a.xlsx", make_xlsx(S=_beside(BERTHS[:3], SHIPS)))
    whole = {"Quay: Four", "Depth: 7", "Ship: Astrid", "Captain: Ida Brandt"}
    assert set(read["row-1"].split("\n")) == whole
