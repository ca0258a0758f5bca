"""Conversations on the page: found again, gone on with, named, judged, linked to and deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import browser as browser
from graphrag_server.conversations import Conversations
from graphrag_server.paths import ServerFiles
from http_server import Served
from query_fixture import published, settings_for
from test_page import ask, opened

pytestmark = pytest.mark.browser

FIRST, SECOND = "Who worked as a clerk for Scrooge?", "Where was Marie Curie born?"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return published(tmp_path / "home")


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    with Served({"default": home}) as server:
        yield server


def questions_on(page: Any) -> list[str]:
    return page.locator(".asked").all_text_contents()


def test_a_conversation_is_found_again_in_a_new_tab_and_gone_on_with_until_it_is_deleted(
    browser: Any, served: Served
) -> None:
    with opened(browser, served) as page:
        ask(page, FIRST)
    with opened(browser, served) as page:
        assert questions_on(page) == []
        page.click("#earlier")
        page.fill("#panel input[type=search]", "CLERK")
        page.press("#panel input[type=search]", "Enter")
        page.click(f"#panel .rows a:has-text('{FIRST}')")
        page.wait_for_selector(".turn .took")
        assert questions_on(page) == [FIRST]
        ask(page, SECOND)
        page.wait_for_selector(".turn:nth-child(2) .took")
        page.reload()
        page.wait_for_selector(".turn:nth-child(2) .took")
        assert questions_on(page) == [FIRST, SECOND]
        page.click("#earlier")
        page.wait_for_selector("#panel .rows li")
        assert page.locator("#panel .rows li").count() == 1
        page.click("#panel button:text-is('Rename')")
        page.keyboard.type("On clerks")
        page.keyboard.press("Enter")
        page.wait_for_selector("#panel .rows a:has-text('On clerks')")
        page.click("#panel button:text-is('Delete')")
        page.click("#panel button:text-is('Delete for good?')")
        page.wait_for_selector(".turn", state="detached")
        page.reload()
        page.wait_for_selector("#method option", state="attached")
        assert questions_on(page) == []


def test_a_conversation_is_taken_along_as_markdown(browser: Any, served: Served) -> None:
    with opened(browser, served) as page:
        ask(page, FIRST)
        page.click("#earlier")
        with page.expect_download() as download:
            page.click("#panel button:text-is('Markdown')")
        text = Path(download.value.path()).read_text()
        assert f"## {FIRST}" in text
        assert "### Sources" in text
        assert f"]({served.url}/documents/" in text


def test_the_link_of_an_answer_opens_it_and_a_word_on_it_is_kept(
    browser: Any, served: Served, home: Path
) -> None:
    with opened(browser, served, permissions=["clipboard-read", "clipboard-write"]) as page:
        ask(page, FIRST)
        prose = page.inner_text(".prose")
        page.click(".judging button:text-is('Link')")
        page.wait_for_selector(".judging button:text-is('Copied')")
        address = page.evaluate("navigator.clipboard.readText()")
        page.click(".judging button:text-is('Bad')")
        page.fill(".judging input", "It names no year.")
        page.press(".judging input", "Enter")
        page.wait_for_selector(".judging input", state="detached")
        page.goto(address)
        page.wait_for_selector("#panel .prose")
        assert page.inner_text("#panel .prose") == prose
        assert page.inner_text("#panel-title") == FIRST
        assert page.get_attribute("#panel .judging button:text-is('Bad')", "aria-pressed") == "true"
    (said,) = Conversations(ServerFiles(home).conversations, 90).feedback()
    assert (said["verdict"], said["words"]) == ("bad", "It names no year.")


def test_where_nothing_is_kept_the_page_offers_no_history(browser: Any, home: Path) -> None:
    settings = settings_for(home)
    server = settings.server.model_copy(update={"conversation_days": 0.0})
    with (
        Served({"default": settings.model_copy(update={"server": server})}) as served,
        opened(browser, served) as page,
    ):
        ask(page, FIRST)
        assert page.is_hidden("#earlier")
        assert page.locator(".judging").count() == 0


def test_the_first_page_takes_few_requests_and_bytes(browser: Any, served: Served) -> None:
    context = browser.new_context()
    sizes: dict[str, int] = {}
    page = context.new_page()
    page.on("response", lambda r: sizes.update({r.url: int(r.headers["content-length"])}))
    page.goto(served.url)
    page.wait_for_selector("#examples li")
    context.close()
    assert len(sizes) <= 18
    assert sum(sizes.values()) < 60_000


def test_a_comparison_has_an_address_that_makes_it_again(browser: Any, served: Served) -> None:
    with opened(browser, served) as page:
        page.click("#to-compare")
        page.wait_for_selector("#compare-methods input")
        page.fill("#compare-question", FIRST)
        page.click("#compare-methods input[value=hybrid]")
        page.click("#compare-variants [data-method=local] summary")
        page.fill("#compare-variants [data-method=local] [name=top_k]", "3")
        page.press("#compare-question", "Enter")
        page.wait_for_selector("#compared .column")
        shown = page.locator("#compared .column h2").all_text_contents()
        address = page.url
    with opened(browser, served) as page:
        page.goto(address)
        page.wait_for_selector("#compared .column")
        assert page.locator("#compared .column h2").all_text_contents() == shown
        assert any(name.endswith(":top_k=3") for name in shown)
        assert not page.is_checked("#compare-methods input[value=hybrid]")
