"""What callers say of entities: lines of aliases.csv, on the page and by programs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pytest
from browser import browser as browser
from graphrag_server.corrections import add_correction
from graphrag_server.keys import Keyring, add_key
from graphrag_server.paths import ServerFiles
from http_server import Served, bearer
from query_fixture import published

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.graph.resolution.user_aliases import read_user_aliases


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = published(tmp_path / "home")
    with duckdb.connect(home / "published.duckdb") as con:
        con.execute(
            """INSERT INTO entity_chunks BY NAME SELECT e.id AS entity_id, c.id AS chunk_id,
               1 AS n_mentions FROM entities e, chunks c JOIN documents d ON d.id = c.document_id
               WHERE e.title = 'Scrooge' AND d.title = 'Marie Curie'"""
        )
    return home


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    with Served({"default": home}) as server:
        yield server


def entity(served: Served, name: str, **headers: Any) -> str:
    found = served.get("/v1/entities", params={"q": name}, **headers).json()["entities"]
    return found[0]["id"]


def lines(home: Path) -> list[tuple[str, str, str]]:
    return [(row.action, row.a, row.b) for row in read_user_aliases(home / "aliases.csv")]


def test_what_is_there_stays_as_it_is_and_what_is_said_is_said_once(
    served: Served, home: Path
) -> None:
    kept = b'\xef\xbb\xbfAction,b,a,note\r\nmerge,"London, the City",The Smoke,"by hand, 2024"'
    (home / "aliases.csv").write_bytes(kept)
    path = f"/v1/entities/{entity(served, 'Scrooge')}/corrections"
    for _ in range(2):
        response = served.post(path, action="rename", value="Scrooge, Ebenezer")
        assert response.status_code == 202
    assert response.json()["line"].startswith('rename,"Scrooge, Ebenezer",Scrooge,"this machine, 2')
    assert served.post(path, action="type", value="miser").status_code == 202
    assert (home / "aliases.csv").read_bytes().startswith(kept + b"\n")
    assert lines(home) == [
        ("merge", "The Smoke", "London, the City"),
        ("rename", "Scrooge", "Scrooge, Ebenezer"),
        ("type", "Scrooge", "MISER"),
    ]


def places(served: Served, name: str) -> dict[str, str]:
    found = served.get(f"/v1/entities/{entity(served, name)}").json()["places"]
    return {place["uri"]: place["document_id"] for place in found}


def test_documents_tell_two_of_one_name_apart(served: Served, home: Path) -> None:
    (home / "aliases.csv").write_text("action,a,b\ntype,Scrooge,OTHER\n")
    path = f"/v1/entities/{entity(served, 'Scrooge')}/corrections"
    (uri, id), *_ = places(served, "Scrooge").items()
    response = served.post(path, action="split", value="his uncle", documents=[id])
    assert response.status_code == 202, response.text
    (_, row) = read_user_aliases(home / "aliases.csv")
    assert (row.action, row.a, row.b, row.documents) == ("split", "Scrooge", "his uncle", uri)
    for documents in ([], ["none"]):
        refused = served.post(path, action="split", value="x", documents=documents)
        assert (refused.status_code, "documents" in refused.json()["detail"]) == (422, True)


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"action": "rename", "value": "Scrooge"}, 409, "it is Scrooge already"),
        ({"action": "rename", "value": "a\nmerge,b,c"}, 422, "value"),
        ({"action": "rename", "value": "\u202eegoorcS"}, 422, "value"),
        ({"action": "rename", "value": " "}, 422, "value"),
        ({"action": "drop", "value": "x"}, 422, "action"),
        ({"action": "never", "value": "Marley"}, 409, "were said to be one before"),
    ],
)
def test_what_cannot_be_said_changes_nothing(
    served: Served, home: Path, body: dict[str, str], status: int, says: str
) -> None:
    (home / "aliases.csv").write_text("action,a,b\nmerge,Marley,Scrooge\n")
    response = served.post(f"/v1/entities/{entity(served, 'Scrooge')}/corrections", **body)
    assert (response.status_code, says in response.json()["detail"]) == (status, True)
    assert lines(home) == [("merge", "Marley", "Scrooge")]
    assert served.post("/v1/entities/none/corrections", action="type", value="x").status_code == 404


def test_no_line_is_lost_where_many_are_added_at_once(tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path))

    def say(n: int) -> None:
        add_correction(settings, {"action": "type", "a": f"Thing {n}", "b": "OTHER", "note": ""})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(say, range(20)))
    assert {a for _, a, _ in lines(tmp_path)} == {f"Thing {n}" for n in range(20)}


def test_it_takes_the_scope_write(home: Path, tmp_path: Path) -> None:
    _, reader = add_key(
        Settings(home=str(tmp_path)), "ben", collections={"default"}, scopes={"read", "query"}
    )
    with Served({"default": home}, Keyring(ServerFiles(tmp_path).keys)) as served:
        headers = {"headers": bearer(reader)}
        url = f"{served.url}/v1/entities/{entity(served, 'Scrooge', **headers)}/corrections"
        body = {"action": "type", "value": "x"}
        assert served.http.post(url, json=body, timeout=60, **headers).status_code == 403
    assert not (home / "aliases.csv").exists()


@pytest.mark.browser
def test_an_entity_is_renamed_retyped_and_merged_on_the_page(
    browser: Any, served: Served, home: Path
) -> None:
    page = browser.new_page()
    try:
        page.goto(f"{served.url}/documents")
        page.fill("#find", "Scrooge")
        page.press("#find", "Enter")
        page.click("#entities bdi:text-is('Scrooge')")
        page.click("#panel summary:text-is('Correct it')")
        for label, value in (("Call it", "Ebenezer Scrooge"), ("It is a", "MISER")):
            page.fill(f"#panel form:has(label:text-is('{label}')) input", value)
            page.press(f"#panel form:has(label:text-is('{label}')) input", "Enter")
            page.wait_for_function("n => document.querySelector('.corrections [role=status]')"
                                   ".textContent.startsWith('Noted')", arg=0)  # fmt: skip
        page.fill("#panel form:has(label:text-is('The same as')) input", "marl")
        page.press("#panel form:has(label:text-is('The same as')) input", "Enter")
        with page.expect_response("**/corrections*") as answer:
            page.click("#panel button[aria-label='Merge with Marley']")
        assert answer.value.status == 202
        page.fill("#panel form:has(label:text-is('Another is')) input", "his uncle")
        legend, first = (
            page.locator(f"#panel .another {each}").first.bounding_box()
            for each in ("legend", "input")
        )
        assert first["y"] >= legend["y"] + legend["height"]
        page.check("#panel fieldset.another input >> nth=0")
        with page.expect_response("**/corrections*") as answer:
            page.press("#panel form:has(label:text-is('Another is')) input", "Enter")
        assert answer.value.status == 202
    finally:
        page.close()
    assert set(lines(home)) == {
        ("rename", "Scrooge", "Ebenezer Scrooge"),
        ("type", "Scrooge", "MISER"),
        ("merge", "Scrooge", "Marley"),
        ("split", "Scrooge", "his uncle"),
    }
