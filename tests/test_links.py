"""Links between documents: what a document is about is related to what it links to."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import ANY

import polars as pl
import pytest

from conftest import Engine
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.extraction.rules.nlp import NlpOptions, extract_nlp
from graphrag_pipeline.ingest.reading.html import read_html
from graphrag_pipeline.ingest.reading.markdown import read_markdown
from graphrag_pipeline.ingest.reading.model import ReadingOptions
from graphrag_pipeline.ingest.reading.rst import read_rst

NOTES = {
    "Quay 4.md": "# Quay 4\n\nSee [[Crane 7]] and [[Harbour/Quay 5|the fifth quay]].\n",
    "Crane 7.md": "# Crane 7\n\nBuilt by [[Hansa Works]].\n",
    "Harbour/quay-5.md": "# Quay 5\n\nIt lies behind [the crane](../Crane%207.md#jib).\n",
}


def read(text: str) -> str:
    result = read_markdown(Path("a.md"), text.encode(), ReadingOptions())
    return result.documents[0].text


def links_of(text: str, title: str = "Quay 4") -> list[tuple[str, str, str]]:
    chunks = pl.DataFrame({"id": ["a"], "text": [text], "title": [title]})
    extraction = extract_nlp(chunks, NlpOptions())
    by_link = extraction.relationships.filter(pl.col("type") == "links to")
    ends = {*by_link["source"], *by_link["target"]}
    assert {title.casefold() for title in ends} <= {
        title.casefold() for title in extraction.entities["title"]
    }
    return by_link.select("source", "target", "description").rows()


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("See [[Crane 7]].", "See [Crane 7](Crane%207.md)."),
        ("[[Harbour/Quay 5|the quay]]", "[the quay](Harbour/Quay%205.md)"),
        ("| [[Quay 5\\|five]] |", "| [five](Quay%205.md) |"),
        ("[[Crane 7#Jib]] ![[Plan.png]]", "[Crane 7](Crane%207.md) ![Plan.png](Plan.png)"),
        ("Below, [[#The end]].", "Below, The end."),
        ("`[[Crane]]` x\n\n```\n[[Crane]]\n```", "`[[Crane]]` x\n\n```\n[[Crane]]\n```"),
        ("[[1, 2]] and [[3]](x)", "[[1, 2]] and [[3]](x)"),
    ],
)
def test_links_between_notes_are_read_as_the_links_they_stand_for(written, text):
    assert read(f"A text.\n\n{written}\n") == f"A text.\n\n{text}"


@pytest.mark.parametrize(
    ("written", "target"),
    [
        ("See :doc:`crane-7`.", "crane 7"),
        ("See :doc:`the big one </harbour/Crane_7>`.", "Crane 7"),
        ("See `the crane <../Crane%207.rst#jib>`_.", "Crane 7"),
        ("See `the crane <Crane 7.rst>`__.", "Crane 7"),
        ("See `the crane <https://a.org/crane.html>`_.", ""),
        ("See :ref:`the crane <crane>` and `Crane 7`_ and ``:doc:``.", ""),
    ],
)
def test_references_of_restructured_text_relate_documents(written, target):
    data = f"Quay 4\n======\n\nA text. {written}\n".encode()
    (document,) = read_rst(Path("a.rst"), data, ReadingOptions()).documents
    found = [(source, end) for source, end, _ in links_of(document.text, document.title)]
    assert found == ([("Quay 4", target)] if target else [])


PAGE = """<title>Quay 4</title><nav><a href="a.html">Other</a> <a href="b.html">Pages</a></nav>
<h1>Quay <a href="four.html">4</a></h1><p>It was built by<a href="firms/Hansa%20Works.html#top"> the
<b>firm</b></a> in 1901.</p><pre><a href="code.html">x = 1</a></pre>{more}"""


@pytest.mark.parametrize(
    ("more", "text", "targets"),
    [
        ("", "", []),
        ('<p>See <a href="../crane-7.htm">[1]</a>.</p>', "See [1].", []),
        ('<p>See <a href="https://a.org/crane.html">it</a>.</p>', "See it.", []),
        ("<p>See \x02it\x0399\x04.</p>", "See it.", []),
        (
            "<p>See <a class=x href=crane_7.html>it</a>.</p>",
            "See [it](crane_7.html).",
            ["crane 7"],
        ),
        (
            '<table><tr><th>Name<th>At<tr><td><a href="crane-7.htm">C7</a><td>North</table>',
            "| [C7](crane-7.htm) | North |",
            ["crane 7"],
        ),
    ],
)
def test_links_of_pages_relate_documents_by_their_sentence(more, text, targets):
    result = read_html(Path("a.html"), PAGE.format(more=more).encode(), ReadingOptions())
    (document,) = result.documents
    assert "It was built by [the firm](firms/Hansa%20Works.html) in 1901." in document.text
    assert document.title == "Quay 4"
    assert text in document.text
    assert links_of(document.text, document.title) == [
        ("Quay 4", "Hansa Works", "It was built by the firm in 1901."),
        *(("Quay 4", target, ANY) for target in targets),
    ]


def test_a_link_relates_two_documents_and_its_sentence_is_the_evidence():
    text = "# Quay 4\n\nOwned by [the firm](baltor_freight.html#x). Old. ![Crane 7](Crane%207.md)"
    assert links_of(text) == [
        ("Quay 4", "baltor freight", "Owned by the firm."),
        ("Quay 4", "Crane 7", "Crane 7"),
    ]


def test_no_relationship_is_made_by_links_to_other_sites_pictures_and_the_page_itself():
    addresses = ("https://a.org/b.md", "//a.org/b.md", "mailto:a@b.md", "#x", "b.png", "Quay-4.md")
    text = " ".join(f"See [it]({address}). " for address in (*addresses, "README.md"))
    assert links_of(text) == []


def test_links_follow_a_changing_corpus_as_a_fresh_build_has_them(tmp_path):
    settings = Settings()
    changed, fresh, again = (Engine(tmp_path / name, settings) for name in "abc")
    for files in (
        {"Quay 4.md": NOTES["Quay 4.md"], "gone.md": "# Pier\n\nNear [[Quay 4]].\n"},
        {**NOTES, "gone.md": None},
    ):
        changed.write(files)
        _build(changed)
    for engine in (fresh, again):
        engine.write(NOTES)
        _build(engine)
    queries = (
        "SELECT source, target, type, description, weight FROM relationships ORDER BY ALL",
        "SELECT title, type, description, degree, frequency FROM entities ORDER BY ALL",
        "SELECT * EXCLUDE (batch) FROM entity_mentions ORDER BY ALL",
    )
    rows = [[_rows(engine, query) for query in queries] for engine in (changed, fresh, again)]
    assert rows[0] == rows[1] == rows[2]
    pairs = {frozenset(row[:2]) for row in rows[0][0] if row[2] == "links to"}
    assert {frozenset(("Quay 4", "Crane 7")), frozenset(("Quay 4", "Quay 5"))} <= pairs
    assert frozenset(("Quay 5", "Crane 7")) in pairs


def _build(engine: Engine) -> None:
    for batch in engine.cut():
        engine.ingest(batch.key)
    engine.merge()


def _rows(engine: Engine, query: str) -> list[tuple]:
    with engine.store.read() as con:
        return con.execute(query).fetchall()
