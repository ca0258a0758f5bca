"""No path of the server's disk leaves it over HTTP: every address is called, and looked through."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import requests
from graphrag_server.collections import DEFAULT, open_collections
from graphrag_server.folders import Folders
from http_server import Served
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.index import Index
from graphrag_pipeline.query import QueryEngine

FOLDER = "folder of the server"
QUESTION = "Who designed the Orm Bridge?"
FILES = {
    "bridge.md": "# The Orm Bridge\n\nIngrid Vestergaard designed the Orm Bridge in Ravnsund. "
    "Ingrid Vestergaard finished the Sandholm Lighthouse before.\n",
    "more/foundry.txt": "The Halvorsen Foundry of Ravnsund cast the arches of the Orm Bridge. Nils "
    "Halvorsen founded the Halvorsen Foundry.\n",
    "uploads/0123456789abcdef/broken.pdf": "%PDF-1.4 this is none",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of documents, an index of it in quite another, and settings for both."""
    place = tmp_path_factory.mktemp("disk") / FOLDER
    for name, text in FILES.items():
        (place / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "docs" / name).write_text(text)
    Index(settings_of(place)).update(place / "docs")
    return place


def settings_of(place: Path) -> Settings:
    return Settings(
        home=str(place / "project" / "home"),
        input={"folder": str(place / "docs")},  # type: ignore[arg-type]
        server={"uploads": str(place / "docs" / "uploads")},  # type: ignore[arg-type]
        embeddings={"dimensions": 32},  # type: ignore[arg-type]
    )


@pytest.fixture(scope="module")
def served(place: Path) -> Iterator[Served]:
    with Served({"default": settings_of(place)}) as server:
        yield server


def first(served: Served, path: str, name: str) -> dict[str, Any]:
    return served.get(path).json()[name][0]


def asked_of(served: Served) -> dict[str, list[tuple[str, dict[str, Any] | None]]]:
    """Return by method and address what to call: paths, and a body where one is sent."""
    question = {"question": QUESTION, "method": "local", "follow_ups": 2}
    document = first(served, "/v1/documents", "documents")["id"]
    entity = first(served, "/v1/entities?q=Orm", "entities")
    of_entity = served.get(f"/v1/entities/{entity['id']}").json()
    community = of_entity["communities"][0]
    number = served.get(f"/v1/communities/{community['id']}").json()["human_readable_id"]
    say = [{"role": "user", "content": QUESTION}]
    chat = {"model": "default/local", "messages": say}
    kept = served.post("/v1/query", question=QUESTION, method="bm25", conversation="").headers
    talk, answer = kept["x-conversation"], kept["x-answer"]
    wrong = {"where": {"uri": "no"}, "method": "bm25"}
    return {
        "POST /v1/query": [("", question), ("", question | wrong), ("", {"question": 1})],
        "POST /v1/retrieve": [("", {"question": QUESTION}), ("", {"question": QUESTION} | wrong)],
        "POST /v1/compare": [("", {"question": QUESTION, "methods": ["bm25", "local"]})],
        "POST /v1/query/stream": [("", question), ("", question | wrong)],
        "GET /v1/methods": [("", None), ("?collection=no", None)],
        "GET /v1/models": [("", None)],
        "GET /v1/models/{model}": [("default/local", None), ("no/no", None)],
        "POST /v1/chat/completions": [
            ("", chat),
            ("", chat | {"stream": True}),
            ("", chat | wrong),
        ],
        "POST /v1/completions": [("", {"model": "default/local", "prompt": QUESTION})],
        "GET /v1/documents": [("", None), ("?q=orm&where=uri=more", None), ("?where=no", None)],
        "GET /v1/fields": [("", None)],
        "GET /v1/fields/values": [("?key=title", None), ("", None)],
        "POST /v1/documents": [("?name=a.txt", {"a": 1}), ("?name=a.exe", {}), ("", {})],
        "GET /v1/documents/{id}": [(document, None), ("no", None)],
        "GET /v1/documents/{id}/text": [(document, None), ("no", None)],
        "GET /v1/documents/{id}/original": [(document, None), ("no", None)],
        "GET /v1/documents/{id}/file": [(document, None), ("no", None)],
        "GET /v1/documents/{id}/rows": [(document, None), ("no", None)],
        "GET /v1/entities": [("?q=Orm", None)],
        "GET /v1/entities/{id}": [(entity["id"], None), ("no", None)],
        "GET /v1/entities/{id}/neighbourhood": [(entity["id"], None)],
        "POST /v1/entities/{id}/corrections": [
            (entity["id"], {"action": "rename", "value": "The Bridge"}),
            (entity["id"], {"action": "never", "value": "The Bridge"}),
        ],
        "GET /v1/communities/{id}": [(community["id"], None)],
        "GET /v1/reports/{id}": [(community["report_id"], None)],
        "GET /v1/explorer": [("", None)],
        "GET /v1/explorer/entities/{number}": [(entity["human_readable_id"], None)],
        "GET /v1/explorer/communities/{number}": [(number, None)],
        "GET /v1/uploads": [("", None)],
        "GET /v1/batches": [("", None)],
        "GET /health": [("", None)],
        "GET /ready": [("", None), ("?collection=no", None)],
        "GET /v1/collections": [("", None)],
        "GET /v1/releases": [("", None)],
        "GET /v1/examples": [("", None)],
        "GET /metrics": [("", None)],
        "GET /v1/status": [("", None)],
        "GET /v1/history": [("", None)],
        "GET /v1/history/{id}": [(talk, None), ("no", None)],
        "POST /v1/history/{id}": [(talk, {"title": "x"})],
        "GET /v1/answers/{id}": [(answer, None), ("no", None)],
        "POST /v1/answers/{id}/feedback": [(answer, {"verdict": "bad"})],
        "DELETE /v1/history/{id}": [(talk, None)],
    }


