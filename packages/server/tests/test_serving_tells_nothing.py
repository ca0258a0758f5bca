"""Two indexes with the same public documents and other hidden ones: no address tells them apart."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests
from graphrag_server.keys import SCOPES, Keyring, add_key
from graphrag_server.paths import ServerFiles
from http_server import Served, bearer
from mcp import MCPError
from test_mcp import connected
from test_views_tell_nothing import ids_of
from test_views_tell_nothing import pair as pair
from view_pairs import LABEL, QUESTIONS, Pair, Side, differing

from graphrag_pipeline.core.settings import Settings


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    home = tmp_path_factory.mktemp("keys")
    ring = Settings.exactly({"home": str(home)})
    named = {"labels": {LABEL}, "collections": {"*"}, "scopes": {*SCOPES} - {"metrics"}}
    return home, add_key(ring, "staff", **named)[1]


@pytest.fixture(scope="module")
def servers(pair: Pair, key: tuple[Path, str]) -> Iterator[dict[str, Served]]:
    ring = ServerFiles(key[0]).keys
    homes = {name: {"default": side.index.settings} for name, side in pair.items()}
    with (
        Served(homes["quiet"], Keyring(ring)) as quiet,
        Served(homes["loud"], Keyring(ring)) as loud,
    ):
        yield {"quiet": quiet, "loud": loud}


def questions(**more: object) -> list[dict[str, object]]:
    return [{"question": QUESTIONS[0], **more}]


BODIES: dict[str, list[dict[str, Any]]] = {
    "/v1/query": questions(method="local", follow_ups=3) + questions(where={"title": "Mill"}),
    "/v1/retrieve": questions(method="lightrag") + questions(method="global"),
    "/v1/compare": questions(methods=["bm25", "ppr", "raptor", "hirag", "archrag"]),
    "/v1/query/stream": questions(method="ppr"),
    "/v1/chat/completions": [
        {"model": "default/lightrag", "messages": [{"role": "user", "content": QUESTIONS[1]}]},
        {
            "model": "default/bm25",
            "messages": [{"role": "user", "content": QUESTIONS[2]}],
            "stream": True,
            "stream_options": {"include_usage": True},
        },
    ],
    "/v1/completions": [{"model": "default/local", "prompt": QUESTIONS[1]}],
    "/v1/documents": [{}],
    "/v1/history/{id}": [{"title": "Mine"}],
    "/v1/answers/{id}/feedback": [{"verdict": "good"}],
    "/v1/entities/{id}/corrections": [{"action": "merge", "value": "Marek Vale"}],
}
"""What is sent to each address that takes a body: every one that there is has to be here."""
QUERIES = {"q": "a", "hops": "3", "name": "new.md", "key": "mentor_id", "where": "uri=public"}
"""The parameters that are given wherever an address has them; all others are left out."""
OF_THE_REQUEST = {"date", "content-length"}


def requests_of(spec: Mapping[str, Any], ids: Mapping[str, list[str]]) -> Iterator[tuple[Any, ...]]:
    """Yield every request that the document of the addresses gives rise to."""
    numbers = [str(number) for number in range(len(ids["entities"]) + 3)]
    for template, methods in spec["paths"].items():
        path, _, rest = template.partition("{")
        name, _, after = rest.partition("}")
        known = {"number": numbers, "model": ["default/bm25", "default/none"]}
        kind = path.strip("/").rpartition("/")[2]
        values = (known.get(name) or [*ids.get(kind, ()), "none"]) if rest else [""]
        for method, operation in methods.items():
            names = {each["name"] for each in operation.get("parameters", [])}
            query = {name: value for name, value in QUERIES.items() if name in names}
            for body in BODIES[template] if method == "post" else [None]:
                for value in values[:3] if method == "post" else values:
                    yield method, path + value + after, query, body


def sent(server: Served, response: requests.Response) -> str:
    headers = {k: v for k, v in response.headers.items() if k.lower() not in OF_THE_REQUEST}
    return f"{response.status_code} {headers}\n{response.text}".replace(server.url, "SERVER")


ALL = pytest.param(1, marks=pytest.mark.nightly)


@pytest.mark.parametrize("each", [7, ALL])
def test_every_address_sends_the_same(
    pair: Pair, servers: Mapping[str, Served], key: tuple[Path, str], each: int
) -> None:
    ids = ids_of(pair, each)

    def told(side: Side) -> Mapping[str, object]:
        server, answers, statuses = servers[side.name], {}, Counter[int]()
        for method, path, query, body in requests_of(server.app.openapi(), ids):
            response = server.http.request(
                method, server.url + path, params=query, json=body, headers=bearer(key[1]),
                timeout=60,
            )  # fmt: skip
            answers[f"{method} {path} {query} {body}"] = sent(server, response)
            statuses[response.status_code] += 1
        assert statuses.keys() == {200, 403, 404}
        assert statuses[200] > 25
        return answers

    assert differing(pair, told) == []


# Assistants


def calls(ids: Mapping[str, list[str]]) -> dict[str, list[dict[str, Any]]]:
    """Return the arguments of each tool's calls: every tool that there is has to be here."""
    return {
        "query": questions(method="local"),
        "retrieve": questions(method="hipporag2"),
        "find_entities": [{"name": "a"}],
        "neighbourhood": [{"entity": id, "hops": 2} for id in [*ids["entities"], "Crane", "none"]],
        "read_document": [{"document": id} for id in ids["documents"]],
        "list_methods": [{}],
    }


async def assistant_reads(
    server: Served, key: str, ids: Mapping[str, list[str]]
) -> dict[str, object]:
    """Return all that the tools, resources and prompts of a server give."""
    told: dict[str, object] = {}

    async def note(name: str, given: Any) -> None:
        try:
            # Links begin with the server's address, which is another for each.
            told[name] = (await given).model_dump_json().replace(server.url, "")
        except MCPError as error:
            told[name] = str(error)

    async with connected(server, key) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == calls(ids).keys()
        for tool in tools:
            for number, arguments in enumerate(calls(ids)[tool.name]):
                await note(f"{tool.name} {number}", client.call_tool(tool.name, arguments))
        await note("resources", client.list_resources())
        await note("templates", client.list_resource_templates())
        uris = [f"graphrag://default/documents/{id}" for id in ids["documents"]]
        for uri in [*uris, "graphrag://default/releases"]:
            await note(uri, client.read_resource(uri))
        for prompt in (await client.list_prompts()).prompts:
            given = {each.name: "Alba Crane" for each in prompt.arguments or () if each.required}
            await note(prompt.name, client.get_prompt(prompt.name, given))
    return told


@pytest.mark.parametrize("each", [7, ALL])
def test_every_tool_resource_and_prompt_gives_an_assistant_the_same(
    pair: Pair, servers: Mapping[str, Served], key: tuple[Path, str], each: int
) -> None:
    ids = ids_of(pair, each)
    told = {
        name: asyncio.run(assistant_reads(server, key[1], ids)) for name, server in servers.items()
    }
    assert len(told["quiet"]) > 15
    assert "Alba Crane repaired Halden Mill" in str(told["quiet"])
    assert differing(pair, lambda side: told[side.name]) == []
