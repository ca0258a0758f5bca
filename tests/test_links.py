"""Links between documents: what a document is about is related to what it links to."""

from __future__ import annotations

import random
from pathlib import Path
from unittest.mock import ANY

import polars as pl
import pytest

from conftest import Engine, build_graph
from graphrag_pipeline import Index
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.extraction.rules.nlp import NlpOptions, extract_nlp
from graphrag_pipeline.graph.resolution.resolving import resolution_current
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
        ("See :ref:`crane-7`.", "crane 7"),
        ("See :ref:`the crane <crane-7>`.", "crane 7"),
        ("See :ref:`genindex` and `Crane 7`_ and ``:doc:``.", ""),
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


def test_a_document_that_a_link_calls_by_a_common_word_is_more_than_a_concept():
    text = "The gearbox is in [gearbox](gearbox.md)."
    chunks = pl.DataFrame({"id": ["a"], "text": [text], "title": ["Turbine handbook"]})
    named = extract_nlp(chunks, NlpOptions()).entities
    assert {"Turbine handbook", "gearbox"} <= {*named.filter(type="OTHER")["title"]}


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


HANDBOOK = """# Quay 4 handbook

The quay lies in Odense. Baltor Freight rents it from the Port of Odense.
"""
CRANE = """# Crane seven

Crane seven stands on [[q4]], see [the plan](notes/q4.md). [[Hansa Works]] built it.
"""
LINKING = {"notes/q4.md": HANDBOOK, "crane.md": CRANE}


def linked_with(engine: Engine, title: str) -> set[str]:
    query = "SELECT source, target FROM relationships WHERE type = 'links to'"
    pairs = [{*pair} for pair in _rows(engine, query)]
    return {end for pair in pairs if title in pair for end in pair - {title}}


def test_a_link_by_file_ends_at_what_the_title_of_its_document_names(tmp_path):
    engine = build_graph(tmp_path, LINKING)
    assert linked_with(engine, "Crane seven") == {"Quay 4 handbook", "Hansa Works"}
    assert _rows(engine, "SELECT method, rule, title, canonical_title FROM entity_aliases") == [
        ("rule", "file name", "q4", "Quay 4 handbook")
    ]
    assert _rows(engine, "SELECT title FROM entities WHERE title = 'q4'") == []


def test_a_reference_ends_at_the_title_of_the_document_that_has_its_label(tmp_path):
    helmets = ".. _helmet-rule:\n\nWhat one wears\n==============\n\nEverybody wears one.\n"
    manual = "Harbour manual\n==============\n\nSee :ref:`the rule <helmet-rule>`.\n"
    engine = build_graph(tmp_path, {"a/helmets.rst": helmets, "manual.rst": manual})
    assert linked_with(engine, "Harbour manual") == {"What one wears"}


def test_each_of_many_links_by_file_ends_at_a_title(tmp_path):
    notes = {f"n{n}.md": f"# Handbook of quay {n}\n\nSee [[n{n + 1}]].\n" for n in range(12)}
    engine = build_graph(tmp_path, {**notes, "n12.md": "# Handbook of quay 12\n\nThe end.\n"})
    for n in range(1, 12):
        ends = {f"Handbook of quay {n - 1}", f"Handbook of quay {n + 1}"}
        assert linked_with(engine, f"Handbook of quay {n}") == ends


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"notes/q4.md": None}, "there is no such document"),
        ({"b/q4.md": "# Another\n\nA text."}, "two files are called so"),
        ({"b.md": "# Quay 4 handbook\n\nA text of its own."}, "two documents have the title"),
        ({"b.md": "# Q4\n\nWhat Q4 is."}, "it is the title of another"),
        (
            {"b.md": "# Year\n\nBaltor Freight says that q4 was a good quarter for Q4 and Q4.\n"},
            "text",
        ),
    ],
)
def test_a_name_that_is_not_of_one_file_alone_stays_what_it_is(tmp_path, files, why):
    engine = build_graph(tmp_path, {**LINKING, **files})
    linked = {title.casefold() for title in linked_with(engine, "Crane seven")}
    assert linked == {"q4", "hansa works"}, why


@pytest.mark.parametrize(
    ("line", "name"),
    [("never,q4,Quay 4 handbook", "q4"), ("rename,Quay 4 handbook,Quay Four", "Quay Four")],
)
def test_what_the_user_says_of_a_file_and_a_title_prevails(tmp_path, line, name):
    aliases = tmp_path / "aliases.csv"
    aliases.write_text(f"action,a,b\n{line}\n")
    engine = build_graph(tmp_path / "a", LINKING, resolution={"aliases_file": str(aliases)})
    assert linked_with(engine, "Crane seven") == {name, "Hansa Works"}


