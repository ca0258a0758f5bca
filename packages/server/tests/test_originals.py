"""The files that documents were read from: given as they were indexed, to who may have them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import browser as browser
from graphrag_server.keys import Keyring, add_key
from graphrag_server.paths import ServerFiles
from http_server import Served, bearer
from test_page import opened
from test_reading import make_pdf

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.index import Index

DEPTHS = "The depth was {} fathoms at low water."
PAGES = [[f"Chapter {n} of the survey.", DEPTHS.format(n * 7)] for n in range(1, 6)]
FILES: dict[str, bytes] = {
    "survey.pdf": make_pdf(PAGES),
    "page.html": b"<html><script>alert(1)</script><p>Alba Crane wrote to Ravnsund.</p></html>",
    "notes/mühle.md": b"# Halden Mill\n\nAlba Crane mended it.\n",
    "pumps.csv": b"id,name,keeper\n"
    + b"".join(b"P%d,Pump %d,<b>Osric %d\n" % (n, n, n) for n in range(1, 31)),
    "hidden/debts.txt": b"Alba Crane owed Osric Thale a barge.\n",
}
RULES = [{"match": "*", "labels": ["hr", "staff"]}, {"match": "hidden/", "labels": ["hr"]}]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    place = tmp_path_factory.mktemp("originals")
    for name, data in FILES.items():
        path = place / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    made = Settings.exactly(
        {
            "home": str(place / "project" / "home"),
            "input": {"folder": str(place / "docs")},
            "embeddings": {"dimensions": 32},
            "access": {"mode": "filtered", "rules": RULES},
        }
    )
    Index(made).update(place / "docs")
    return made


@pytest.fixture(scope="module")
def served(settings: Settings) -> Iterator[Served]:
    with Served({"default": settings}) as server:
        yield server


def ids_of(served: Served, key: str = "") -> dict[str, str]:
    listed = served.get("/v1/documents?most=100", headers=bearer(key) if key else {}).json()
    return {document["uri"]: document["id"] for document in listed["documents"]}


def path_of(settings: Settings, name: str) -> Path:
    return settings.input_path / name


def test_a_file_is_given_byte_for_byte_and_nothing_but_a_pdf_is_shown(served: Served) -> None:
    ids = ids_of(served)
    for name, data in FILES.items():
        got = served.get(
            f"/v1/documents/{ids[name if name != 'pumps.csv' else 'pumps.csv#P1']}/file"
        )
        assert got.content == data, name
        assert got.headers["x-content-type-options"] == "nosniff"
        shown, _, named = got.headers["content-disposition"].partition("; ")
        if name.endswith(".pdf"):
            assert (shown, got.headers["content-type"]) == ("inline", "application/pdf")
            assert "script" not in got.headers["content-security-policy"]
        else:
            assert (shown, got.headers["content-type"]) == (
                "attachment",
                "application/octet-stream",
            )
            assert got.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
        assert named.isascii()
    facts = served.get(f"/v1/documents/{ids['survey.pdf']}/original").json()
    assert (facts["name"], facts["n_bytes"]) == ("survey.pdf", len(FILES["survey.pdf"]))


def swapped(path: Path) -> None:
    """Other bytes, as many."""
    path.write_bytes(path.read_bytes().replace(b"Alba", b"Evil"))


def led_out(path: Path) -> None:
    """The same bytes, out of the folder."""
    other = path.parents[2] / "elsewhere.md"
    path.rename(other)
    path.symlink_to(other)


@pytest.mark.parametrize(
    ("change", "why", "is_told_before"),
    [
        (lambda path: path.write_bytes(b"# Other\n\nText.\n"), "has changed since", True),
        (swapped, "has changed since", False),
        (Path.unlink, "no longer lies where", True),
        (led_out, "no longer lies where", True),
    ],
)
def test_what_is_not_as_it_was_indexed_is_not_given(
    served: Served,
    settings: Settings,
    tmp_path: Path,
    change: Callable[[Path], None],
    why: str,
    is_told_before: bool,
) -> None:
    (name,) = [name for name in FILES if name.startswith("notes/")]
    id = ids_of(served)[name]
    path = path_of(settings, name)
    kept = shutil.copy2(path, tmp_path)
    change(path)
    got = served.get(f"/v1/documents/{id}/file")
    before = served.get(f"/v1/documents/{id}/original").json()
    path.unlink(missing_ok=True)
    shutil.move(kept, path)
    assert got.status_code == 404
    assert why in got.json()["detail"]
    assert str(settings.input_path) not in got.text
    assert before["problem"] == (got.json()["detail"] if is_told_before else None)


def test_whoever_runs_it_may_give_none_out(settings: Settings) -> None:
    server = settings.server.model_copy(update={"originals": False})
    with Served({"default": settings.model_copy(update={"server": server})}) as served:
        id = ids_of(served)["survey.pdf"]
        got = served.get(f"/v1/documents/{id}/file")
        assert got.status_code == 403
        assert "server.originals" in got.json()["detail"]
        facts = served.get(f"/v1/documents/{id}/original").json()
        assert (facts["problem"], facts["name"]) == (got.json()["detail"], None)
        assert served.get(f"/v1/documents/{id}/text").ok


def test_a_caller_gets_files_of_his_documents_alone_and_none_that_holds_others_too(
    settings: Settings, tmp_path: Path, served: Served
) -> None:
    everything = ids_of(served)
    ring = Settings(home=str(tmp_path))
    may = {"collections": {"default"}, "labels": {"staff"}}
    _, key = add_key(ring, "anna", scopes={"query", "read"}, **may)
    _, asks = add_key(ring, "bert", scopes={"query"}, **may)
    with Served({"default": settings}, Keyring(ServerFiles(tmp_path).keys)) as server:

        def got(id: str, path: str = "file", by: str = key) -> Any:
            return server.get(f"/v1/documents/{id}/{path}", headers=bearer(by))

        ids = ids_of(server, key)
        assert "hidden/debts.txt" not in ids
        assert got(ids["survey.pdf"]).content == FILES["survey.pdf"]
        assert got(ids["pumps.csv#P1"]).status_code == 403
        for path in ("file", "original", "rows"):
            hidden = got(everything["hidden/debts.txt"], path)
            assert (hidden.status_code, hidden.json()) == (404, got("none", path).json())
            assert got(ids["survey.pdf"], path, asks).status_code == 403
        assert server.get(f"/v1/documents/{ids['survey.pdf']}/file").status_code == 401


def test_a_passage_is_told_with_the_page_that_it_begins_on(served: Served) -> None:
    id = ids_of(served)["survey.pdf"]
    text = served.get(f"/v1/documents/{id}/text").json()["text"]
    for number in range(1, 6):
        start = text.index(DEPTHS.format(number * 7))
        original = served.get(f"/v1/documents/{id}/original?start={start}").json()
        assert original["page"] == number
    found = served.post("/v1/query", question="Where was the depth 21 fathoms?").json()
    (cited,) = [c for c in found["citations"] if "21 fathoms" in c["text"]]
    assert cited["page"] == 3


def test_a_row_stands_among_its_neighbours_under_the_names_of_columns(served: Served) -> None:
    ids = ids_of(served)
    got = served.get(f"/v1/documents/{ids['pumps.csv#P15']}/rows").json()
    assert sorted(got["columns"]) == ["id", "keeper", "name"]
    place = got["columns"].index("id")
    assert [row["cells"][place] for row in got["rows"]] == [f"P{n}" for n in range(5, 26)]
    assert [row["id"] for row in got["rows"]][10] == ids["pumps.csv#P15"]
    assert got["first"] == 5
    assert served.get(f"/v1/documents/{ids['survey.pdf']}/rows").json()["rows"] == []


@pytest.mark.browser
def test_a_passage_of_a_pdf_leads_to_its_page_and_a_row_is_marked_in_its_table(
    browser: Any, served: Served
) -> None:
    ids = ids_of(served)
    text = served.get(f"/v1/documents/{ids['survey.pdf']}/text").json()["text"]
    start = text.index("21 fathoms")
    with opened(browser, served) as page:
        page.goto(f"{served.url}/documents/{ids['survey.pdf']}?start={start}&end={start + 20}")
        link = page.wait_for_selector("#panel a:text-is('Original file')")
        assert link.get_attribute("href").endswith("#page=3")
        assert link.get_attribute("target") == "_blank"
        page.goto(f"{served.url}/documents/{ids['pumps.csv#P15']}")
        page.wait_for_selector(".around tr[aria-current]")
        cells = page.locator(".around tr[aria-current] > *").all_inner_texts()
        assert cells == ["Pump 15", "P15", "<b>Osric 15"]
        assert page.locator(".around b").count() == 0
        with page.expect_download() as download:
            page.click("#panel a:text-is('Original file')")
        assert Path(download.value.path()).read_bytes() == FILES["pumps.csv"]
        page.click(".around a bdi:text-is('Pump 16')")
        page.wait_for_selector(".around tr[aria-current]:has-text('P16')")
