"""Two indexes with the same public documents and different hidden ones: a view tells them apart
by nothing, whatever is asked and however."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests
import typer
from artefacts import copy_of
from http_server import Served, bearer
from mcp import MCPError
from test_access import SPECS, tables_of
from test_mcp import connected
from typer.testing import CliRunner
from view_pairs import (
    LABEL,
    LOUD,
    QUESTIONS,
    QUIET,
    RELEASE_FIELDS,
    RULES,
    Pair,
    Side,
    differing,
    opened_pair,
    rows_of,
    write_pair,
)

from graphrag_pipeline import Index
from graphrag_pipeline.cli import query as asking
from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query import METHODS, QueryEngine, read_method
from graphrag_pipeline.serving.keys import SCOPES, Keyring, add_key

SETTINGS = {
    "embeddings": {"facts": True, "synonyms": True, "dimensions": 64},
    "hierarchies": {"raptor": True, "attributed": True, "hirag": True},
    "chunks": {"size": 30, "overlap": 5},
}
HIDDEN = {"quiet": QUIET, "loud": LOUD}
Views = Mapping[str, QueryEngine]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = copy_of(
        "views", lambda made: write_pair(made, SETTINGS, HIDDEN), tmp_path_factory.mktemp("views")
    )
    return opened_pair(folder, SETTINGS, HIDDEN)


@pytest.fixture(scope="module")
def views(pair: Pair) -> Iterator[Views]:
    with pair["quiet"].index.open() as quiet, pair["loud"].index.open() as loud:
        yield {"quiet": quiet.view({LABEL}), "loud": loud.view({LABEL})}


def shown(engine: QueryEngine, question: str, spec: str) -> object:
    """Return all that a method gives, in order, an error among it."""
    name, options = read_method(spec)
    try:
        parts = [engine.retrieve(question, name, **options).to_dict()]
        if name in METHODS:
            parts.append(engine.answer(question, name, follow_ups=3, **options).to_dict())
        return parts
    except GraphRAGError as error:
        return str(error)


def ids_of(pair: Pair, each: int) -> dict[str, list[str]]:
    """Return ids of what is in both indexes, hidden or not, by what they are of: one of so many."""
    tables = {"documents": "documents", "entities": "entities", "communities": "communities"}
    return {
        kind: sorted(
            {str(i) for side in pair.values() for (i,) in side.index.sql(f"SELECT id FROM {t}")[1]}
        )[::each]
        for kind, t in {**tables, "reports": "community_reports"}.items()
    }


def test_the_whole_indexes_differ_in_all_that_a_view_might_tell(pair: Pair) -> None:
    for table in ("entities", "relationships", "communities", "community_reports", "facts"):
        one, two = ({*map(str, side.index.sql(f"FROM {table}")[1])} for side in pair.values())
        assert one - two, table
        assert two - one, table


def test_every_table_of_a_view_holds_the_same_rows(pair: Pair, views: Views) -> None:
    names = tables_of(views["quiet"])
    assert names == tables_of(views["loud"])
    assert len(names) > 30

    def told(side: Side) -> Mapping[str, object]:
        index = views[side.name].index
        return {name: rows_of(index, name) for name in names} | {"counts": index.facts.counts}

    assert differing(pair, told) == []


@pytest.mark.parametrize(
    "question", [QUESTIONS[0], *(pytest.param(q, marks=pytest.mark.nightly) for q in QUESTIONS[1:])]
)
def test_every_method_gives_the_same(pair: Pair, views: Views, question: str) -> None:
    def told(side: Side) -> Mapping[str, object]:
        return {spec: shown(views[side.name], question, spec) for spec in SPECS}

    assert differing(pair, told) == []


# What remains, as the page on access says


def test_a_release_and_its_time_tell_of_other_documents(pair: Pair, views: Views) -> None:
    quiet, loud = (views[name].index.facts for name in pair)
    assert quiet.id != loud.id
    assert quiet.created_at != loud.created_at
    assert {"release", "created_at"} == {*RELEASE_FIELDS}


def test_who_may_see_everything_is_shown_the_release_itself(pair: Pair) -> None:
    with pair["quiet"].index.view(["hr"]).open() as everything:
        assert not everything.index.is_limited
        assert everything.index.rows("SELECT id FROM raptor_nodes")


def test_a_document_of_which_a_copy_is_hidden_is_hidden(tmp_path: Path) -> None:
    for file in ("public/one.md", "public/two.md", "hidden/copy.md"):
        path = tmp_path / "documents" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("Lucan Vane left." if "two" in file else "Alba Crane met Dorian Feld.")
    access = {"mode": "filtered", "rules": RULES}
    index = Index(Settings.exactly({"home": str(tmp_path / "home"), "access": access}))
    index.update(tmp_path / "documents")
    with index.view([LABEL]).open() as view:
        assert [row["text"] for row in view.index.rows("FROM documents")] == ["Lucan Vane left."]


# Over HTTP


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    home = tmp_path_factory.mktemp("keys")
    ring = Settings.exactly({"home": str(home)})
    named = {"labels": {LABEL}, "collections": {"*"}, "scopes": {*SCOPES} - {"metrics"}}
    return home, add_key(ring, "staff", **named)[1]


@pytest.fixture(scope="module")
def servers(pair: Pair, key: tuple[Path, str]) -> Iterator[dict[str, Served]]:
    ring = Home(key[0]).keys
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
    "/v1/entities/{id}/corrections": [{"action": "merge", "value": "Marek Vale"}],
}
"""What is sent to each address that takes a body: every one that there is has to be here."""
QUERIES = {"q": "a", "hops": "3", "name": "new.md"}
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
        values = (known.get(name) or [*ids[kind], "none"]) if rest else [""]
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
            told[name] = (await given).model_dump_json()
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


# On the command line

COMMANDS = {
    "query": ["-m", "local", "--follow-ups", "3"],
    "compare": ["-m", "bm25,ppr,lightrag", "--json"],
}
"""The further arguments of each command that takes labels: every one has to be here."""


def taking_labels(command: Any, name: str = "") -> Iterator[str]:
    for sub, each in getattr(command, "commands", {}).items():
        yield from taking_labels(each, f"{name} {sub}".strip())
    if any(parameter.name == "as_labels" for parameter in command.params):
        yield name


def test_every_command_that_takes_labels_is_known_here() -> None:
    assert {*taking_labels(typer.main.get_command(app))} == COMMANDS.keys()


@pytest.mark.parametrize("command", ["query", pytest.param("compare", marks=pytest.mark.nightly)])
def test_a_command_with_labels_prints_the_same(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def told(side: Side) -> Mapping[str, object]:
        monkeypatch.setattr(asking, "settings_here", lambda: side.index.settings)
        line = [command, QUESTIONS[0], "--as-labels", LABEL, *COMMANDS[command]]
        result = CliRunner().invoke(app, line)
        assert not result.exit_code, result.output
        return {command: result.output}

    assert differing(pair, told) == []
