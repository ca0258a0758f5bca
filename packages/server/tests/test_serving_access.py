"""Documents with labels over HTTP: what somebody may not read is sent to him by no address."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from graphrag_server.collections import open_collections
from graphrag_server.examples import Examples, questions_on
from graphrag_server.keys import SCOPES, Keyring, add_key
from graphrag_server.paths import ServerFiles
from graphrag_server.server import _tell_unguarded
from http_server import Served, bearer
from mcp import MCPError
from test_access import FOLDERS, hidden_words, opened, settings_of
from test_access import engine as engine
from test_access import index as index
from test_mcp import connected

from graphrag_pipeline import Index
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query import METHODS, QueryEngine


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    home = tmp_path_factory.mktemp("keys")
    made = {"staff": {"staff"}, "hr": {"hr", "staff"}, "nobody": {"x"}, "all": {"*"}}
    ring = Settings.exactly({"home": str(home)})
    return home, {
        name: add_key(ring, name, labels=labels, collections={"*"}, scopes=set(SCOPES))[1]
        for name, labels in made.items()
    }


@pytest.fixture(scope="module")
def served(index: Index, keys: tuple[Path, dict[str, str]]) -> Iterator[Served]:
    elsewhere = settings_of(index.home, access={})
    with Served(
        {"default": index.settings, "book": elsewhere}, Keyring(ServerFiles(keys[0]).keys)
    ) as server:
        yield server


def addresses(served: Served, engine: QueryEngine) -> Iterator[str]:
    """Yield all addresses that give something, with the ids and numbers of everything there is."""
    ids = {
        table.rpartition("_")[2]: {str(row["id"]) for row in engine.index.rows(f"FROM {table}")}
        for table in ("documents", "entities", "communities", "community_reports")
    }
    numbers = {str(n) for n in range(len(FOLDERS) + 8)}
    for template, methods in served.app.openapi()["paths"].items():
        if "get" in methods:
            path, _, rest = template.partition("{")
            if not rest:
                yield path
                continue
            name, _, after = rest.partition("}")
            kind = path.strip("/").rpartition("/")[2]
            for value in sorted(numbers if name == "number" else ids.get(kind, ["default"])):
                yield path + value + after


def sent(response: requests.Response) -> str:
    return f"{response.headers}{response.text}".casefold()


@pytest.mark.parametrize("who", ["staff", "hr", "nobody"])
def test_no_address_sends_a_byte_of_a_hidden_document(served, engine, keys, who):
    labels = {"staff": {"staff"}, "hr": {"hr", "staff"}, "nobody": {"x"}}[who]
    hidden, n_given = hidden_words(labels), 0
    for path in addresses(served, engine):
        query = {"q": "a", "hops": 3} if "/entities" in path else {}
        response = served.get(path, params=query, headers=bearer(keys[1][who]))
        n_given += response.ok
        assert [word for word in hidden if word in sent(response)] == [], path
    assert n_given > (20 if who != "nobody" else 3)


@pytest.mark.parametrize("who", ["staff", "hr"])
def test_no_answer_over_http_holds_a_byte_of_a_hidden_document(served, keys, who):
    hidden = hidden_words({"staff": {"staff"}, "hr": {"hr", "staff"}}[who])
    key, question = keys[1][who], "What did Alba Crane do at Halden Mill?"
    for method in METHODS:
        response = served.post("/v1/query", key, question=question, method=method, follow_ups=3)
        assert response.ok, response.text
        assert [word for word in hidden if word in sent(response)] == [], method
    for path, body in {
        "/v1/retrieve": {"method": "local"},
        "/v1/compare": {"methods": ["bm25", "local", "raptor", "hirag", "kag"]},
        "/v1/query/stream": {"method": "ppr"},
        "/v1/chat/completions": {"model": "default/lightrag"},
    }.items():
        told = {"messages": [{"role": "user", "content": question}]}
        asked = told if "model" in body else {"question": question}
        response = served.post(path, key, **asked, **body)
        assert response.ok, response.text
        assert [word for word in hidden if word in sent(response)] == [], path


def test_each_caller_is_answered_from_what_he_may_see(served, keys):
    question = "What lay in Halden Mill?"
    texts = {
        who: served.post("/v1/query", keys[1][who], question=question, method="bm25").text
        for who in ("staff", "hr", "all")
    }
    assert ["quaggahr" in texts[who] for who in ("staff", "hr", "all")] == [False, True, True]


def test_labels_that_open_nothing_are_told_by_403(served, keys):
    response = served.post("/v1/query", keys[1]["nobody"], question="What?", method="bm25")
    assert response.status_code == 403
    assert response.json()["detail"] == "no document is open to the label x: use other labels"


def test_the_picture_of_the_whole_graph_is_refused_to_labels_though_it_was_made_before(
    served, keys
):
    whole = served.get("/v1/explorer", headers=bearer(keys[1]["all"]))
    assert "zymboard" in whole.text.casefold()
    refused = served.get("/v1/explorer", headers=bearer(keys[1]["hr"]))
    assert refused.status_code == 403
    assert "a caller with labels may not do this" in refused.json()["detail"]


def test_a_collection_is_held_to_its_labels_by_the_settings_of_another_index(served, keys):
    answer = served.post(
        "/v1/query", keys[1]["staff"], question="What lay in Halden Mill?", method="bm25",
        collection="book",
    )  # fmt: skip
    assert answer.ok
    assert "quaggahr" not in answer.text
    batches = served.get("/v1/batches?collection=book", headers=bearer(keys[1]["staff"]))
    assert batches.status_code == 403


def test_counts_of_a_collection_are_those_of_what_is_seen(served, keys):
    def documents(who: str) -> int:
        found = served.get("/v1/collections", headers=bearer(keys[1][who])).json()
        return found["collections"][0]["counts"]["documents"]

    assert [documents("staff"), documents("hr"), documents("all")] == [1, 2, 6]


def test_releases_tell_labels_of_the_published_one_and_count_what_they_open(served, keys):
    for who, n in (("staff", 1), ("hr", 2), ("all", 6)):
        response = served.get("/v1/releases", headers=bearer(keys[1][who]))
        release = response.json()["releases"][0]
        assert release["counts"]["documents"] == n
        assert ("n_bytes" in release) == (who == "all")
        assert all(each["is_current"] for each in response.json()["releases"]) or who == "all"
    assert served.get("/v1/releases", headers=bearer(keys[1]["nobody"])).status_code == 403


# Assistants


async def assistant_reads(served: Served, key: str, ids: dict[str, list[str]]) -> dict[str, str]:
    """Return all that every tool and resource gives to a key, with the ids of everything."""
    texts: dict[str, str] = {}
    question = "What did Alba Crane do at Halden Mill?"
    calls: list[tuple[str, dict[str, object]]] = [
        ("query", {"question": question, "method": "local"}),
        ("retrieve", {"question": question, "method": "lightrag"}),
        ("list_methods", {}),
        ("find_entities", {"name": "a"}),
        ("sql", {"statement": "SELECT text FROM documents"}),
        *(("neighbourhood", {"entity": id, "hops": 3}) for id in ids["entities"]),
        *(("read_document", {"document": id}) for id in ids["documents"]),
    ]
    async with connected(served, key) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        assert listed == {name for name, _ in calls} - {"sql"}
        for tool, arguments in calls:
            try:
                texts[f"{tool} {arguments}"] = str(await client.call_tool(tool, arguments))
            except MCPError as error:
                texts[f"{tool} {arguments}"] = str(error)
        with contextlib.suppress(MCPError):
            texts["resources"] = str(await client.list_resources())
        uris = [f"graphrag://default/documents/{id}" for id in ids["documents"]]
        for uri in [*uris, "graphrag://default/releases"]:
            try:
                texts[uri] = str(await client.read_resource(uri))
            except MCPError as error:
                texts[uri] = str(error)
    return texts


@pytest.mark.parametrize("who", ["staff", "hr", "nobody"])
def test_no_tool_gives_an_assistant_a_byte_of_a_hidden_document(served, engine, keys, who):
    labels = {"staff": {"staff"}, "hr": {"hr", "staff"}, "nobody": {"x"}}[who]
    ids = {
        table: [row["id"] for row in engine.index.rows(f"SELECT id FROM {table}")]
        for table in ("documents", "entities")
    }
    texts = asyncio.run(assistant_reads(served, keys[1][who], ids))
    for call, text in texts.items():
        found = [word for word in hidden_words(labels) if word in text.casefold()]
        assert found == [], call
    if who != "nobody":
        assert "Alba Crane repaired Halden Mill" in "".join(texts.values())


def test_serve_says_that_nobody_is_held_to_rules_without_keys(index):
    lines: list[str] = []
    _tell_unguarded(open_collections(index.settings), lines.append)
    assert [line.split(":")[0] for line in lines] == ["default"]
    _tell_unguarded(open_collections(settings_of(index.home, access={})), lines.append)
    assert len(lines) == 1


def test_questions_to_begin_with_name_only_what_labels_open(index):
    examples = Examples()
    for labels in ({"staff"}, {"hr", "legal"}, {"staff"}):
        with index.view(labels).open() as engine:
            questions = examples.of(engine.index, "default", frozenset(labels))["questions"]
        text = " ".join(FOLDERS[folder] for folder in opened(labels))
        closed = {name for name in ("Imre Tolliver", "Marek Vale") if name not in text}
        assert len(questions) == 3
        assert [word for word in closed.union(hidden_words(labels)) if word in str(questions)] == []
    with index.open() as engine:
        assert examples.of(engine.index, "default", None)["questions"] == questions_on(engine.index)
