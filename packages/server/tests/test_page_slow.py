"""The page by keyboard alone over a slow line: nothing is lost, sent twice or silent meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from browser import browser as browser
from graphrag_server.keys import Keyring, add_key
from graphrag_server.paths import ServerFiles
from http_server import Served
from query_fixture import published, settings_for

pytestmark = pytest.mark.browser
LATENCY = 300
QUESTION = "Who worked as a clerk for Scrooge?"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published(tmp_path_factory.mktemp("slow") / "home")


@pytest.fixture(scope="module")
def key(home: Path) -> str:
    allowed: dict[str, Any] = {"collections": {"default"}, "scopes": {"query", "read"}}
    return add_key(settings_for(home), "anna", **allowed)[1]


@pytest.fixture(scope="module")
def served(home: Path, key: str) -> Iterator[Served]:
    assert key
    with Served({"default": home}, Keyring(ServerFiles(home).keys)) as server:
        yield server


@contextmanager
def slow_page(browser: Any, served: Served) -> Iterator[tuple[Any, list[str]]]:
    """Open the page over a slow line; yield it, and what is sent by POST from then on."""
    context = browser.new_context()
    page = context.new_page()
    line = context.new_cdp_session(page)
    line.send("Network.enable")
    limits = {"offline": False, "downloadThroughput": -1, "uploadThroughput": -1}
    line.send("Network.emulateNetworkConditions", {**limits, "latency": LATENCY})
    sent: list[str] = []
    page.on("request", lambda each: sent.append(each.url) if each.method == "POST" else None)
    try:
        page.goto(served.url)
        yield page, sent
    finally:
        context.close()


def enter(page: Any, key: str) -> None:
    page.wait_for_selector("#key-dialog[open]")
    page.keyboard.type(key)
    page.keyboard.press("Enter")


def test_a_key_that_was_refused_is_replaced_by_what_is_typed_and_the_page_says_it_looks(
    browser: Any, served: Served, key: str
) -> None:
    with slow_page(browser, served) as (page, _):
        enter(page, "grp_wrong")
        page.wait_for_selector("#key-message:has-text('not known')")
        enter(page, key)
        assert page.text_content("#facts") == "Looking at what is here"
        page.wait_for_selector("#facts:has-text('document')")
        assert page.get_attribute("#key-dialog", "open") is None


def test_asking_judging_and_opening_send_once_and_keep_the_focus(
    browser: Any, served: Served, key: str
) -> None:
    with slow_page(browser, served) as (page, sent):
        enter(page, key)
        page.wait_for_selector("#method option", state="attached")
        page.focus("#question")
        page.keyboard.type(QUESTION)
        page.keyboard.press("Tab")
        while page.evaluate("document.activeElement.id") != "send":
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("#stop:visible")
        assert page.evaluate("document.activeElement.id") == "question"
        page.keyboard.press("Enter")
        assert page.evaluate("document.querySelector('#question').matches(':placeholder-shown')")
        page.wait_for_selector(".judging")
        assert len(sent) == 1
        page.focus(".judging button")
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        assert page.text_content(".judging [role=status]") == "Sending"
        page.wait_for_selector(".judging [aria-pressed=true]")
        assert [url for url in sent if "/feedback" in url] == sent[1:]
        assert len(sent) == 2
        assert page.evaluate("document.activeElement.textContent") == "Good"
        page.focus("#earlier")
        page.keyboard.press("Enter")
        assert page.text_content("#panel-body") == "Looking"
        page.wait_for_selector("#panel-title:has-text('Earlier'):focus")
        page.keyboard.press("Escape")
        assert page.evaluate("document.activeElement.id") == "earlier"


def test_whoever_waits_for_an_answer_sees_for_how_long_and_can_stop(
    browser: Any, served: Served, key: str
) -> None:
    with slow_page(browser, served) as (page, _):
        enter(page, key)
        page.wait_for_selector("#method option", state="attached")
        page.route("**/v1/query/stream", lambda route: None)
        page.fill("#question", QUESTION)
        page.press("#question", "Enter")
        page.wait_for_selector(".waiting[data-seconds='2']")
        drawn = "getComputedStyle(document.querySelector('.waiting'), '::after').content"
        assert "s" in page.evaluate(drawn)
        page.focus("#stop")
        page.keyboard.press("Enter")
        page.wait_for_selector(".answer :text-is('Stopped.')")
        assert page.locator(".waiting").count() == 0
        assert page.evaluate("document.activeElement.id") == "question"


def test_the_list_of_documents_says_how_long_each_is(
    browser: Any, served: Served, key: str
) -> None:
    with slow_page(browser, served) as (page, _):
        enter(page, key)
        page.wait_for_selector("#method option", state="attached")
        page.click("#to-documents")
        assert page.text_content("#listed-facts") in ("", "Looking")
        first = page.wait_for_selector("#listed li .note")
        assert re.search(r"· [\d,]+ characters$", first.text_content())
