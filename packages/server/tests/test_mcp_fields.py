"""Prompts, and the fields of each tool's result, by the official client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import jsonschema
import pytest
from graphrag_server.keys import Keyring, add_key
from graphrag_server.mcp.quoting import RULE, RULE_OF_FIELDS
from graphrag_server.paths import ServerFiles
from http_server import Served, bearer
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from query_fixture import DOCUMENTS, published, settings_for

QUESTION = "Who worked as a clerk for Scrooge?"
PROMPTS = {
    "ask_with_citations": {"question": QUESTION},
    "overview": {},
    "compare": {"first": "Scrooge <second>", "second": "Marley"},
    "connect": {"first": "Scrooge", "second": "Marley"},
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published(tmp_path_factory.mktemp("fields") / "home")


@pytest.fixture(scope="module")
def served(home: Path) -> Iterator[Served]:
    with Served({"default": home}) as server:
        yield server


@contextlib.asynccontextmanager
async def connected(server: Served, key: str = "") -> AsyncIterator[Client]:
    headers = bearer(key) if key else {}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(transport) as client:
            yield client


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("query", {"question": QUESTION, "method": "local"}),
    ("query", {"question": "What are the main themes?", "method": "global"}),
    ("query", {"question": "zzzz qqqq", "method": "bm25"}),
    ("retrieve", {"question": QUESTION, "method": "bm25"}),
    ("find_entities", {"name": "Scrooge"}),
    ("find_entities", {"name": "nobody at all"}),
    ("neighbourhood", {"entity": "Scrooge"}),
    ("list_methods", {}),
    ("sql", {"statement": "SELECT e.title, degree, metadata FROM entities e, documents LIMIT 2"}),
    (
        "sql",
        {"statement": "SELECT 1 AS a, 2 AS a, 'nan'::FLOAT AS n, now() AS t, {'x': [1]} AS s"},
    ),
    ("sql", {"statement": "FROM range(600)"}),
]


async def fields_of(client: Client) -> list[dict[str, Any]]:
    """Call every tool; return the fields of each result, which are right by the tool's schema."""
    schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
    assert all(schemas.values())
    documents = (await client.list_resources()).resources
    document = next(
        str(each.uri).rpartition("/")[2] for each in documents if each.name in DOCUMENTS
    )
    calls = [*CALLS, ("read_document", {"document": document, "start": 3, "end": 40})]
    assert {tool for tool, _ in calls} == set(schemas)
    results = []
    for tool, arguments in calls:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result
        fields = result.structured_content
        assert isinstance(fields, dict)
        jsonschema.validate(fields, schemas[tool])
        assert set(fields) == set(schemas[tool]["properties"])
        assert fields["rule"] == RULE_OF_FIELDS
        assert json.loads(json.dumps(fields)) == fields
        results.append(fields)
    return results


def assert_opens(server: Served, link: str) -> None:
    """Check that a link is of the page, and that what it shows is there in the release it names."""
    parts = urlsplit(link)
    assert link.startswith(f"{server.url}/")
    assert server.get(f"{parts.path}?{parts.query}").status_code == 200
    values = parse_qs(parts.query)
    assert values["release"] == ["r1"]
    assert values["collection"] == ["default"]
    shown = server.get(f"/v1{parts.path}", params={"release": "r1"}).json()
    assert parts.path.endswith(shown["id"])
    if "start" in values:
        span = {"start": values["start"][0], "end": values["end"][0]}
        assert server.get(f"/v1{parts.path}/text", params=span).json()["text"]


def test_every_result_has_fields_by_its_schema_that_say_what_its_text_says(
    served: Served,
) -> None:
    async def talk() -> list[dict[str, Any]]:
        async with connected(served) as client:
            return await fields_of(client)

    answer, _, nothing, evidence, named, none, near, methods, _, odd, many, part = asyncio.run(
        talk()
    )
    assert "Bob Cratchit worked as a clerk" in answer["answer"]
    for cited in (*answer["citations"], *evidence["citations"]):
        text = DOCUMENTS[cited["title"]]
        assert text[cited["start"] : cited["end"]] == cited["text"]
    assert nothing["citations"] == []
    assert named["entities"][0]["title"] == "Scrooge"
    assert none["entities"] == []
    assert {each["hop"] for each in near["entities"]} == {0, 1}
    assert {"Scrooge"} <= {each["source"] for each in near["relationships"]}
    assert "bm25" in {each["method"] for each in methods["methods"]}
    assert odd["columns"] == ["a", "a_1", "n", "t", "s"]
    assert odd["rows"][0] | {"t": ""} == {"a": 1, "a_1": 2, "n": None, "t": "", "s": {"x": [1]}}
    assert (len(many["rows"]), many["more"]) == (500, True)
    assert part["text"] == DOCUMENTS["A Christmas Carol"][3:40]
    for link in (each["link"] for each in (*answer["citations"], *evidence["citations"], part)):
        assert_opens(served, link)
    for each in (*named["entities"], *near["entities"]):
        assert_opens(served, each["link"])
    assert (part["start"], part["end"]) == (3, 40)


