"""The page to ask on, in a real browser: asking, sources, comparing, and text that means harm."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from browser import browser as browser
from browser import complaints_of
from graphrag_server.keys import Keyring, add_key
from graphrag_server.paths import ServerFiles
from http_server import Served
from model_server import ModelServer, slow_stream
from query_fixture import DOCUMENTS, published

from graphrag_pipeline.core.settings import Settings

pytestmark = pytest.mark.browser

QUESTION = "Who worked as a clerk for Scrooge?"
AFTER_CLERK = "Tiny Tim was the son of Bob Cratchit, and he walked with a crutch."
CLERK = "Bob Cratchit worked as a clerk for Scrooge in a dismal little cell."
HOSTILE = (
    "<img src=x onerror=alert(1)> [Zebra](javascript:alert(2)) "
    "![Quagga](https://evil.example/p.png) <script>alert(3)</script> "
    "\u202eesrever [1] **Zebra Quagga**"
)
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    documents = {**DOCUMENTS, "<b onclick=alert(4)>🎩</b>\u202e": f"🎩🎩 {HOSTILE}"}
    return published(tmp_path_factory.mktemp("paged") / "home", documents=documents)


@pytest.fixture(scope="module")
def served(home: Path) -> Iterator[Served]:
    with Served({"default": home, "other": home}) as server:
        yield server


@contextmanager
def opened(browser: Any, served: Served, refused: int = 0, **options: Any) -> Iterator[Any]:
    """Open the page; in the end nothing was complained of, and no other server was asked.

    ``refused`` is the status of an answer that is expected among others.
    """
    context = browser.new_context(**{"viewport": DESKTOP, **options})
    page = context.new_page()
    complaints = complaints_of(page)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
    page.on(
        "request",
        lambda request: (
            request.url.startswith((served.url, "data:")) or complaints.append(request.url)
        ),
    )
    try:
        page.goto(served.url)
        if refused != 401:
            page.wait_for_selector("#method option", state="attached")
        yield page
        assert [line for line in complaints if not line.endswith(_refusal(refused))] == []
    finally:
        context.close()


def _refusal(status: int) -> str:
    return f"status of {status} ({HTTPStatus(status).phrase})" if status else "none"


def ask(page: Any, question: str, method: str = "") -> None:
    page.select_option("#method", method)
    page.fill("#question", question)
    page.press("#question", "Enter")
    page.wait_for_selector(".turn:last-child .took")


def press_until(page: Any, key: str, selector: str, most: int = 40) -> None:
    for _ in range(most):
        page.keyboard.press(key)
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            return
    raise AssertionError(f"{key} does not lead to {selector}")


def test_by_keyboard_alone_a_question_leads_to_its_passage_and_back(
    browser: Any, served: Served
) -> None:
    with opened(browser, served) as page:
        page.keyboard.type(QUESTION)
        page.keyboard.press("Enter")
        page.wait_for_selector(".took")
        assert "Bob Cratchit" in page.inner_text(".prose")
        assert page.inner_text("#status").startswith("Answered, with ")
        assert page.get_attribute(".answer", "aria-busy") is None
        assert page.locator(".how li").all_text_contents()
        press_until(page, "Shift+Tab", ".prose a.cite:first-child", most=60)
        page.keyboard.press("Enter")
        page.wait_for_selector("mark")
        marked = page.inner_text("mark")
        assert any(marked in text for text in DOCUMENTS.values())
        assert page.evaluate("document.activeElement.id") == "panel-title"
        page.keyboard.press("Escape")
        assert page.is_hidden("#panel")
        assert page.evaluate("document.activeElement.matches('a.cite')")


def test_what_is_asked_while_the_page_loads_waits_for_it(browser: Any, served: Served) -> None:
    page = browser.new_page()
    held: list[Any] = []
    try:
        page.route("**/v1/collections", lambda route: held.append(route))
        with page.expect_request("**/v1/collections"):
            page.goto(f"{served.url}/documents")
        page.fill("#find", "Scrooge")
        page.press("#find", "Enter")
        page.click("#to-ask")
        page.fill("#question", QUESTION)
        page.press("#question", "Enter")
        assert page.locator(".turn").count() == 0
        held[0].continue_()
        page.wait_for_selector(".turn .took")
        assert page.locator(".turn").count() == 1
        page.wait_for_selector("#entities bdi:text-is('Scrooge')", state="attached")
    finally:
        page.close()


def test_the_passage_is_marked_character_by_character(browser: Any, served: Served) -> None:
    with opened(browser, served) as page:
        ask(page, QUESTION, "bm25")
        page.click(f".card:has-text('{CLERK[:30]}')")
        page.wait_for_selector("mark")
        assert page.inner_text("mark") == f"{CLERK} {AFTER_CLERK}"
        whole = page.inner_text(".text").replace("\n", " ")
        assert whole.startswith("Marley was dead")
        assert whole.rstrip().endswith("he was a second father.")


def test_entities_and_reports_behind_an_answer_lead_on(browser: Any, served: Served) -> None:
    with opened(browser, served) as page:
        ask(page, QUESTION, "local")
        page.click(".evidence summary")
        page.click(".evidence .chips bdi:text-is('Scrooge')")
        page.wait_for_selector(".picture .centre")
        assert page.inner_text("#panel-title") == "Scrooge"
        ties = page.locator("#panel .tie a").all_inner_texts()
        assert set(ties) == {"Marley", "Bob Cratchit", "Fezziwig", "London"}
        page.click("#panel .tie bdi:text-is('Bob Cratchit')")
        page.wait_for_selector("#panel-title:text-is('Bob Cratchit')")
        page.click("#panel-back")
        page.wait_for_selector("#panel-title:text-is('Scrooge')")
        page.click("#panel section:has(h3:text-is('Communities')) a >> nth=0")
        page.click("#panel a:text-is('Its report')")
        page.wait_for_selector(".findings li")


def test_reports_behind_a_global_answer_lead_to_what_they_say(browser: Any, served: Served) -> None:
    with opened(browser, served) as page:
        ask(page, "What are the main themes?", "global")
        page.click(".evidence summary")
        page.click(".evidence .rows a >> nth=0")
        page.wait_for_selector("#panel .findings li")
        page.click("#panel-close")
        ask(page, "Who are the main people?")
        page.click(".turn:last-child .evidence summary")
        assert "report" not in page.inner_text(".turn:last-child .evidence")


def test_passages_behind_an_answer_are_listed_and_lead_to_their_place(
    browser: Any, served: Served
) -> None:
    with opened(browser, served) as page:
        ask(page, QUESTION, "bm25")
        page.click(".evidence summary")
        rows = page.locator(".evidence .rows li")
        assert page.inner_text(".evidence summary") == f"Behind this: {rows.count()} passages"
        rows.filter(has_text=AFTER_CLERK).locator("a").click()
        page.wait_for_selector("mark")
        assert AFTER_CLERK in page.inner_text("mark")


def test_the_explorer_opens_at_an_entity_and_the_conversation_is_there_after_it(
    browser: Any, served: Served
) -> None:
    with opened(browser, served) as page:
        ask(page, QUESTION, "local")
        page.click(".evidence summary")
        page.click(".evidence .chips bdi:text-is('Scrooge')")
        page.click("#panel a:text-is('Open in the explorer')")
        page.wait_for_selector("#panel[data-kind=entity] h2:text-is('Scrooge')")
        page.click("#home")
        page.wait_for_selector(".turn .took")
        assert page.inner_text(".asked") == QUESTION
    plain = served.get("/v1/explorer", headers={"Accept-Encoding": "identity"}).json()
    assert "Scrooge" in plain["entities"]["title"]


def test_methods_stand_side_by_side_with_what_they_take(browser: Any, served: Served) -> None:
    with opened(browser, served) as page:
        page.click("#to-compare")
        page.wait_for_selector("#compare-methods [value=local]", state="attached")
        page.fill("#compare-question", QUESTION)
        page.press("#compare-question", "Enter")
        page.wait_for_selector(".column")
        rows = page.locator("#compared tbody tr").all_inner_texts()
        assert [row.split("\t")[0] for row in rows] == ["hybrid", "local", "ppr"]
        assert all(re.search(r"\$0\t[\d.]+ m?s$", row) for row in rows)
        assert page.locator(".column .card").count() >= 3
        for name in ("local", "ppr"):
            page.uncheck(f"#compare-methods [value={name}]")
        page.click("#compare-send")
        assert "Choose 2 to 8" in page.inner_text("#compared")


def test_a_method_is_compared_with_itself_by_its_parameters(browser: Any, served: Served) -> None:
    with opened(browser, served, viewport={"width": 1280, "height": 400}) as page:
        page.click("#to-compare")
        for name in ("hybrid", "local", "ppr"):
            page.uncheck(f"#compare-methods [value={name}]")
        assert page.locator(".variant").count() == 0
        page.click("#compare-methods summary:has-text('More methods')")
        page.check("#compare-methods [value=lightrag]")
        page.click(".variant summary")
        page.select_option(".variant [name=mode]", "local")
        page.click(".variant button")
        assert page.evaluate("document.activeElement.matches('.variant:last-child summary')")
        page.fill(".variant:last-child [name=top_k]", "7")
        page.press(".variant:last-child [name=top_k]", "Tab")
        summaries = page.locator(".variant summary").all_inner_texts()
        assert summaries == ["lightrag: mode=local", "lightrag: top k=7"]
        page.fill("#compare-question", QUESTION)
        page.press("#compare-question", "Enter")
        page.wait_for_selector(".column")
        playwright = importlib.import_module("playwright.sync_api")
        playwright.expect(page.locator("#compared table")).to_be_in_viewport()
        named = page.locator("#compared tbody th").all_inner_texts()
        assert named == ["lightrag:mode=local", "lightrag:top_k=7"]
        page.fill(".variant:last-child [name=top_k]", "0")
        page.click(".variant:last-child summary")
        assert page.is_hidden(".variant:last-child [name=top_k]")
        page.click("#compare-send")
        page.wait_for_selector(".variant:last-child [name=top_k]:invalid")


def test_parameters_and_the_collection_are_those_chosen(browser: Any, served: Served) -> None:
    with opened(browser, served, refused=422) as page:
        page.select_option("#collection", "other")
        page.wait_for_selector("#method option[value=bm25]", state="attached")
        page.click("#options-button")
        page.select_option("#method", "bm25")
        page.fill("#parameters [name=top_k]", "1")
        page.fill("#question", QUESTION)
        with page.expect_request("**/v1/query/stream") as sent:
            page.click("#send")
        body = json.loads(sent.value.post_data)
        assert (body["collection"], body["parameters"]) == ("other", {"top_k": 1})
        page.wait_for_selector(".took")
        page.reload()
        page.wait_for_selector(".took")
        assert page.input_value("#collection") == "other"
        page.fill("#question", "x" * 8000)
        page.evaluate("document.getElementById('question').value += 'x'")
        page.click("#send")
        page.wait_for_selector(".turn .bad")
        assert "at most 8000 characters" in page.inner_text(".turn .bad")


@pytest.mark.parametrize("window", [PHONE, {"width": 1300, "height": 900}])
def test_a_question_that_follows_is_brought_to_the_top(
    browser: Any, served: Served, window: dict[str, int]
) -> None:
    with opened(browser, served, viewport=window, reduced_motion="reduce") as page:
        ask(page, QUESTION, "local")
        ask(page, QUESTION, "bm25")
        (top,) = page.eval_on_selector_all(
            ".turn:nth-child(2)", "turns => turns.map(t => t.getBoundingClientRect().top)"
        )
        assert 0 < top < window["height"] / 6


def test_on_a_phone_nothing_is_cut_off_and_a_source_covers_the_rest(
    browser: Any, served: Served
) -> None:
    with opened(browser, served, viewport=PHONE, color_scheme="dark") as page:
        ask(page, QUESTION, "local")
        assert page.evaluate("document.querySelector('main').scrollWidth") == PHONE["width"]
        page.click(".prose a.cite >> nth=0")
        page.wait_for_selector("mark")
        assert page.evaluate("document.querySelector('main').inert")
        page.click("#panel-close")
        assert not page.evaluate("document.querySelector('main').inert")


@pytest.mark.parametrize("width", [320, 360, 412])
def test_with_several_collections_nothing_is_cut_off_or_broken_within_a_word(
    browser: Any, served: Served, width: int
) -> None:
    parts = "header a, header select, #composer button:not([hidden])"
    with opened(browser, served, viewport={"width": width, "height": 700}) as page:
        for view in ("compare", "documents", "ask"):
            page.click(f"#to-{view}")
            assert page.evaluate("document.documentElement.scrollWidth") == width
            assert page.evaluate("document.querySelector('main').scrollWidth") == width
        ask(page, QUESTION)
        page.wait_for_selector("#new")
        boxes = page.eval_on_selector_all(
            parts,
            "all => all.map(e => [e.textContent, e.getBoundingClientRect().toJSON()])",
        )
        boxes = [(name, box) for name, box in boxes if box["width"]]
        assert page.locator("nav").bounding_box()["height"] < 48
        assert len(boxes) >= 8
        for name, box in boxes:
            assert 0 <= box["left"] <= box["right"] <= width, name
            assert box["height"] < 48, name
        assert page.locator(".dock").bounding_box()["height"] < 120


def test_the_box_of_the_question_is_one_line_high_and_grows_with_its_text(
    browser: Any, served: Served
) -> None:
    with opened(browser, served) as page:
        ask(page, QUESTION)
        assert page.locator(".dock").bounding_box()["height"] < 800 / 10
        low = page.locator("#question").bounding_box()["height"]
        page.fill("#question", "a question that goes on " * 20)
        high = page.locator("#question").bounding_box()["height"]
        assert high >= 3 * low
        page.fill("#question", "line\n" * 50)
        assert page.locator("#question").bounding_box()["height"] < 800 / 3
        page.fill("#question", "")
        assert page.locator("#question").bounding_box()["height"] == low


def test_an_empty_page_suggests_questions_and_a_click_asks_one(
    browser: Any, served: Served
) -> None:
    with opened(browser, served) as page:
        page.wait_for_selector("#examples button")
        assert page.locator("#examples button").count() == 3
        question = page.inner_text("#examples button >> nth=0")
        page.click("#examples button >> nth=0")
        page.wait_for_selector(".took")
        assert page.inner_text(".asked") == question
        assert page.locator(".prose a.cite").count() > 0
        assert page.is_hidden("#examples")


def test_the_bar_leads_to_the_explorer_of_the_collection_and_has_no_key_where_there_are_none(
    browser: Any, served: Served
) -> None:
    with opened(browser, served) as page:
        page.select_option("#collection", "other")
        page.wait_for_selector("#to-explorer[href='/explorer?collection=other']")
        assert page.is_hidden("#key")
        page.click("#to-explorer")
        page.wait_for_selector("#panel h2")
        assert page.url == f"{served.url}/explorer?collection=other"


def test_methods_are_grouped_and_each_says_what_it_finds(browser: Any, served: Served) -> None:
    listed = {each["name"]: each["summary"] for each in served.get("/v1/methods").json()}
    with opened(browser, served) as page:
        groups = page.eval_on_selector_all(
            "#method optgroup",
            "all => all.map(g => [g.label, ...Array.from(g.children, o => o.value)])",
        )
        assert groups[0] == ["Recommended", "hybrid", "local", "global", "ppr"]
        assert [name for name, *_ in groups[1:]] == ["More methods", "Need a language model"]
        lines = page.locator("#method optgroup option").all_text_contents()
        others = listed.items() - {("auto", listed["auto"])}
        assert set(lines) == {f"{name}: {summary}" for name, summary in others}
        first = page.locator("#method > option").all_text_contents()
        assert first == ["Automatic: the server chooses how to search"]
        assert listed["auto"] in page.locator("#method-summary").text_content()
        page.click("#to-compare")
        assert listed["ppr"] in page.inner_text("#compare-methods label:has([value=ppr])")


def test_the_one_entry_by_which_the_server_chooses_has_its_parameters_too(
    browser: Any, served: Served
) -> None:
    with opened(browser, served) as page:
        page.wait_for_selector("#method option[value=bm25]", state="attached")
        page.click("#options-button")
        for sent in ({}, {"method": "auto", "parameters": {"top_k": 3}}):
            if sent:
                page.fill("#parameters [name=top_k]", "3")
            page.fill("#question", QUESTION)
            with page.expect_request("**/v1/query/stream") as request:
                page.click("#send")
            body = json.loads(request.value.post_data)
            assert {name: body[name] for name in body.keys() & {"method", "parameters"}} == sent
            page.wait_for_selector(f".turn:nth-of-type({2 if sent else 1}) .took")


def test_an_answer_is_copied_as_markdown_with_links_to_its_sources(
    browser: Any, served: Served
) -> None:
    with opened(browser, served, permissions=["clipboard-read", "clipboard-write"]) as page:
        ask(page, "Zebra Quagga Data Room esrever", "bm25")
        page.click(".foot > button")
        page.wait_for_selector(".foot button:text-is('Copied')")
        text = page.evaluate("navigator.clipboard.readText()")
        links = page.eval_on_selector_all(".card", "all => all.map(a => a.href)")
        formatted = page.evaluate(
            "navigator.clipboard.read().then(([item]) => item.getType('text/html'))"
            ".then(blob => blob.text())"
        )
        page.click(".sources button:text-is('BibTeX')")
        page.wait_for_selector(".sources button:text-is('Copied')")
        listed = page.evaluate("navigator.clipboard.readText()")
    assert re.findall(r'<a href="([^"]*)"', formatted.replace("&amp;", "&")) == links
    assert "<img" not in formatted
    assert "<script" not in formatted
    assert len(re.findall(r"^@misc{\w+,$", listed, re.M)) == len(
        {link.partition("?")[0] for link in links}
    )
    assert listed.count("{") == listed.count("}")
    assert text.startswith("## Zebra Quagga Data Room esrever\n\n")
    assert "\n### Sources\n\n1. [" in text
    assert re.findall(r"(?<!\\)\]\((http[^)]*)\)", text) == links
    assert not re.search(r"(?<!\\)(<img|!\[|<script|\]\(javascript)", text)


def test_text_of_a_document_stays_text(browser: Any, served: Served) -> None:
    with opened(browser, served) as page:
        ask(page, "Zebra Quagga Data Room esrever", "bm25")
        page.click(".card:has-text('🎩') >> nth=0")
        page.wait_for_selector("mark")
        assert "<img src=x onerror=alert(1)>" in page.inner_text(".prose")
        assert page.inner_text("#panel-title") == "<b onclick=alert(4)>🎩</b>\u202e"
        assert page.inner_text(".text").startswith("🎩🎩 <img")
        inert(page)


def inert(page: Any) -> None:
    """Nothing of a text has become an element, a link or a picture."""
    found = (
        "main img, main script, main b, #panel img, #panel script, #panel b, #panel a[href^=http]"
    )
    assert page.query_selector_all(found) == []
    ours = "links => links.every(a => a.origin === location.origin)"
    assert page.eval_on_selector_all("#conversation a, #panel a", ours)
    isolated = "el => getComputedStyle(el).unicodeBidi"
    assert page.eval_on_selector(".card bdi", isolated) == "isolate"
    assert page.eval_on_selector(".prose li, .prose p", isolated) in ("isolate", "plaintext")


def test_a_key_is_asked_for_and_stays_in_the_tab(browser: Any, home: Path, tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path))
    _, text = add_key(settings, "anna", collections={"default"}, scopes={"query", "read"})
    served = Served({"default": home}, Keyring(ServerFiles(tmp_path).keys))
    with served, opened(browser, served, refused=401) as page:
        page.wait_for_selector("#key-dialog[open]")
        assert "Whoever runs it can make one" in page.inner_text("#key-message")
        assert page.is_hidden("#key-forget")
        page.fill("#key-value", "grp_0000000000000000_nothing")
        page.click("#key-use")
        page.wait_for_selector("#key-message:has-text('is not known')")
        page.fill("#key-value", text)
        page.press("#key-value", "Enter")
        page.wait_for_selector("#facts:has-text('5 documents')")
        assert page.is_visible("#key")
        ask(page, QUESTION, "bm25")
        assert page.evaluate("localStorage.length + document.cookie.length") == 0
        assert text not in page.content()
        page.goto(f"{served.url}/explorer")
        page.wait_for_selector("#panel[data-kind]")
        page.goto(served.url)
        page.click("#key")
        page.click("#key-forget")
        page.wait_for_selector("#key-dialog[open]")


def with_model(home: Path, model: ModelServer) -> Settings:
    return Settings(
        home=str(home),
        query={"answers": "llm"},
        llm={"base_url": model.base_url, "model": "gpt-4o-mini"},
    )


def test_a_written_answer_has_markup_and_sources_and_the_next_question_knows_it(
    browser: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    said = (
        f"## He did\n\n- **Bob** wrote [Data: Sources (0)]\n- So:\n  1. Ink\n  2. Sand\n\n{HOSTILE}"
    )
    with (
        ModelServer(lambda _: said) as model,
        Served({"default": with_model(home, model)}) as server,
        opened(browser, server) as page,
    ):
        ask(page, QUESTION, "basic")
        assert page.inner_text(".prose h3") == "He did"
        assert page.inner_text(".prose li strong") == "Bob"
        assert page.inner_text(".prose li a.cite") == "1"
        assert page.locator(".prose ul > li > ol > li").all_inner_texts() == ["Ink", "Sand"]
        assert "<script>alert(3)</script>" in page.inner_text(".prose")
        assert re.search(r"basic · 1 model call · [\d,]+ tokens · \$0\.0", page.inner_text(".took"))
        inert(page)
        ask(page, "And who tested it?", "basic")
        messages = model.requests[-1].body["messages"]
        assert [m["role"] for m in messages if QUESTION in m["content"]] == ["user"]
        assert any(m["role"] == "assistant" and "He did" in m["content"] for m in messages)
        page.click("#new")
        assert page.query_selector(".turn") is None


def test_what_streams_shows_as_it_comes_and_can_be_stopped(
    browser: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with (
        ModelServer(lambda _: "word " * 2000, faults=lambda _: slow_stream(0.1)) as model,
        Served({"default": with_model(home, model)}) as server,
        opened(browser, server) as page,
    ):
        page.fill("#question", QUESTION)
        page.click("#send")
        page.wait_for_selector(".prose p:has-text('word')")
        assert page.get_attribute(".answer", "aria-busy") == "true"
        page.click("#stop")
        page.wait_for_selector(".rest:has-text('Stopped')")
        assert "word" in page.inner_text(".prose")
        assert page.is_visible("#send")


def test_what_an_answer_walked_over_is_drawn_and_leads_to_its_entities(
    browser: Any, served: Served
) -> None:
    with opened(browser, served) as page:
        ask(page, QUESTION, "local")
        page.click(".evidence summary")
        page.wait_for_selector(".evidence svg.picture .node.centre")
        title = page.locator(".evidence svg .node:not(.centre) title").first.text_content()
        page.locator(".evidence svg .node:not(.centre) circle").first.click()
        page.wait_for_selector(f"#panel-title:text-is('{title}')")


def test_on_paper_there_are_the_answer_and_its_sources_alone(browser: Any, served: Served) -> None:
    with opened(browser, served) as page:
        ask(page, QUESTION, "bm25")
        page.emulate_media(media="print")
        assert page.is_visible(".prose")
        assert page.is_visible(".card .quote")
        assert not any(page.is_visible(part) for part in ("nav", "#composer", ".foot button"))
