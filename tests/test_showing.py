"""How results show on a prompt and in a notebook."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest

from graphrag_pipeline import Index, Settings
from graphrag_pipeline.query import Answer, Ask, Citation, Record, Retrieval

HOSTILE = '<script>alert(1)</script> & "x" <img src=x onerror=alert(2)>\n\x1b[31m\n'
HARMLESS = {
    *("div", "p", "b", "small", "table", "thead", "tbody", "tr", "th", "td"),
    *("details", "summary", "img", "a"),
}
IN_A_KERNEL = """
import sys, types

class Shell:
    config = {"IPKernelApp": {}}

sys.modules["IPython"] = types.ModuleType("IPython")
sys.modules["IPython"].get_ipython = Shell
sys.modules["ipywidgets"] = None
from pathlib import Path
from graphrag_pipeline.store.index_store import IndexStore, memory_database

memory_database().close()
with IndexStore(Path(sys.argv[1]) / "index.duckdb").transaction() as con:
    print(con.execute("SELECT count(*) FROM documents").fetchone())
"""


class Read(HTMLParser):
    """What a browser would make of HTML: its elements with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def citation(number: int, text: str = "She was Heron.", uri: str = "/a/b.md") -> Citation:
    return Citation(
        number=number, document_id="d", document_title=HOSTILE, uri=uri, chunk_id="c",
        start_char=1000, end_char=1014, text=text,
    )  # fmt: skip


def retrieval(*records: Record) -> Retrieval:
    return Retrieval(
        method="local", query=HOSTILE, records=records, citations=(citation(1),),
        timings={"total": 0.25}, parameters={}, release="r", steps=(HOSTILE,),
    )  # fmt: skip


def answer(text: str, *citations: Citation, generated: bool = True) -> Answer:
    records = (Record("chunk", "c", 1, HOSTILE, HOSTILE, 1.0, 1234),)
    return Answer(
        query=HOSTILE, method="local", text=text, citations=citations,
        retrieval=retrieval(*records), generated=generated, model_calls=1, prompt_tokens=10,
        completion_tokens=5, cost=0.0123, timings={"total": 0.5}, release="r", failures=(HOSTILE,),
    )  # fmt: skip


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("showing")
    (folder / "documents").mkdir()
    (folder / "documents" / "people.txt").write_text(
        "Anna Berg met Carl Dahl in Oslo. Carl Dahl works with Eva Falk in Bergen.\n"
    )
    return Index(folder / "home", Settings(embeddings={"dimensions": 32}))


def test_a_result_takes_two_short_lines_on_a_prompt_whatever_a_document_says() -> None:
    long = answer(HOSTILE * 1000, *(citation(n) for n in range(500)))
    ask = Ask(question=HOSTILE, history=[("user", "x" * 5000)], where={"title": ["y" * 900]})
    for result in (long, long.retrieval, long.citations[0], long.retrieval.records[0], ask):
        shown = repr(result)
        assert shown.count("\n") <= 1
        assert len(shown) <= 220
        assert "\x1b" not in shown
    assert "500 sources" in repr(long)


def test_what_an_index_gives_back_takes_two_lines_on_a_prompt(index: Index) -> None:
    documents = index.home.parent / "documents"
    plan, update = index.plan(documents), index.update(documents)
    assert "1 file added" in repr(plan)
    assert "1 file added" in repr(update)
    assert f"{update.counts['entities']} entities" in repr(update)
    exported = index.export("graphml", index.home.parent / "graph.graphml")
    for result in (
        *(plan, update, exported, index, index.settings, index.releases()[0], index.check()),
        *(index.purge(dry_run=True), index.answer("Who met Carl Dahl?")),
    ):
        assert repr(result).count("\n") <= 1
        assert len(repr(result)) <= 220


def test_an_answer_in_a_notebook_shows_its_sources_with_quote_and_place() -> None:
    page = Read(answer("Heron [1].", citation(1), citation(2, "A" * 500))._repr_html_())
    for part in (
        "Heron [1].",
        "[1]",
        "She was Heron.",
        "[2]",
        "/a/b.md, characters 1,000 to 1,014",
    ):
        assert part in page.text
    assert "A" * 500 in page.text
    assert HOSTILE.split("\n")[0] in page.text


def test_an_answer_that_no_model_wrote_shows_each_quote_once() -> None:
    quoted = answer("No model.\n\n- She was Heron. [1]\n", citation(1), generated=False)
    assert Read(quoted._repr_html_()).text.count("She was Heron.") == 1


def test_nothing_that_a_document_says_becomes_html() -> None:
    bad = 'javascript:alert(1)" onclick="alert(2)'
    hostile = answer(HOSTILE, citation(1, HOSTILE, bad), citation(2, HOSTILE, f"http://x/{bad}"))
    for html in (hostile._repr_html_(), hostile.retrieval._repr_html_()):
        elements = Read(html).elements
        assert {tag for tag, _ in elements} <= HARMLESS - {"img"}
        names = {name for _, attributes in elements for name in attributes}
        assert names <= {"style", "href", "rel"}
        links = [attributes["href"] for tag, attributes in elements if tag == "a"]
        assert all(link and link.startswith("http://x/") for link in links)


def test_evidence_in_a_notebook_shows_the_best_of_every_kind() -> None:
    records = [
        Record(kind, f"{kind}{n}", n, f"{kind} {n}", "text", 1.0, 1500)
        for kind in ("entity", "relationship", "chunk")
        for n in range(100)
    ]
    page = Read(retrieval(*records)._repr_html_())
    for part in ("entity 0", "relationship 0", "chunk 0", "1,500", "100 entities"):
        assert part in page.text
    assert page.text.count("text") < 30


def test_an_index_in_a_notebook_is_a_picture_without_scripts(index: Index) -> None:
    index.update(index.home.parent / "documents")
    [image] = [a for tag, a in Read(index._repr_html_()).elements if tag == "img"]
    kind, _, data = str(image["src"]).partition(",")
    drawn = ET.fromstring(base64.b64decode(data))
    assert kind == "data:image/svg+xml;base64"
    assert "Oslo" in "".join(drawn.itertext())
    assert {re.sub("{.*}", "", e.tag) for e in drawn.iter()} <= {"svg", "path", "text", "rect"}


def test_an_empty_index_in_a_notebook_says_that_nothing_is_published(tmp_path: Path) -> None:
    assert "published" in Read(Index(tmp_path / "none")._repr_html_()).text


def test_an_index_opens_in_a_notebook_that_has_no_widgets(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", IN_A_KERNEL, str(tmp_path)], capture_output=True, text=True
    )
    assert run.stdout == "(0,)\n", run.stderr
