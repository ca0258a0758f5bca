"""Cells that are written in HTML are read as text where their column is; else they stay."""

import json

import pytest
from read_files import only, read

SHOP = """sku,product,description
A1,Ladies&#039; Boots,"<p>Warm boots.</p><p>Made in Kelm by <b>Ostra &amp; Sons</b>.</p>"
A2,AT&amp;T Caf&eacute; Mug,<p>For hands &lt; 9 cm.</p>
A3,R&D Mug,<img src="mug.png">
"""


def test_cells_written_in_html_are_text() -> None:
    boots, mug, plain = read("shop.csv", SHOP).documents
    assert boots.title == "Ladies' Boots"
    assert "description: Warm boots. Made in Kelm by Ostra & Sons." in boots.text
    assert mug.title == "AT&T Café Mug"
    assert "description: For hands < 9 cm." in mug.text
    assert plain.title == "R&D Mug"
    assert 'description: <img src="mug.png">' in plain.text
    for document in (boots, mug):
        first = document.blocks[0]
        assert document.text[first.start : first.end] == f"product: {document.title}"


@pytest.mark.parametrize("name", ["posts.json", "posts.jsonl"])
def test_fields_written_in_html_are_text(name: str) -> None:
    post = {"id": "7", "title": "Europe&#39;s ferry", "tags": ["Quay &amp; Tide"]}
    post["content"] = "<!-- wp:list --><ul><li>Adults &euro;12</li><li>Children &euro;6</li></ul>"
    written = json.dumps([post] if name == "posts.json" else post)
    document = only(read(name, written))
    assert document.title == "Europe's ferry"
    assert document.text.startswith("- Adults €12\n- Children €6")
    assert "Quay & Tide" in document.text + str(document.metadata)


@pytest.mark.parametrize(
    "content",
    [
        "sign,reference\n<,&lt;\n&,&amp;\n©,&copy;\n",
        "question,answer\nWhich tag is bold in HTML?,Use <b>text</b>\nAnd less?,Write &lt; there\n",
        "name,type\nxs,List<Integer>\nys,Map<String>\n",
        "title,notes\nRows,A <tr> holds <td>\nKelm,See <b>there</b>\n",
        "host,path\na,?x=1&lt=2\nb,?y=1&amp=3\n",
        "team,motto\nR&D,Work & play &amp; rest\n",
        "id,payload\n1,<script>alert(1)</script>\n",
    ],
)
def test_what_is_not_clearly_html_stays_as_it_is(content: str) -> None:
    said = "\n".join(document.text for document in read("a.csv", content).documents)
    for cell in (cell for row in content.split("\n")[1:] for cell in row.split(",") if cell):
        assert cell in said


def test_paragraphs_of_a_forum_about_html_are_text() -> None:
    rows = ["title,body", "How is < written in HTML?,<p>As <code>&lt;</code> in all pages</p>"]
    text = only(read("a.csv", "\n".join([*rows, ""]))).text
    assert "As < in all pages" in text
    rows[0], rows[1] = "name,about", rows[1].replace("<", "&lt;", 1)
    document = only(read("a.csv", "\n".join([*rows, ""])))
    assert document.title == "How is &lt; written in HTML?"
