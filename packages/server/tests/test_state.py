"""The state of an index for whoever runs it: how fresh, what failed, what it cost, who asked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from browser import browser as browser
from graphrag_server.keys import Keyring, add_key
from graphrag_server.paths import ServerFiles
from http_server import Served, bearer
from query_fixture import settings_for
from test_page import ask, opened

from graphrag_pipeline import Index

FOLDER = {
    "mill.md": "# The mill\n\nAnna Berg owns the mill at Ferrow.",
    "empty.pdf": "no pdf at all",
    "one.png": "a picture",
    "Two.PNG": "another",
    "plain": "no ending",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    place = tmp_path_factory.mktemp("state")
    folder = place / "in"
    folder.mkdir()
    for name, text in FOLDER.items():
        (folder / name).write_text(text)
    index = Index(settings_for(place / "home"))
    index.update(folder)
    return index


def test_it_says_how_fresh_the_index_is_what_was_not_read_and_who_spent_what(
    index: Index, tmp_path: Path
) -> None:
    ring = settings_for(tmp_path)
    everything: dict[str, Any] = {"collections": {"*"}, "labels": {"*"}}
    scopes = {
        "runs": {"metrics", "read"}, "scrapes": {"metrics"}, "reads": {"read"},
    }  # fmt: skip
    keys = {n: add_key(ring, n, scopes=each, **everything)[1] for n, each in scopes.items()}
    narrow = {"collections": {"default"}, "scopes": scopes["runs"]}
    keys["one"] = add_key(ring, "one", labels={"*"}, **narrow)[1]
    with Served({"default": index.settings}, Keyring(ServerFiles(tmp_path).keys)) as server:
        told = {n: server.get("/v1/status", headers=bearer(key)) for n, key in keys.items()}
    assert {name: each.status_code for name, each in told.items()} == {
        "runs": 200, "scrapes": 403, "reads": 403, "one": 200
    }  # fmt: skip
    state = told["runs"].json()
    assert state["published"]["documents"] == state["documents"] == 1
    assert [Path(file["uri"]).name for file in state["quarantined"]] == [
        "Two.PNG",
        "empty.pdf",
        "one.png",
        "plain",
    ]
    assert {key["name"] for key in state["keys"]} == {*scopes, "one"}
    assert told["one"].json()["keys"] == []


@pytest.mark.browser
def test_the_page_shows_it_to_whoever_may_know_and_leads_to_what_was_called_bad(
    browser: Any, index: Index
) -> None:
    with Served({"default": index.settings}) as served, opened(browser, served) as page:
        ask(page, "Who owns the mill?")
        page.click(".judging button:text-is('Bad')")
        page.fill(".judging input", "Too short.")
        page.press(".judging input", "Enter")
        page.wait_for_selector(".judging input", state="detached")
        page.click("#to-state")
        page.wait_for_selector("#state-facts .rows")
        shown = page.inner_text("#state-facts")
        assert "1 document" in shown
        assert "Not read (1)\nempty.pdf\n" in re.sub(r"\n+", "\n", shown)
        assert "3 files of other kinds, not read: .png 2, no suffix 1" in shown
        assert "Too short." in shown
        page.click("#state-facts a:has-text('Who owns the mill?')")
        page.wait_for_selector("#panel .prose")
