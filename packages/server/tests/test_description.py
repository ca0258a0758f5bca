"""The server answers as `/openapi.json` says, and refuses what it does not name."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from graphrag_server.keys import EVERYTHING, SCOPES, Keyring, add_key
from graphrag_server.paths import ServerFiles
from http_server import Served, bearer
from jsonschema import Draft202012Validator
from query_fixture import DOCUMENTS, published, settings_for

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.index import Index

QUESTION = "Who worked as a clerk for Scrooge?"
ALL = {"scopes": set(SCOPES), "labels": {EVERYTHING}, "collections": {EVERYTHING}}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published(tmp_path_factory.mktemp("described") / "home")


@pytest.fixture(scope="module")
def served(home: Path) -> Iterator[Served]:
    with Served({"default": home}) as server:
        yield server


@pytest.fixture(scope="module")
def keyed(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    ring = tmp_path_factory.mktemp("ring")
    key = add_key(settings_for(ring), "all", **ALL)[1]
    with Served({"default": home}, Keyring(ServerFiles(ring).keys)) as server:
        yield server, key


def differs(document: dict[str, Any], template: str, response: requests.Response) -> str:
    """Return what of an answer is not as the document has it, or nothing."""
    operation = document["paths"][template][str(response.request.method).lower()]
    described = operation["responses"].get(str(response.status_code))
    if described is None:
        return f"{response.status_code} is not described"
    kind = response.headers["content-type"].partition(";")[0]
    if kind not in described["content"]:
        return f"{kind} is not described of {response.status_code}"
    schema = {**described["content"][kind].get("schema", {}), "components": document["components"]}
    body = response.json() if kind.endswith("json") else response.text
    return "; ".join(each.message for each in Draft202012Validator(schema).iter_errors(body))


ASKED: list[tuple[int, str, str, dict[str, Any]]] = [
    (200, "GET", "/v1/documents", {}),
    (200, "GET", "/metrics", {}),
    (200, "POST", "/v1/query", {"json": {"question": QUESTION, "sentences": 2.0}}),
    (400, "POST", "/v1/chat/completions", {"json": {"model": "default"}}),
    (401, "GET", "/v1/models", {"headers": {}}),
    (401, "GET", "/v1/collections", {"headers": {}}),
    (401, "GET", "/health", {"headers": bearer("nonsense")}),
    (403, "GET", "/ready", {"headers": {"Origin": "http://evil.example"}}),
    (403, "GET", "/v1/uploads", {}),
    (404, "GET", "/ready", {"params": {"collection": "no"}}),
    (404, "GET", "/v1/releases", {"params": {"collection": "no"}}),
    (404, "POST", "/v1/completions", {"json": {"model": "no", "prompt": "x"}}),
    (413, "GET", "/v1/methods", {"data": b" " * 300_000}),
    (422, "GET", "/v1/documents", {"params": {"after": 10**30}}),
    (422, "POST", "/v1/query", {"json": {"question": QUESTION, "method": "no"}}),
    (422, "POST", "/v1/compare", {"json": {"question": QUESTION, "retrieval_only": 0}}),
    (431, "GET", "/v1/examples", {"headers": {"X-Long": "x" * 70_000}}),
]


@pytest.mark.parametrize(("status", "method", "path", "asked"), ASKED)
def test_what_is_answered_is_described(
    keyed: tuple[Served, str], status: int, method: str, path: str, asked: dict[str, Any]
) -> None:
    server, key = keyed
    document = server.get("/openapi.json").json()
    asked = {"headers": bearer(key), **asked}
    response = server.http.request(method, server.url + path, timeout=60, **asked)
    assert response.status_code == status, response.text
    assert differs(document, path, response) == ""


def test_a_key_is_described_where_one_is_needed_alone(
    served: Served, keyed: tuple[Served, str], tmp_path: Path, home: Path
) -> None:
    def needing(server: Served) -> set[str]:
        paths = server.get("/openapi.json").json()["paths"].items()
        return {path for path, each in paths if any("security" in one for one in each.values())}

    everywhere = set(served.get("/openapi.json").json()["paths"])
    assert needing(served) == set()
    assert needing(keyed[0]) == everywhere - {"/health", "/ready"}
    with Served({"default": home}, Keyring(ServerFiles(tmp_path).keys)) as server:
        assert needing(server) == set()
        add_key(settings_for(tmp_path), "first", **ALL)
        assert needing(server) == needing(keyed[0])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/compare", {"retrieval_only": 0}),
        ("/v1/compare", {"retrieval_only": "true"}),
        ("/v1/query", {"sentences": "5"}),
        ("/v1/query", {"context": True}),
        ("/v1/query", {"follow_ups": 1.5}),
        ("/v1/chat/completions", {"stream": 0}),
        ("/v1/chat/completions", {"n": True}),
        ("/v1/chat/completions", {"logprobs": []}),
        ("/v1/chat/completions", {"modalities": "text"}),
        ("/v1/chat/completions", {"stream": True, "stream_options": {"include_usage": "yes"}}),
        ("/v1/completions", {"prompt": [1, 2]}),
    ],
)
def test_a_value_of_another_kind_than_described_is_refused(
    served: Served, path: str, body: dict[str, Any]
) -> None:
    (field, *_) = body
    chat = {"model": "default", "messages": [{"role": "user", "content": QUESTION}]}
    usual: dict[str, Any] = {"question": QUESTION} if "completions" not in path else chat
    response = served.post(path, **{**usual, **body})
    assert response.status_code == (400 if "completions" in path else 422), response.text
    place = "stream_options.include_usage" if "stream_options" in body else field
    assert place in response.text


@pytest.mark.parametrize("field", ["start", "end"])
def test_characters_further_than_any_text_reaches_are_none(served: Served, field: str) -> None:
    (document, *_) = served.get("/v1/documents").json()["documents"]
    address = f"/v1/documents/{document['id']}/text?{field}="
    assert served.get(f"{address}{2**31}").json()["text"] == (
        "" if field == "start" else DOCUMENTS[document["title"]]
    )
    assert served.get(f"{address}{2**31 + 1}").status_code == 422


@pytest.mark.parametrize("asked", ["", "?end=50", "?start=3&end=50"])
def test_no_more_characters_of_a_text_come_than_the_most_at_once(
    served: Served, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    monkeypatch.setattr("graphrag_server.routes.documents.TEXT_CHARACTERS", 10)
    (document, *_) = served.get("/v1/documents").json()["documents"]
    part = served.get(f"/v1/documents/{document['id']}/text{asked}").json()
    start = 3 if "start" in asked else 0
    assert part["text"] == DOCUMENTS[document["title"]][start : start + 10]


@pytest.mark.parametrize("path", ["/", "/health", "/v1/methods", "/v1/documents", "/page/main.js"])
def test_head_is_answered_as_get_is_without_the_body(served: Served, path: str) -> None:
    got, headed = served.get(path), served.http.head(served.url + path, timeout=60)
    assert (headed.status_code, headed.content) == (200, b"")
    for name in ("content-type", "content-length", "content-security-policy"):
        assert headed.headers[name] == got.headers[name]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/documents", "GET, HEAD, POST"),
        ("DELETE", "/v1/documents", "GET, HEAD, POST"),
        ("HEAD", "/v1/query", "POST"),
        ("POST", "/health", "GET, HEAD"),
        ("POST", "/", "GET, HEAD"),
        ("POST", "/page/main.js", "GET, HEAD"),
    ],
)
def test_an_address_says_which_methods_it_takes(
    served: Served, method: str, path: str, allowed: str
) -> None:
    response = served.http.request(method, served.url + path, timeout=60)
    assert (response.status_code, response.headers["allow"]) == (405, allowed)


# Everything that a document lets one think of


NARROW: dict[str, dict[str, Any]] = {
    "ToRetrieve": {
        "method": [None, "auto", "bm25", "local", "global", "ppr:top_k=5"],
        "parameters": [{}],
        "where": [{}],
        "collections": [None],
    },
    "ToCompare": {"methods": [["bm25"], ["local", "global"]], "where": [{}]},
    "Chat": {
        "model": ["default", "default/bm25"],
        "messages": [[{"role": "user", "content": QUESTION}], [{"role": "user", "content": "1"}]],
        "parameters": [{}],
        "where": [{}],
        "response_format": [None],
    },
    "ToComplete": {
        "model": ["default/local"],
        "prompt": [QUESTION, [QUESTION]],
        "parameters": [{}],
        "where": [{}],
    },
    "Correction": {
        "action": ["never", "rename", "type"],
        "value": ["Another Name"],
        "documents": [[]],
    },
}
"""Values that are right for this index, of fields whose rules no schema can say: which methods can
answer here, what each takes, and what is in the documents."""
FULL = {"response_format": [None], "answer_style": [None, "full"]}
NARROW["ToAnswer"] = {**NARROW["ToRetrieve"], **FULL}


def narrowed(document: dict[str, Any], ids: dict[str, list[Any]]) -> dict[str, Any]:
    """Return a document of which every request that it allows is one to be answered.

    Without what is kept of conversations, which may be deleted between two requests.
    """
    kept = ("/v1/history/", "/v1/answers/")
    document["paths"] = {p: m for p, m in document["paths"].items() if not p.startswith(kept)}
    for name, fields in NARROW.items():
        properties = document["components"]["schemas"][name]["properties"]
        properties.update({field: {"enum": values} for field, values in fields.items()})
    for path, methods in document["paths"].items():
        for operation in methods.values():
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path":
                    parameter["schema"] = {"enum": ids[path.split("{")[0]]}
                if (path, parameter["name"]) == ("/v1/documents", "name"):
                    parameter["schema"] = {"enum": ["a.txt", "b.md"]}
                if (path, parameter["name"]) == ("/v1/documents", "where"):
                    parameter["schema"] = {"enum": [[], ["title=*"]]}
    body = document["paths"]["/v1/documents"]["post"]["requestBody"]["content"]
    body["*/*"]["schema"] = {"enum": ["x", "y"]}
    return document


def ids_of(server: Served, headers: dict[str, str]) -> dict[str, list[Any]]:
    """Return values for what addresses have in their paths, by how they begin."""
    with server.holders["default"].lease() as engine:
        ids = {
            f"/v1/{place}/": [row["id"] for row in engine.index.rows(f"FROM {table} LIMIT 3")]
            for place, table in {
                "documents": "documents",
                "entities": "entities",
                "communities": "communities",
                "reports": "community_reports",
            }.items()
        }
    numbers = {"/v1/explorer/entities/": [0, 1], "/v1/explorer/communities/": [0, 1]}
    return {**ids, **numbers, "/v1/models/": ["default", "default/bm25"]}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """An index of a few texts, made and asked without a model."""
    folder = tmp_path_factory.mktemp("built")
    (folder / "documents" / "sent").mkdir(parents=True)
    for n, (title, text) in enumerate(DOCUMENTS.items()):
        (folder / "documents" / f"{n}.txt").write_text(f"{title}\n\n{text}")
    settings = Settings(
        home=str(folder / "home"),
        input={"folder": str(folder / "documents")},  # type: ignore[arg-type]
        server={"uploads": str(folder / "documents" / "sent")},  # type: ignore[arg-type]
    )
    Index(settings).update(folder / "documents")
    return settings


HOW = ["--checks=all", "--no-color", "--generation-database=none", "--max-examples=40"]
MODES = {"right": ["--mode=positive"], "anything": ["--exclude-checks=positive_data_acceptance"]}


@pytest.mark.nightly
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("with_key", [False, True])
def test_no_request_that_is_made_of_the_description_is_answered_otherwise(
    built: Settings, tmp_path: Path, with_key: bool, mode: str
) -> None:
    if importlib.util.find_spec("schemathesis") is None:
        pytest.skip("schemathesis is not installed: make nightly installs it")
    key = add_key(settings_for(tmp_path), "all", **ALL)[1]
    ring = Keyring(ServerFiles(tmp_path).keys) if with_key else None
    headers = bearer(key) if with_key else {}
    with Served({"default": built}, ring) as server:
        document = server.get("/openapi.json").json()
        if mode == "right":
            document = narrowed(document, ids_of(server, headers))
        path = tmp_path / "openapi.json"
        path.write_text(json.dumps(document))
        program = [
            sys.executable,
            "-m",
            "schemathesis.cli",
            "run",
            str(path),
            f"--url={server.url}",
        ]
        run = subprocess.run(
            [*program, *HOW, *MODES[mode], *(f"--header={n}: {v}" for n, v in headers.items())],
            cwd=tmp_path,
            env={**os.environ, "NO_PROXY": "*"},
            capture_output=True,
            text=True,
        )
    assert run.returncode == 0, run.stdout[-20_000:]