def test_an_answer_is_kept_where_it_is_wanted_and_its_link_opens_it(served: Served) -> None:
    async def talk() -> list[Any]:
        async with connected(served) as client:
            asked = {"question": QUESTION, "method": "bm25"}
            first = await client.call_tool("query", {**asked, "conversation": ""})
            talk = first.structured_content["conversation"]
            again = await client.call_tool("query", {**asked, "conversation": talk})
            return [first, again, await client.call_tool("query", asked)]

    first, again, unasked = asyncio.run(talk())
    fields = first.structured_content
    assert again.structured_content["conversation"] == fields["conversation"]
    parts = urlsplit(fields["link"])
    assert fields["link"].startswith(f"{served.url}/answers/")
    assert parse_qs(parts.query) == {"collection": ["default"]}
    assert served.get(f"{parts.path}?{parts.query}").status_code == 200
    assert served.get(f"/v1{parts.path}").json()["answer"]["text"] == fields["answer"]
    assert fields["link"] in first.content[0].text
    assert (unasked.structured_content["conversation"], unasked.structured_content["link"]) == (
        None, None
    )  # fmt: skip
    assert "kept" not in unasked.content[0].text


def test_no_field_holds_what_turns_or_hides_text(tmp_path: Path) -> None:
    title = "CANARY \x1b[2J\u202e"
    home = published(tmp_path, documents={title: f"{title} is a word of Scrooge."})

    async def talk(server: Served) -> Any:
        async with connected(server) as client:
            return (await client.call_tool("query", {"question": "CANARY"})).structured_content

    with Served({"default": home}) as server:
        text = json.dumps(asyncio.run(talk(server)), ensure_ascii=False)
    assert "CANARY" in text
    assert not [sign for sign in ("\x1b", "\\u001b", "\u202e") if sign in text]


@pytest.mark.live
def test_the_same_comes_over_standard_streams(home: Path, tmp_path: Path) -> None:
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "graphrag_pipeline.cli", "mcp"],
        env={**os.environ, "GRAPHRAG_HOME": str(home)},
        cwd=tmp_path,
    )

    async def talk() -> None:
        async with Client(stdio_client(command)) as client:
            answer, *others = await fields_of(client)
            assert len(others) == len(CALLS)
            assert [each["link"] for each in answer["citations"]] == [None] * len(
                answer["citations"]
            )
            assert {each.name for each in (await client.list_prompts()).prompts} == set(PROMPTS)

    asyncio.run(talk())


def test_prompts_say_how_to_use_the_tools(served: Served) -> None:
    async def talk() -> None:
        async with connected(served) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            listed = {each.name: each for each in (await client.list_prompts()).prompts}
            assert set(listed) == set(PROMPTS)
            for name, values in PROMPTS.items():
                needed = {a.name for a in listed[name].arguments or [] if a.required}
                assert needed == set(values)
                result = await client.get_prompt(name, {**values, "collection": "handbook"})
                (message,) = result.messages
                text = getattr(message.content, "text", "")
                assert all(value in text for value in values.values())
                assert text.endswith(RULE)
                assert "collection 'handbook'" in text
                assert [tool for tool in tools if tool in text]
                assert result.description == listed[name].description

    asyncio.run(talk())


def test_prompts_that_cannot_be_made_say_why(served: Served, home: Path, tmp_path: Path) -> None:
    reader = add_key(settings_for(tmp_path), "reader", collections={"*"}, scopes={"read"})[1]

    async def refused(server: Served, key: str, name: str, **values: str) -> str:
        async with connected(server, key) as client:
            with pytest.raises(MCPError) as caught:
                await client.get_prompt(name, values)
            return str(caught.value)

    async def prompts(server: Served, key: str) -> list[Any]:
        async with connected(server, key) as client:
            return (await client.list_prompts()).prompts

    assert "question" in asyncio.run(refused(served, "", "ask_with_citations"))
    assert "no prompt" in asyncio.run(refused(served, "", "nonsense"))
    too_long = "x" * 9000
    assert "8,000" in asyncio.run(refused(served, "", "ask_with_citations", question=too_long))
    with Served({"default": home}, Keyring(ServerFiles(tmp_path).keys)) as server:
        assert asyncio.run(prompts(server, reader)) == []
        assert "scope query" in asyncio.run(refused(server, reader, "overview"))
