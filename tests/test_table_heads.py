"""Tables of web pages: their heads name columns, and no entities; their cells stand in columns."""

import polars as pl
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
