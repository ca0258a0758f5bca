"""Every thing that the page shows has an address: links, the address bar, back and forward."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from browser import browser as browser
from graphrag_server.addresses import citation_address
from graphrag_server.keys import Keyring, add_key
from graphrag_server.paths import ServerFiles
from http_server import Served
from model_server import ModelServer
from query_fixture import DOCUMENTS, published, settings_for
from test_page import QUESTION, ask, opened, with_model

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.open_engine import LOOK_SECONDS
from graphrag_pipeline.releases.kept_releases import changing_releases, keep_only, keep_published

CAROL = "A Christmas Carol"
CHANGED = {**DOCUMENTS, CAROL: f"A new first line moves all characters. {DOCUMENTS[CAROL]}"}
KINDS = ("documents", "entities", "communities", "reports")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published(tmp_path_factory.mktemp("addressed") / "home")


@pytest.fixture(scope="module")
def served(home: Path) -> Iterator[Served]:
    with Served({"default": home, "other": home}) as server:
        yield server


def address(page: Any) -> tuple[str, dict[str, str]]:
    """Return path and query of what the address bar shows."""
    parts = urlsplit(page.url)
    return parts.path, {name: value[0] for name, value in parse_qs(parts.query).items()}


def cited_on_the_page(page: Any) -> str:
    """Ask, and return the address of the first source as the page links it."""
    ask(page, QUESTION, "bm25")
    return page.eval_on_selector(".prose a.cite", "a => a.href")


@pytest.mark.browser
def test_a_copied_link_of_a_source_opens_its_document_with_the_passage_marked_in_sight(
    browser: Any, served: Served, home: Path
) -> None:
    with opened(browser, served, viewport={"width": 1280, "height": 400}) as page:
        link = cited_on_the_page(page)
    with QueryEngine(home, settings=settings_for(home)) as engine:
        answer = engine.answer(QUESTION, "bm25")
    citation = answer.citations[0]
    assert link == citation_address(served.url, "default", answer.release, citation)
    with opened(browser, served, viewport={"width": 1280, "height": 400}) as page:
        page.goto(link)
        page.wait_for_selector("mark")
        assert page.inner_text("mark") == citation.text
        box = page.locator("mark").bounding_box()
        assert 0 < box["y"] < 400
        assert page.title() == f"{CAROL} · Ask the documents"


def test_words_that_a_chat_program_adds_to_an_address_are_not_marked_by_the_browser(
    served: Served,
) -> None:
    page = served.get("/documents/any?start=1&end=2")
    assert page.headers["document-policy"] == "force-load-at-top"


@pytest.mark.browser
def test_the_address_follows_what_is_open_and_back_and_forward_work(
    browser: Any, served: Served
) -> None:
    with opened(browser, served) as page:
        ask(page, QUESTION, "local")
        path, query = address(page)
        assert (path, query["question"], query["method"]) == ("/", QUESTION, "local")
        page.click(".prose a.cite >> nth=0")
        page.wait_for_selector("mark")
        path, query = address(page)
        assert path.startswith("/documents/")
        assert set(query) == {"collection", "release", "start", "end"}
        page.click(".evidence summary")
        page.click(".evidence .chips bdi:text-is('Scrooge')")
        page.wait_for_selector("#panel-title:text-is('Scrooge')")
        assert address(page)[0].startswith("/entities/")
        page.click(".evidence button:has-text('Bob Cratchit') >> nth=0")
        page.wait_for_selector("#panel .kicker:text-is('Relationship')")
        page.go_back()
        page.wait_for_selector("#panel-title:text-is('Scrooge')")
        page.click("#panel-back")
        page.wait_for_selector("mark")
        assert page.is_hidden("#panel-back")
        page.go_forward()
        page.wait_for_selector("#panel-title:text-is('Scrooge')")
        page.reload()
        page.wait_for_selector("#panel-title:text-is('Scrooge')")
        assert page.inner_text(".asked") == QUESTION
        page.click("#panel-close")
        assert page.is_hidden("#panel")
        assert address(page)[1]["question"] == QUESTION
        assert page.locator(".turn").count() == 1


@pytest.mark.browser
def test_entities_communities_and_reports_have_addresses_and_views_too(
    browser: Any, served: Served
) -> None:
    with opened(browser, served) as page:
        page.click("#to-documents")
        page.click("#listed a >> nth=0")
        page.wait_for_selector("#panel .text")
        page.reload()
        page.wait_for_selector("#panel .text")
        assert page.is_visible("#documents")
        page.fill("#find", "Scrooge")
        page.press("#find", "Enter")
        page.click("#entities a")
        page.click("#panel section:has(h3:text-is('Communities')) a >> nth=0")
        page.click("#panel a:text-is('Its report')")
        page.wait_for_selector(".findings li")
        path, query = address(page)
        assert path.startswith("/reports/")
        assert query == {"collection": "default", "release": "r1"}
        page.goto(f"{served.url}/compare?collection=other")
        page.wait_for_selector("#compare-methods input")
        assert page.input_value("#collection") == "other"


@pytest.mark.browser
def test_a_middle_click_opens_a_source_in_a_tab_of_its_own(browser: Any, served: Served) -> None:
    with opened(browser, served) as page:
        ask(page, QUESTION, "bm25")
        with page.context.expect_page() as opening:
            page.click(".card >> nth=0", button="middle")
        opening.value.wait_for_selector("mark")
        assert page.is_hidden("#panel")


@pytest.mark.browser
def test_a_source_of_a_release_that_is_gone_says_so_and_leads_to_what_is_there_now(
    browser: Any, tmp_path: Path
) -> None:
    with changing_releases(tmp_path):
        published(tmp_path)
        keep_published(tmp_path)
    with Served({"default": tmp_path}) as server, opened(browser, server, refused=404) as page:
        link = cited_on_the_page(page)
        with changing_releases(tmp_path):
            published(tmp_path, "r2", documents=CHANGED)
            keep_published(tmp_path)
        server.holders["default"]._looked -= LOOK_SECONDS
        page.goto(link)
        page.wait_for_selector("mark")
        assert page.inner_text("mark") in DOCUMENTS[CAROL]
        assert "from an earlier release" in page.inner_text("#panel .notice")
        keep_only(tmp_path, "r2")
        page.reload()
        page.wait_for_selector("#panel .bad:has-text('release r1 is not kept')")
        assert page.query_selector("#panel .text") is None
        page.click("#panel a:text-is('Look for it in what is published now')")
        page.wait_for_selector("#panel .text:has-text('A new first line')")


@pytest.mark.browser
def test_the_address_of_a_question_asks_it_where_no_model_is_asked(
    browser: Any, served: Served
) -> None:
    with opened(browser, served) as page:
        page.goto(f"{served.url}/?question=Who+is+Scrooge%3F&collection=other&method=bm25")
        page.wait_for_selector(".turn .took:has-text('bm25')")
        assert page.inner_text(".asked") == "Who is Scrooge?"
        assert page.input_value("#collection") == "other"
        page.reload()
        page.wait_for_selector(".turn .took")
        assert page.locator(".turn").count() == 1


@pytest.mark.browser
def test_the_address_of_a_question_spends_nothing_where_a_model_is_asked(
    browser: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with (
        ModelServer(lambda _: "Bob.") as model,
        Served({"default": with_model(home, model)}) as server,
        opened(browser, server) as page,
    ):
        page.goto(f"{server.url}/?question=Who+is+Scrooge%3F&method=basic")
        page.wait_for_selector("#question:not(:placeholder-shown)")
        assert page.input_value("#question") == "Who is Scrooge?"
        assert page.input_value("#method") == "basic"
        assert page.locator(".turn").count() == 0
        page.click("#send")
        page.wait_for_selector(".took")
        assert len(model.requests) == 1


@pytest.mark.browser
def test_where_a_key_is_needed_it_is_asked_for_and_then_the_link_opens(
    browser: Any, home: Path, tmp_path: Path
) -> None:
    settings = Settings(home=str(tmp_path))
    _, key = add_key(settings, "anna", collections={"default"}, scopes={"query", "read"})
    with QueryEngine(home, settings=settings_for(home)) as engine:
        answer = engine.answer(QUESTION, "bm25")
    citation = answer.citations[0]
    server = Served({"default": home, "other": home}, Keyring(ServerFiles(tmp_path).keys))
    with server, opened(browser, server, refused=401) as page:
        page.goto(citation_address(server.url, "default", answer.release, citation))
        page.wait_for_selector("#key-dialog[open]")
        page.fill("#key-value", key)
        page.press("#key-value", "Enter")
        page.wait_for_selector("mark")
        assert page.inner_text("mark") == citation.text
        page.goto(citation_address(server.url, "other", answer.release, citation))
        page.wait_for_selector("#panel .bad")
        assert page.inner_text("#panel .bad") == (
            "There is no collection other here, or it is not open to you."
        )


@pytest.mark.browser
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/?question=Who+is+Scrooge%3F&collection=gone", "no collection gone"),
        ("/documents?collection=gone", "no collection gone"),
        ("/history/gone", "no such conversation"),
    ],
)
def test_the_address_of_what_is_not_here_shows_and_asks_nothing_else(
    browser: Any, served: Served, path: str, said: str
) -> None:
    with opened(browser, served, refused=404) as page:
        ask(page, QUESTION, "bm25")
        page.goto(f"{served.url}{path}")
        page.wait_for_selector(f"#panel .bad:has-text('{said}')")
        assert page.locator(".turn").count() == 1


def test_addresses_of_the_page_are_open_and_tell_nothing_and_others_are_not(
    home: Path, tmp_path: Path
) -> None:
    add_key(Settings(home=str(tmp_path)), "anna", collections={"default"}, scopes={"read"})
    with Served({"default": home}, Keyring(ServerFiles(tmp_path).keys)) as server:
        first = server.get("/")
        for path in ("/documents", "/compare", *(f"/{kind}/no%20such?start=x" for kind in KINDS)):
            page = server.get(path)
            assert (page.status_code, page.content) == (200, first.content)
            assert page.headers["content-security-policy"].startswith("default-src 'none'")
        assert server.get("/documents/a/b").status_code == 404
        assert server.get("/questions/a").status_code == 401
        assert server.http.post(f"{server.url}/documents/a").status_code == 401


def test_who_reads_pages_is_told_on_one_that_there_is_no_such_page(served: Served) -> None:
    asked = served.get("/no-such-place", headers={"Accept": "text/html,*/*;q=0.8"})
    assert asked.status_code == 404
    assert asked.headers["content-type"].startswith("text/html")
    assert '<a href="/">' in asked.text
    for path, accept in (("/no-such-place", "*/*"), ("/v1/no-such-place", "text/html")):
        told = served.get(path, headers={"Accept": accept})
        assert told.status_code == 404
        assert told.headers["content-type"].startswith("application/problem+json")