def test_no_link_is_followed_to_a_title_where_names_are_not_resolved(tmp_path):
    engine = build_graph(tmp_path, LINKING, resolution={"method": "off"})
    assert linked_with(engine, "Crane seven") == {"q4", "Hansa Works"}


def test_a_record_is_not_what_a_link_calls_the_file_that_holds_it(tmp_path):
    files = {"crane.md": CRANE, "q4.csv": "name,town\nBaltor Freight,Odense\n"}
    engine = build_graph(tmp_path, files)
    assert ("Baltor Freight",) in _rows(engine, "SELECT title FROM documents WHERE uri <> source")
    assert linked_with(engine, "Crane seven") == {"q4", "Hansa Works"}


STEPS = {
    "notes/q4.md": (HANDBOOK, HANDBOOK.replace("Quay 4 handbook", "The fourth quay"), None),
    "old/q4.md": (None, "# Pier\n\nThe pier of Odense.", HANDBOOK),
    "crane.md": (CRANE, None, CRANE.replace("[[q4]]", "[[The fourth quay]]")),
    "year.md": (
        None,
        "# Year\n\nBaltor Freight likes Q4. Q4 was good.",
        "# Year\n\nSee [[q4|it]].",
    ),
}


@pytest.mark.parametrize("seed", range(4))
def test_links_by_file_after_any_history_are_those_of_a_fresh_build(tmp_path, seed):
    chance = random.Random(seed)
    engine = Engine(tmp_path / "history", Settings())
    files: dict[str, str] = {}
    ends = set()
    for number in range(5):
        name = chance.choice(sorted(STEPS)) if number else "crane.md"
        text = chance.choice([t for t in STEPS[name] if t != files.get(name)]) if number else CRANE
        engine.write({name: text})
        engine.index()
        files = {**files, name: text} if text else {n: t for n, t in files.items() if n != name}
        with engine.store.read() as con:
            assert resolution_current(con, engine.settings)
        ends |= linked_with(engine, "Crane seven")
        if number < 2:
            continue
        fresh = build_graph(tmp_path / str(number), files)
        for query in (
            "SELECT source, target, type, description, weight, pmi FROM relationships ORDER BY ALL",
            "SELECT title, type, description, degree, frequency FROM entities ORDER BY ALL",
            "FROM entity_aliases ORDER BY ALL",
        ):
            assert _rows(engine, query) == _rows(fresh, query), (number, name)
    assert "q4" in ends


def test_a_link_by_file_follows_a_document_that_is_renamed(tmp_path):
    engine = build_graph(tmp_path, {"notes/quay.md": HANDBOOK, "crane.md": CRANE})
    assert linked_with(engine, "Crane seven") == {"q4", "Hansa Works"}
    engine.write({"notes/quay.md": None, "notes/q4.md": HANDBOOK})
    engine.index()
    assert linked_with(engine, "Crane seven") == {"Quay 4 handbook", "Hansa Works"}
    engine.write({"notes/q4.md": None, "q5.md": HANDBOOK})
    engine.index()
    assert linked_with(engine, "Crane seven") == {"q4", "Hansa Works"}


def test_a_caller_sees_the_title_of_a_linked_document_only_where_he_may_see_that(tmp_path):
    texts = {"notes/q4.md": HANDBOOK, "open/crane.md": CRANE, "notes/a.md": "# A\n\nA text."}
    for name, text in texts.items():
        path = tmp_path / "documents" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    rules = [
        {"match": "/notes/", "labels": ["staff"]},
        {"match": "/open/", "labels": ["public", "staff"]},
    ]
    access = {"mode": "filtered", "rules": rules}
    index = Index(Settings.exactly({"home": str(tmp_path / "home"), "access": access}))
    index.update(tmp_path / "documents")
    names = {}
    with index.open() as engine:
        for label in ("public", "staff"):
            rows = engine.view({label}).index.rows("SELECT known_as FROM entity_names")
            names[label] = {row["known_as"] for row in rows}
    assert {"q4", "Quay 4 handbook"} <= names["staff"]
    assert "q4" in names["public"]
    assert "Quay 4 handbook" not in names["public"]


def _build(engine: Engine) -> None:
    for batch in engine.cut():
        engine.ingest(batch.key)
    engine.merge()


def _rows(engine: Engine, query: str) -> list[tuple]:
    with engine.store.read() as con:
        return con.execute(query).fetchall()