def called(served: Served, address: str, value: Any, body: Any) -> requests.Response:
    method, _, path = address.partition(" ")
    before, brace, after = path.partition("{")
    rest = after.partition("}")[2]
    url = f"{served.url}{before}{value}{rest}" if brace else f"{served.url}{path}{value}"
    return served.http.request(method, url, json=body, timeout=60)


def test_no_address_tells_a_path_of_the_disk(served: Served, place: Path) -> None:
    described = {
        f"{method.upper()} {path}"
        for path, methods in served.app.openapi()["paths"].items()
        for method in methods
    }
    requests = asked_of(served)
    assert set(requests) == described
    texts: dict[str, str] = {}
    for address, calls in requests.items():
        for n, (value, body) in enumerate(calls):
            got = called(served, address, value, body)
            assert got.status_code < 500, (address, got.text)
            assert n or got.ok, (address, got.text)
            texts[f"{address} {value} {got.status_code}"] = f"{got.headers} {got.text}"
    for path in ("/", "/openapi.json", "/explorer", "/documents/no", "/reports/no", "/nothing"):
        texts[path] = served.get(path).text
    assert [address for address, text in texts.items() if FOLDER in text] == []
    whole = "".join(texts.values())
    assert "bridge.md" in whole
    assert '"uri":"more/foundry.txt"' in whole
    assert "quarantined" in whole


