"""Documents that callers bring: what is taken, where it is put, and how its way is followed."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from browser import browser as browser
from graphrag_server.collections import open_collections
from graphrag_server.keys import Keyring, add_key
from graphrag_server.paths import ServerFiles
from graphrag_server.problems import HttpProblem
from graphrag_server.uploads import plain_name, upload_folder
from http_server import Served, bearer
from query_fixture import published
from quick_stores import OPEN
from test_page import ask, opened

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.index import Index
from graphrag_pipeline.store.index_store import IndexStore

TEXT = b"Ada Lovelace wrote to Charles Babbage in London about the Analytical Engine.\n"


def settings_in(folder: Path, **server: Any) -> Settings:
    inbox = folder / "inbox"
    return Settings(
        home=str(folder / "home"),
        input={"folder": str(inbox), "settle_seconds": 0},
        server={"uploads": str(inbox / "uploads"), "upload_mb": 0.5, **server},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("uploading")


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    published(folder / "home")
    with Served({"default": settings_in(folder)}) as server:
        yield server


def send(served: Served, name: str, data: Any = TEXT, **headers: str) -> requests.Response:
    url = f"{served.url}/v1/documents"
    return served.http.post(url, params={"name": name}, data=data, headers=headers, timeout=60)


def files_in(folder: Path) -> set[str]:
    return {path.name for path in (folder / "inbox").rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd.TXT", "passwd.txt"),
        ("C:\\Users\\me\\Über uns.docx", "Über-uns.docx"),
        ("a\0b\n; rm -rf $HOME.md", "a-b-rm-rf-HOME.md"),
        ("\u202egpj.exe.txt", "gpj-exe.txt"),
        ("....txt", "document.txt"),
        ("名" * 100 + ".md", "名" * 40 + ".md"),
    ],
)
def test_a_name_is_made_plain(name: str, plain: str) -> None:
    assert plain_name(name) == plain


@pytest.mark.parametrize("name", ["x.exe", "x", ".txt", ".graphragignore", "x.txt/..", "x.txt."])
def test_what_is_not_read_is_not_taken(name: str) -> None:
    with pytest.raises(HttpProblem, match="files of that kind are not read"):
        plain_name(name)


def test_an_upload_is_put_in_the_inbox_once(served: Served, folder: Path) -> None:
    first = send(served, "../letter.txt")
    assert first.status_code == 202
    assert first.json()["is_new"]
    assert (first.json()["name"], first.json()["n_bytes"]) == ("letter.txt", len(TEXT))
    assert not send(served, "letter.txt").json()["is_new"]
    assert send(served, "letter.txt", TEXT + b"P.S.").json()["is_new"]
    places = sorted((folder / "inbox").rglob("letter.txt"))
    assert [path.read_bytes() for path in places if path.stat().st_size == len(TEXT)] == [TEXT]
    assert len(places) == 2
    (listed, *_) = served.get("/v1/uploads").json()["uploads"]
    assert (listed["status"], listed["stages"]) == ("waiting", [])


def test_what_is_refused_leaves_nothing(served: Served, folder: Path) -> None:
    before = files_in(folder)
    assert send(served, "large.txt", b"x" * 600_000).status_code == 413
    assert send(served, "large.txt", iter([b"x" * 300_000] * 2)).status_code == 413
    assert send(served, "empty.txt", b"").status_code == 422
    assert send(served, "tool.exe").status_code == 415
    assert served.http.post(f"{served.url}/v1/documents", data=TEXT, timeout=60).status_code == 422
    foreign = send(served, "page.txt", Origin="http://localhost:1")
    assert foreign.status_code == 403
    assert files_in(folder) == before
    assert not [path for path in (folder / "inbox" / "uploads").iterdir() if path.name[0] == "."]


def test_an_upload_that_stops_half_way_leaves_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    published(tmp_path / "home")
    head = b"POST /v1/documents?name=a.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
    with Served({"default": settings_in(tmp_path)}, timeout_seconds=0.5) as server:
        for reads_on in (True, False):
            with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
                connection.sendall(head + b"half")
                if reads_on:
                    assert connection.recv(65536).startswith(b"HTTP/1.1 408")
        while server.limits.inside:
            time.sleep(0.01)
    assert files_in(tmp_path) == set()
    assert "Traceback" not in caplog.text


def test_no_more_are_kept_than_the_settings_allow(tmp_path: Path) -> None:
    published(tmp_path / "home")
    with Served({"default": settings_in(tmp_path, uploads_most=1)}) as server:
        assert send(server, "one.txt").status_code == 202
        assert send(server, "two.txt", b"another").status_code == 507


def test_nothing_is_written_where_no_folder_is_named(tmp_path: Path) -> None:
    home = published(tmp_path / "home")
    keyring = Keyring(ServerFiles(tmp_path).keys)
    _, writer = add_key(
        Settings(home=str(tmp_path)), "anna", collections={"default"}, scopes={"write"}
    )
    _, reader = add_key(
        Settings(home=str(tmp_path)), "ben", collections={"default"}, scopes={"read"}
    )
    with Served({"default": home}, keyring) as server:
        assert "sets uploads in [server]" in send(server, "a.txt", **bearer(writer)).text
        assert send(server, "a.txt", **bearer(reader)).status_code == 403
        assert send(server, "a.txt").status_code == 401


def test_who_brought_what_is_in_the_audit(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    published(tmp_path / "home")
    _, key = add_key(settings, "anna", collections={"default"}, scopes={"write"})
    keyring = Keyring(ServerFiles(tmp_path / "home").keys)
    with Served({"default": settings}, keyring) as server:
        sha256 = send(server, "a.txt", **bearer(key)).json()["sha256"]
    written = ServerFiles(tmp_path / "home").audit.read_text()
    assert '"outcome":"written"' in written.replace(" ", "")
    assert sha256 in written


def test_uploads_lie_where_a_run_looks(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, uploads=str(tmp_path / "elsewhere"))
    with pytest.raises(ConfigError, match=r"not within input.folder .*: no run would find"):
        upload_folder(settings)
    (tmp_path / "other").mkdir()
    named = settings_in(tmp_path, collections={"other": str(tmp_path / "other")})
    collections = open_collections(named)
    assert upload_folder(collections.named(None).settings) == tmp_path / "inbox" / "uploads"
    assert upload_folder(collections.named("other").settings) is None


def test_an_upload_is_followed_until_it_is_published_or_refused(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with Served({"default": settings}) as server:
        send(server, "letter.txt")
        send(server, "damaged.pdf", b"no pdf")
        Index(settings=settings).update(tmp_path / "inbox")
        listed = {each["name"]: each for each in server.get("/v1/uploads").json()["uploads"]}
        assert listed["letter.txt"]["status"] == "published"
        assert listed["letter.txt"]["uri"].endswith("/letter.txt")
        document = server.get(f"/v1/documents/{listed['letter.txt']['document_id']}/text").json()
        assert document["text"].encode().strip() == TEXT.strip()
        assert listed["damaged.pdf"]["status"] == "quarantined"
        assert "damaged" in listed["damaged.pdf"]["reason"]
        (batch,) = server.get("/v1/batches").json()["batches"]
        assert batch["counts"]["add"] == 2
        assert batch["stages"] == ["documents", "chunks", "extractions", "graph", "published"]
        send(server, "later.txt", b"Grace Hopper met Ada Lovelace.")
        index = Index(settings=settings)
        index.batches.cut(tmp_path / "inbox", settings.batches, max_bytes=10**6)
        newest = server.get("/v1/uploads").json()["uploads"][0]
        assert (newest["name"], newest["status"], newest["stages"]) == ("later.txt", "indexing", [])


@pytest.mark.browser
def test_files_are_chosen_or_dropped_on_the_page(browser: Any, served: Served) -> None:
    page = browser.new_page()
    try:
        page.goto(f"{served.url}/documents")
        page.wait_for_selector("#uploading:visible")
        hostile = "<img src=x onerror=alert(1)>.md"
        files = [("chosen.md", "text/plain", b"# Chosen"), (hostile, "text/plain", b"# Hostile")]
        page.set_input_files(
            "#files",
            [{"name": name, "mimeType": kind, "buffer": data} for name, kind, data in files],
        )
        page.wait_for_selector("#uploads bdi:text-is('chosen.md')")
        page.wait_for_selector("#uploads bdi:text-is('img-src-x-onerror-alert-1.md')")
        page.evaluate(
            """() => {
                const given = new DataTransfer();
                given.items.add(new File(["# Dropped"], "dropped.md"));
                given.items.add(new File(["x"], "<b>tool</b>.exe"));
                const drop = new DragEvent("drop", { dataTransfer: given, bubbles: true });
                document.getElementById("drop").dispatchEvent(drop);
            }"""
        )
        page.wait_for_selector("#uploads bdi:text-is('dropped.md')")
        page.wait_for_selector("#sent li:has-text('<b>tool</b>.exe') .bad")
        assert page.query_selector("main img, main b") is None
        assert "waits for the next run" in page.inner_text("#uploads")
    finally:
        page.close()


@pytest.mark.browser
def test_the_page_follows_an_upload_until_it_can_be_asked_of(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The server looks into a file that this process would keep open.
    monkeypatch.setattr(IndexStore, "_connect", OPEN)
    settings = settings_in(tmp_path)
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "other.txt").write_text("Grace Hopper wrote to Ada Lovelace.\n")
    Index(settings=settings).update(tmp_path / "inbox")
    with Served({"default": settings}) as server, opened(browser, server) as page:
        page.click("#to-documents")
        page.wait_for_selector("#listed li")
        page.set_input_files(
            "#files", {"name": "letter.txt", "mimeType": "text/plain", "buffer": TEXT}
        )
        page.wait_for_selector("#uploads li:has-text('waits for the next run')")
        Index(settings=settings).update(tmp_path / "inbox")
        page.wait_for_selector("#uploads li:has-text('can be asked of now')")
        page.wait_for_selector("#listed li:nth-child(2)")
        page.click("#uploads a:text-is('Ask')")
        ask(page, "Who wrote to whom?", "bm25")
        assert {*page.locator(".card .name").all_inner_texts()} == {"Letter"}
        assert page.locator(".narrowed .chip").count() == 1
