"""The overview page: what it tells is in the index, it is safe to open, and it stays small."""

from __future__ import annotations

import html
import re
import shutil
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import duckdb
import pytest
from browser import browser as browser
from browser import complaints_of
from query_fixture import DOCUMENTS, publish

from graphrag_pipeline.cli import app as cli
from graphrag_pipeline.core.errors import InputError, NothingPublishedError
from graphrag_pipeline.pages.overview import write_report
from graphrag_pipeline.pages.overview.gathering import folder_name, gather
from graphrag_pipeline.pages.overview.model import Excerpt, Note, Rows
from graphrag_pipeline.query import open_release

HOSTILE = '<script>alert("1")</script><img src=http://evil.example/x onerror=alert(2)>'
CITING = (
    "Scrooge kept a clerk [Data: Entities (0, 2, 99999); Relationships (1, +more)]. "
    "More is told [records: 7] of it elsewhere [Data: Reports (99999)]."
)
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """What a page is made of: ids, links, sources, scripts, and tags that were left open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.handlers: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        given = dict(attrs)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        self.loaded += [value for name, value in attrs if name in ("src", "srcset", "data")]
        self.handlers += [name for name in given if name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.words += data


def opened(home: Path, name: str = "published.duckdb") -> duckdb.DuckDBPyConnection:
    return duckdb.connect(home / name)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """An index that no model has touched."""
    place = publish(tmp_path_factory.mktemp("plain"))
    with opened(place) as con:
        con.execute(
            """INSERT INTO extractions
               SELECT id, 'nlp', 'v', 'ok', NULL, 1, 0, 0, 0, batch, 'v', 1 FROM chunks"""
        )
    return place


@pytest.fixture(scope="module")
def home(tmp_path_factory, plain):
    """An index with model calls, failures and texts that mean no good."""
    place = tmp_path_factory.mktemp("published") / "home"
    shutil.copytree(plain, place)
    with opened(place) as con:
        con.execute(
            """UPDATE hierarchy_reports SET title = $hostile, summary = $hostile, writer = 'gpt-x',
                   rating_explanation = $hostile, findings = [struct_pack(
                       summary := $hostile, explanation := $citing, chunk_id := NULL,
                       start_char := NULL, end_char := NULL)]
               WHERE community_id = (SELECT id FROM communities WHERE level = 0
                                     ORDER BY size DESC LIMIT 1)""",
            {"hostile": HOSTILE, "citing": CITING},
        )
        con.execute("UPDATE entities SET description = ? WHERE title = 'Scrooge'", [HOSTILE])
        con.execute(
            """INSERT INTO llm_calls VALUES
               ('1', now(), 'reports', NULL, 'gpt-x', 1000, 200, 1.25, 1, false, NULL),
               ('2', now(), 'reports', NULL, 'gpt-x', 0, 0, 0, 1, true, NULL)"""
        )
        con.execute(
            """INSERT INTO extractions SELECT id, 'llm', 'v', 'failed', 'no', 0, 0, 0, 0, batch,
               'v', 1
               FROM chunks LIMIT 1"""
        )
        con.execute("INSERT INTO batches VALUES ('b1', now(), '/home/me/docs', 'ok', 4, 0, 0, 1)")
        con.execute(
            "INSERT INTO batch_sources VALUES ('b1', '/home/me/docs/bad.pdf', 'add', 'x', 1, "
            "'quarantined', 0)"
        )
        con.execute("INSERT INTO quarantine VALUES ('b1', '/home/me/docs/bad.pdf', 'it is torn')")
    return place


def made(home: Path, folder: Path) -> tuple[str, Page]:
    done = write_report(home, folder / "report.html")
    text = Path(done.path).read_text()
    assert done.n_bytes == len(text.encode())
    return text, Page(text)


def test_places_link_to_the_server_that_the_settings_name(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 'rel="noreferrer"' not in made(home, tmp_path)[0]
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))
    monkeypatch.setenv("GRAPHRAG_SERVER__ADDRESS", "https://graph.example.com")
    text, _ = made(home, tmp_path)
    links = {html.unescape(link) for link in re.findall(r'<a href="(https://[^"]+)"', text)}
    release = read(home)["release"]
    with open_release(home) as index:
        rows = index.rows("SELECT id, text FROM documents")
    known = {row["id"]: row["text"] for row in rows}
    assert links
    for link in links:
        parts = urlsplit(link)
        values = dict(parse_qsl(parts.query))
        assert (values["release"], values["collection"]) == (release, "default")
        quote = known[parts.path.removeprefix("/documents/")]
        assert quote[int(values["start"]) : int(values["end"])]


def read(home: Path) -> Rows:
    with open_release(home) as index:
        return gather(index)


def notes(overview: Rows) -> Iterator[Note]:
    for chapter in overview["chapters"]:
        yield from chapter["notes"]


@pytest.fixture(scope="module")
def page(home, tmp_path_factory):
    return made(home, tmp_path_factory.mktemp("page"))


def test_the_page_is_whole_and_needs_nothing_else(page):
    text, parsed = page
    assert parsed.open == []
    assert parsed.loaded == []
    assert "unsafe-inline" not in text
    assert all(link.startswith("#") and link[1:] in parsed.ids for link in parsed.links)
    assert len(parsed.ids) == len(set(parsed.ids))
    assert "url(" not in text
    assert "@import" not in text


def test_texts_from_documents_and_models_stay_texts(page):
    text, parsed = page
    assert parsed.tags.count("script") == 1
    assert not parsed.handlers
    assert "img" not in parsed.tags
    assert text.count("<script>alert") == 0
    assert parsed.words.count(HOSTILE) >= 3


def test_references_become_notes_on_what_they_name(home, page):
    text, parsed = page
    assert "[Data:" not in text
    assert "99999" not in text
    found = next(n for n in notes(read(home)) if n.entities)
    assert [entity.title for entity in found.entities] == ["Scrooge", "Bob Cratchit"]
    assert found.relationships == ["Scrooge – Bob Cratchit"]
    assert found.passage
    assert {"clerk", "Scrooge"} <= set(re.findall(r"\w+", found.passage.quote))
    assert f"note-{found.number}" in parsed.ids
    assert "Scrooge kept a clerk." in parsed.words


def test_every_passage_stands_where_the_page_says(home, plain):
    for place in (home, plain):
        overview = read(place)
        shown = [note.passage for note in notes(overview)]
        shown += [relationship["passage"] for relationship in overview["relationships"]]
        passages = [passage for passage in shown if isinstance(passage, Excerpt)]
        assert len(passages) > 8
        for passage in passages:
            text = DOCUMENTS[passage.title]
            assert text[passage.start : passage.end] == passage.quote
            assert passage.before.removeprefix("… ") + passage.quote in text
            assert passage.quote + passage.after.removesuffix(" …") in text


def test_a_passage_of_a_document_with_pages_says_its_page(plain, tmp_path):
    assert "page 2, characters" not in made(plain, tmp_path)[1].words
    place = tmp_path / "home"
    shutil.copytree(plain, place)
    with opened(place) as con:
        con.execute("UPDATE documents SET page_starts = [0, 20]")
    shown = re.findall(r", page (\d), characters (\d+)–", made(place, tmp_path)[1].words)
    assert {page for page, _ in shown} == {"1", "2"}
    assert all((page == "2") == (int(start) >= 20) for page, start in shown)


def test_the_page_says_what_was_read_what_failed_and_what_it_cost(page):
    _, parsed = page
    words = re.sub(r"\s+", " ", parsed.words)
    assert "4 documents, about" in words
    assert "14 names" in words
    assert "1 file or record could not be read" in words
    assert "bad.pdf: it is torn" in words
    assert "/home/me" not in words
    assert "1 passage could not be analysed" in words
    assert "1 model call, 1,200 tokens, $1.25" in words
    assert "written by the language model gpt-x" in words
    assert "No language model was used" not in words


def test_an_index_by_rule_says_that_nobody_has_written_it(plain, tmp_path):
    _, parsed = made(plain, tmp_path)
    words = re.sub(r"\s+", " ", parsed.words)
    assert "No language model was used" in words
    assert "Nothing was spent" in words
    assert "quoted word for word" in words
    assert "林黛玉是贾宝玉的表妹,她很会写诗。" in words
    assert "No earlier release is kept" in words


def test_a_release_that_changed_nothing_says_so_in_a_sentence(plain, tmp_path):
    (tmp_path / "releases").mkdir()
    for place in ("published.duckdb", "releases/r1.duckdb", "releases/r0.duckdb"):
        shutil.copy(plain / "published.duckdb", tmp_path / place)
    with opened(tmp_path, "releases/r0.duckdb") as con:
        con.execute("UPDATE releases SET id = 'r0', created_at = created_at - INTERVAL 1 DAY")
    _, parsed = made(tmp_path, tmp_path)
    assert "Nothing, since release r0." in parsed.words
    assert "themes of all levels" not in parsed.words


def test_what_changed_since_the_release_before_is_told(plain, tmp_path):
    (tmp_path / "releases").mkdir()
    for place in ("published.duckdb", "releases/r1.duckdb", "releases/r0.duckdb"):
        shutil.copy(plain / "published.duckdb", tmp_path / place)
    with opened(tmp_path, "releases/r0.duckdb") as con:
        con.execute("UPDATE releases SET id = 'r0', created_at = created_at - INTERVAL 1 DAY")
        con.execute("DELETE FROM documents WHERE title = 'Marie Curie'")
    overview = read(tmp_path)
    assert overview["changed_since"] == "r0"
    documents = next(change for change in overview["changes"] if change["what"] == "documents")
    assert [documents[name] for name in ("before", "after", "entered")] == [3, 4, 1]
    _, parsed = made(tmp_path, tmp_path)
    assert "Since release r0" in parsed.words
    assert "themes of all levels" in parsed.words


def crowded(home: Path, target: Path) -> Path:
    """Add hundreds of communities with texts that are far too long."""
    shutil.copytree(home, target)
    with opened(target) as con:
        con.execute(
            """INSERT INTO hierarchy_communities
               SELECT 'graph', 'many' || n, 1000 + n, 0, 3, NULL, repeat('x', 300), 500 - n, 9
               FROM range(400) t(n)"""
        )
        con.execute(
            """INSERT INTO hierarchy_reports BY NAME
               SELECT 'graph' AS hierarchy, 'r' || c.id AS id, c.id AS community_id, 0 AS level,
                      repeat('Überschrift', 30) AS title, repeat('a b ', 5000) AS summary,
                      5 AS rating, repeat('why ', 200) AS rating_explanation,
                      [struct_pack(summary := 's', explanation := repeat('told ', 20000),
                       chunk_id := NULL, start_char := NULL, end_char := NULL)] AS findings,
                      '' AS full_content, 1 AS n_tokens, '' AS context_hash, 1 AS context_tokens,
                      1 AS coverage, 'gpt-x' AS writer
               FROM communities c WHERE starts_with(c.id, 'many')"""
        )
        con.execute("UPDATE entities SET description = repeat('words ', 10000)")
    return target


@pytest.fixture(scope="module")
def crowd(home, tmp_path_factory):
    return crowded(home, tmp_path_factory.mktemp("crowd") / "home")


def test_the_page_stays_small_whatever_the_corpus(crowd, tmp_path):
    text, parsed = made(crowd, tmp_path)
    assert len(text) < 1_000_000
    assert sum(i.startswith("chapter-") for i in parsed.ids) == 12
    assert "smaller ones" in parsed.words


@pytest.mark.browser
def test_nothing_overflows_at_any_width_and_a_note_opens(crowd, home, tmp_path, browser):
    for place, width in ((crowd, 360), (crowd, 1280), (home, 360)):
        write_report(place, tmp_path / "report.html")
        shown = browser.new_page(viewport={"width": width, "height": 900})
        complaints = complaints_of(shown)
        shown.on("request", lambda asked: complaints.append(asked.url))  # noqa: B023
        shown.goto(f"file://{tmp_path}/report.html")
        size = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        scrolled, client = shown.evaluate(size)
        assert scrolled <= client
        assert complaints == [f"file://{tmp_path}/report.html"]
    shown.click("sup.ref a")
    assert shown.locator("details.notes[open]").count() == 1
    assert shown.locator("li:target mark").is_visible()


def test_the_command_writes_the_page_under_a_title_of_ones_own(home, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))
    target = tmp_path / "for <the> boss.html"
    arguments = ["report", "-o", str(target), "--title", "Q&A <2026>"]
    monkeypatch.setattr(sys, "argv", ["graphrag-pipeline", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code
    assert "release r1" in capsys.readouterr().out
    assert "<h1>Q&amp;A &lt;2026&gt;</h1>" in target.read_text()


def test_there_must_be_a_release_and_a_file_to_write(home, tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        write_report(home, tmp_path)
    with pytest.raises(NothingPublishedError):
        write_report(tmp_path, tmp_path / "report.html")


def test_a_folder_whose_name_says_little_is_called_with_the_one_around_it():
    assert folder_name("/usr/share/doc/valgrind/html") == "valgrind/html"
    assert folder_name("import:carol_index") == "carol_index"
    assert folder_name("docs") == "docs"