def test_no_tool_resource_or_prompt_of_assistants_tells_one(served: Served) -> None:
    statements = (
        "SELECT * FROM documents",
        "SELECT root, [uri] AS uris, 'in ' || root AS place FROM published.batches "
        "JOIN batch_sources USING (batch)",
        "SELECT 'it is at ' || path AS place FROM duckdb_databases()",
        "FROM duckdb_settings()",
        "SELECT CAST(uri AS INT) FROM documents",
    )

    async def talk() -> str:
        texts: list[Any] = []
        async with (
            httpx2.AsyncClient(trust_env=False, timeout=60) as http,
            Client(streamable_http_client(f"{served.url}/mcp", http_client=http)) as client,
        ):
            for tool, arguments in (
                ("query", {"question": QUESTION}),
                ("query", {"question": QUESTION, "where": {"uri": "no"}}),
                ("retrieve", {"question": QUESTION, "method": "bm25"}),
                ("find_entities", {"name": "Orm"}),
                ("neighbourhood", {"entity": "Orm Bridge"}),
                ("list_methods", {}),
                *(("sql", {"statement": statement}) for statement in statements),
            ):
                texts.append(await client.call_tool(tool, arguments))
            resources = await client.list_resources()
            texts.append(resources)
            for resource in resources.resources:
                texts.append(await client.read_resource(resource.uri))
                document = str(resource.uri).rpartition("/")[2]
                texts.append(await client.call_tool("read_document", {"document": document}))
            with pytest.raises(MCPError) as caught:
                await client.read_resource("graphrag://default/documents/no")
            texts.append(caught.value)
        return "\n".join(map(str, texts))

    text = asyncio.run(talk())
    assert "more/foundry.txt" in text
    assert FOLDER not in text


def test_a_name_that_is_told_finds_its_document_and_so_does_its_path(
    served: Served, place: Path
) -> None:
    documents = served.get("/v1/documents").json()["documents"]
    assert {each["uri"] for each in documents} == {"bridge.md", "more/foundry.txt"}
    assert {each["source"] for each in documents} == {"bridge.md", "more/foundry.txt"}
    for uri in ("more/foundry.txt", str(place / "docs" / "more" / "foundry.txt")):
        body = {"question": "Ravnsund", "method": "bm25", "where": {"uri": uri}}
        cited = served.post("/v1/query", **body).json()["citations"]
        assert {each["uri"] for each in cited} == {"more/foundry.txt"}


def test_who_may_read_the_files_is_told_their_paths(place: Path) -> None:
    settings = settings_of(place)
    path = str(place / "docs" / "bridge.md")
    with QueryEngine(settings=settings) as engine:
        assert path in {each.uri for each in engine.answer(QUESTION, "bm25").citations}
    collections = open_collections(settings, with_paths=True)
    with collections.named(DEFAULT).lease() as engine:
        assert path in {each.uri for each in engine.answer(QUESTION, "bm25").citations}
    collections.close()


def test_names_within_the_project_and_addresses_stay() -> None:
    import duckdb

    from graphrag_pipeline.store.bare_names import bare_names

    con = duckdb.connect()
    con.execute("ATTACH ':memory:' AS published")
    con.execute(
        "CREATE TABLE published.batches AS SELECT unnest(['docs', '/a', '/a/b''c']) AS root"
    )
    uris = ["docs/x.md", "https://host/a/x", "import:l/t", "/a/x.md", "/a/b'c/y#1", "/gone/z.md"]
    con.execute("CREATE TABLE published.documents AS SELECT unnest(?) AS uri", [uris])
    bare_names(con)
    shown = [uri for (uri,) in con.execute("SELECT uri FROM documents").fetchall()]
    assert shown == [*uris[:3], "x.md", "y#1", "z.md"]
    assert con.execute("SELECT list(root) FROM batches").fetchall() == [(["docs", "a", "b'c"],)]


def test_folders_are_taken_out_of_whatever_sql_gives() -> None:
    folders = Folders(["/a", "/a/b", "/"])
    value = [("/a/b", {"/a/b/c": ["see '/a/b/c', /a and /a/x"]}, 7, None)]
    assert folders.without(value) == [("", {"c": ["see 'c',  and x"]}, 7, None)]
    other = "https://host/a/b, /ab, /a-b and b/a/b"
    assert folders.without(other) == other
    assert Folders([]).without(value) == value
