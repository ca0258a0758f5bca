"""The HTTP server: the addresses, releases that change under load, and what is refused."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
from graphrag_server.collections import open_collections
from graphrag_server.connections import Punctual, Watched
from graphrag_server.examples import THEMES
from graphrag_server.server import serve
from http_server import Served
from model_server import ModelServer, slow_stream
from query_fixture import DOCUMENTS, published, settings_for
from uvicorn.protocols.http.h11_impl import H11Protocol

from graphrag_pipeline import Index
from graphrag_pipeline.core.errors import ConfigError, InputError, NothingPublishedError
from graphrag_pipeline.core.extras import how_to_install, require_extra
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.asked_themes import asks_for_themes
from graphrag_pipeline.query.control import Control, StoppedError
from graphrag_pipeline.query.open_engine import LOOK_SECONDS, Holder
from graphrag_pipeline.releases.kept_releases import changing_releases, keep_published, put_back

QUESTION = "Who worked as a clerk for Scrooge?"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published(tmp_path_factory.mktemp("served") / "home")


@pytest.fixture(scope="module")
def served(home: Path) -> Iterator[Served]:
    with Served({"default": home}) as server:
        yield server


def keep(home: Path) -> None:
    with changing_releases(home):
        keep_published(home)


# Holding


def test_a_new_release_shows_within_a_second_and_questions_end_on_theirs(tmp_path: Path) -> None:
    now = 0.0
    holder = Holder("default", settings_for(published(tmp_path)), clock=lambda: now)
    with holder.lease() as before:
        published(tmp_path, "r2")
        with holder.lease() as engine:
            assert engine is before
        now = LOOK_SECONDS
        with holder.lease() as engine:
            assert engine.index.facts.id == "r2"
        assert before.answer(QUESTION, "bm25").release == "r1"
    with pytest.raises(Exception, match="this release was closed"):
        before.answer(QUESTION, "bm25")
    assert holder.n_switches == 1
    holder.close()


def test_a_pinned_release_stays(tmp_path: Path) -> None:
    keep(published(tmp_path))
    holder = Holder("default", settings_for(tmp_path), release="r1", clock=time.perf_counter)
    published(tmp_path, "r2")
    with holder.lease() as engine:
        assert engine.index.facts.id == "r1"
    with holder.lease("r2") as engine, holder.lease("r2") as again:
        assert engine is again
        assert engine.index.facts.id == "r2"
    holder.close()


def test_what_is_open_answers_on_where_the_new_release_cannot_be_opened(tmp_path: Path) -> None:
    now = 0.0
    holder = Holder("default", settings_for(published(tmp_path)), clock=lambda: now)
    with holder.lease():
        pass
    (tmp_path / "published.duckdb").unlink()
    (tmp_path / "published.duckdb").write_bytes(b"no database")
    now = 2.0
    with holder.lease() as engine:
        assert engine.answer(QUESTION, "bm25").release == "r1"
    holder.close()
    with pytest.raises(Exception, match="cannot open"), holder.lease():
        pass


def test_collections_are_named_in_the_settings(tmp_path: Path) -> None:
    one, other = published(tmp_path / "one"), published(tmp_path / "other", "r9")
    (other / "graphrag.toml").write_text("[query]\ntop_k = 3\n")
    settings = Settings(home=str(one), server={"collections": {"book": str(other)}})
    collections = open_collections(settings)
    assert list(collections.holders) == ["default", "book"]
    assert collections.named("book").settings.query.top_k == 3
    with collections.named("book").lease() as engine:
        assert engine.index.facts.id == "r9"
    collections.close()
    missing = Settings(home=str(one), server={"collections": {"book": str(tmp_path / "no")}})
    with pytest.raises(ConfigError, match=r"book = .*no': there is no such folder"):
        open_collections(missing)


def test_no_question_fails_while_releases_are_switched(tmp_path: Path) -> None:
    home = tmp_path / "home"
    keep(published(home))
    keep(published(home, "r2"))
    with Served({"default": home}, threads=2) as server:
        ended = threading.Event()
        seen: list[tuple[int, str]] = []

        def ask() -> None:
            with requests.Session() as http:
                http.trust_env = False
                while not ended.is_set():
                    body = {"question": QUESTION, "method": "local"}
                    got = http.post(f"{server.url}/v1/query", json=body, timeout=60)
                    seen.append((got.status_code, got.json().get("release", "")))

        callers = [threading.Thread(target=ask) for _ in range(3)]
        for caller in callers:
            caller.start()
        wait_for(lambda: seen)
        for n, release in enumerate(("r1", "r2", "r1", "r2", "r1", "r2"), start=1):
            with changing_releases(home):
                put_back(home, release)
            wait_for(lambda n=n: server.holders["default"].n_switches == n)
        ended.set()
        for caller in callers:
            caller.join(timeout=60)
        assert {status for status, _ in seen} == {200}
        assert {release for _, release in seen} == {"r1", "r2"}


# Addresses


def test_an_answer_has_the_shape_that_the_command_line_prints(served: Served, home: Path) -> None:
    got = served.post("/v1/query", question=QUESTION, method="local", sentences=2).json()
    with QueryEngine(home, settings=settings_for(home)) as engine:
        expected = engine.answer(QUESTION, "local", sentences=2).to_dict()
    expected = json.loads(json.dumps(expected))
    for answer in (got, expected):
        answer.pop("timings")
        answer["retrieval"].pop("timings")
    assert got == expected
    assert "Bob Cratchit" in got["text"]


def test_without_a_method_the_question_chooses_one(served: Served) -> None:
    got = served.post("/v1/query", question=QUESTION).json()
    assert got["method"] == "auto"
    assert got["retrieval"]["steps"]


def test_evidence_alone_and_several_methods_side_by_side(served: Served) -> None:
    got = served.post(
        "/v1/retrieve", question=QUESTION, method="bm25", parameters={"top_k": 1}
    ).json()
    assert len(got["records"]) == 1
    assert "text" not in got
    limited = served.post("/v1/retrieve", question=QUESTION, where={"title": "Marie Curie"}).json()
    assert {each["document_title"] for each in limited["citations"]} <= {"Marie Curie"}
    assert "limited to 1 document" in limited["steps"][0]
    compared = served.post("/v1/compare", question=QUESTION, methods=["bm25", "ppr:top_k=3"])
    assert [each["method"] for each in compared.json()] == ["bm25", "ppr:top_k=3"]
    assert all(each["citations"] and each["context_tokens"] for each in compared.json())
    nothing = {"question": QUESTION, "methods": ["bm25"], "where": {"title": "no such title"}}
    refused = served.post("/v1/compare", **nothing)
    assert "no document has title = 'no such title'" in refused.json()["detail"]


def events_of(response: requests.Response) -> list[tuple[str, Any]]:
    blocks = response.content.decode().strip().split("\n\n")
    pairs = [block.split("\n", 1) for block in blocks if not block.startswith(":")]
    return [
        (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for name, data in pairs
    ]


def test_a_stream_gives_steps_text_citations_and_the_whole(served: Served) -> None:
    response = served.post("/v1/query/stream", question=QUESTION)
    assert response.headers["content-type"].startswith("text/event-stream")
    events = events_of(response)
    names = [name for name, _ in events]
    assert names[0] == "step"
    assert names[-2:] == ["citations", "done"]
    text = "".join(value["text"] for name, value in events if name == "text")
    done = events[-1][1]
    assert text == done["text"]
    assert events[-2][1] == done["citations"]
    assert done["citations"][0]["text"] in DOCUMENTS["A Christmas Carol"]


def test_citations_lead_to_their_characters(served: Served) -> None:
    listed = served.get("/v1/documents?most=2").json()
    assert listed["total"] == len(DOCUMENTS)
    rest = served.get(f"/v1/documents?after={listed['next']}").json()
    assert rest["next"] is None
    titles = [each["title"] for each in [*listed["documents"], *rest["documents"]]]
    assert titles == list(DOCUMENTS)
    citation = served.post("/v1/query", question=QUESTION, method="bm25").json()["citations"][0]
    place = f"/v1/documents/{citation['document_id']}"
    start, end = citation["start_char"], citation["end_char"]
    text = served.get(f"{place}/text?start={start}&end={end}").json()
    assert text["text"] == citation["text"]
    assert served.get(place).json()["title"] == citation["document_title"]
    whole = served.get(f"{place}/text").json()
    assert whole["text"] == DOCUMENTS[citation["document_title"]]
    assert whole["end_char"] == whole["n_chars"]


def test_entities_lead_to_neighbours_communities_and_reports(served: Served) -> None:
    found = served.get("/v1/entities", params={"q": "scROOGE"}).json()["entities"]
    assert [each["title"] for each in found] == ["Scrooge"]
    entity = served.get(f"/v1/entities/{found[0]['id']}").json()
    assert entity["places"][0]["document_title"] == "A Christmas Carol"
    near = served.get(f"/v1/entities/{entity['id']}/neighbourhood").json()
    assert {each["title"] for each in near["entities"] if each["hop"] == 1} == {
        *("Marley", "Bob Cratchit", "Fezziwig", "London")
    }
    assert len(near["relationships"]) == 4
    far = served.get(f"/v1/entities/{entity['id']}/neighbourhood?hops=2").json()
    assert {each["title"] for each in far["entities"] if each["hop"] == 2} == {"Tiny Tim"}
    root = entity["communities"][0]
    community = served.get(f"/v1/communities/{root['id']}").json()
    assert {part["level"] for part in community["parts"]} == {1}
    assert "Tiny Tim" in {member["title"] for member in community["members"]}
    report = served.get(f"/v1/reports/{community['report_id']}").json()
    assert report["findings"][0]["explanation"]


def test_a_place_that_two_chunks_have_is_listed_once(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    towns = ("Bergen", "Oslo", "Lisbon", "Vienna", "Prague", "Madrid", "London", "Dublin")
    lines = (f"Anna Berg sold three ropes to the old mill at {n}." for n in towns)
    (folder / "ropes.txt").write_text(" ".join(lines))
    chunks = {"size": 60, "overlap": 30}
    index = Index(Settings.model_validate({"home": str(tmp_path / "home"), "chunks": chunks}))
    index.update(folder)
    with Served({"default": index.settings}) as server:
        asked = [server.get("/v1/entities", params={"q": town}).json() for town in towns]
        ids = [found["entities"][0]["id"] for found in asked]
        told = [server.get(f"/v1/entities/{each}").json() for each in ids]
    assert {len(each["places"]) for each in told} == {1}
    assert {each["frequency"] for each in told} == {1, 2}


def test_the_explorer_asks_by_number_for_what_it_does_not_hold(served: Served) -> None:
    graph = served.get("/v1/explorer").json()
    v = graph["entities"]["title"].index("Scrooge")
    number = graph["entities"]["number"][v]
    scrooge = served.get(f"/v1/explorer/entities/{number}").json()
    assert scrooge["description"] == graph["entities"]["description"][v]
    assert len(scrooge["relationships"]) == scrooge["degree"] == 4
    numbers = {each["number"] for each in scrooge["relationships"]}
    assert numbers < set(graph["entities"]["number"])
    assert {passage["name"] for passage in scrooge["passages"]} == {"Scrooge"}
    link = scrooge["passages"][0]["link"]
    assert link.startswith("./documents/")
    assert served.get(f"/v1/{link.removeprefix('./')}").ok
    before, after = graph["links"]["entities"]
    assert (before, after) == ("./entities/", "?collection=default&release=r1")
    assert graph["entities"]["id"][v] == scrooge["id"]
    held = [e for e, node in enumerate(graph["passages"]["node"]) if node == v]
    assert len(scrooge["passages"]) == len(held)
    c = next(c for c, writer in enumerate(graph["communities"]["writer"]) if writer)
    report = served.get(f"/v1/explorer/communities/{graph['communities']['number'][c]}").json()
    assert report["summary"] == graph["communities"]["summary"][c]
    explanations = [
        text
        for community, text in zip(
            graph["findings"]["community"], graph["findings"]["explanation"], strict=True
        )
        if community == c
    ]
    assert [finding["explanation"] for finding in report["findings"]] == explanations
    for finding in report["findings"]:
        assert bool(finding["link"]) == bool(finding["uri"])
    assert served.get("/v1/explorer/entities/999999").status_code == 404
    assert served.get("/v1/explorer/entities/-1").status_code == 422


def test_a_method_is_listed_as_one_that_answers_where_it_does(served: Served) -> None:
    methods = served.get("/v1/methods").json()
    answers = {method["name"] for method in methods if method["can_answer"]}
    models = {model["id"] for model in served.get("/v1/models").json()["data"]}
    assert models == {f"default/{name}" for name in answers}
    asked = {
        method["name"]: served.post("/v1/query", question=QUESTION, method=method["name"])
        for method in methods
    }
    assert {name for name, given in asked.items() if given.status_code == 200} == answers
    assert {given.status_code for name, given in asked.items() if name not in answers} == {422}


def test_questions_to_begin_with_are_answered_with_sources(served: Served) -> None:
    examples = served.get("/v1/examples").json()
    assert examples["release"] == "r1"
    assert examples["questions"] == [
        "What do the documents say about Scrooge?",
        "How are Bob Cratchit and Tiny Tim connected?",
        THEMES,
    ]
    assert asks_for_themes(THEMES)
    for question in examples["questions"]:
        assert served.post("/v1/query", question=question).json()["citations"]


def test_methods_say_what_they_take_and_releases_what_is_kept(served: Served) -> None:
    methods = {each["name"]: each for each in served.get("/v1/methods").json()}
    assert methods["bm25"]["can_answer"]
    assert not methods["drift"]["can_answer"]
    top_k = {"name": "top_k", "type": "int", "default": 10, "least": 1}
    assert top_k in methods["bm25"]["parameters"]
    (release,) = served.get("/v1/releases").json()["releases"]
    assert release["is_current"]


def test_the_description_names_every_address(served: Served) -> None:
    described = served.get("/openapi.json").json()
    assert set(described["paths"]) >= {
        "/v1/query",
        "/v1/query/stream",
        "/v1/documents/{id}/text",
        "/v1/entities/{id}/neighbourhood",
        "/ready",
    }
    answer = described["components"]["schemas"]["Answer"]["properties"]
    assert {"text", "citations", "retrieval", "cost"} <= set(answer)


# Ready


def test_ready_looks_itself_and_says_why_not(tmp_path: Path) -> None:
    with Served({"default": tmp_path / "home"}) as server:
        assert server.get("/health").json() == {"status": "ok"}
        first = server.get("/ready")
        assert first.status_code == 503
        assert "nothing is published yet" in first.json()["detail"]
        assert int(first.headers["retry-after"])
        asked = server.post("/v1/query", question=QUESTION)
        assert (asked.status_code, asked.json()["detail"]) == (
            503,
            "nothing is published yet: run graphrag-pipeline index, and ask again",
        )
        (unready,) = server.get("/v1/collections").json()["collections"]
        assert unready["problem"].startswith("nothing is published yet")
        published(tmp_path / "home")
        (ready,) = server.get("/v1/collections").json()["collections"]
        assert (ready["name"], ready["release"]) == ("default", "r1")
        assert ready["counts"]["documents"] == len(DOCUMENTS)
        assert server.get("/ready").json() == {"status": "ready", "releases": {"default": "r1"}}
        shutil.rmtree(tmp_path / "home" / "vectors")
        gone = server.get("/ready")
        assert gone.status_code == 503
        assert str(tmp_path) not in gone.text


# What is refused


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("query", {"question": " "}, 422, "the question is empty"),
        ("query", {"question": "x" * 8001}, 422, "at most 8000 characters"),
        ("query", {"question": "Who?", "methd": "bm25"}, 422, "methd: there is no such field"),
        ("query", {"question": "Who?", "method": "nonsense"}, 422, "nonsense"),
        ("query", {"question": "Who?", "method": "drift"}, 422, "needs a language model"),
        ("query", {"question": "Who?", "parameters": {"top_k": 501}}, 422, "at most 500"),
        ("query", {"question": "Who?", "method": "kg_triplets:hops=9"}, 422, "at most 4"),
        ("query", {"question": "Who?", "collection": "no"}, 404, "there is no collection no"),
        ("query", {"question": "Who?", "release": "zz"}, 404, "no release zz"),
        ("query/stream", {"question": "Who?", "method": "nonsense"}, 422, "nonsense"),
        ("query/stream", {"question": "Who?", "collection": "no"}, 404, "no collection no"),
        ("compare", {"question": "Who?", "methods": ["bm25"] * 9}, 422, "at most 8 items"),
        ("compare", {"question": "Who?", "methods": ["bm25:top_k=999"]}, 422, "at most 500"),
    ],
)
def test_what_cannot_be_asked_says_what_to_do(
    served: Served, path: str, body: dict[str, Any], status: int, says: str
) -> None:
    response = served.post(f"/v1/{path}", **body)
    problem = response.json()
    assert response.headers["content-type"] == "application/problem+json"
    assert (response.status_code, problem["status"]) == (status, status)
    assert says in problem["detail"]
    assert problem["title"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/documents/none", 404),
        ("/v1/documents/none/text", 404),
        ("/v1/entities/none", 404),
        ("/v1/entities/none/neighbourhood", 404),
        ("/v1/communities/none", 404),
        ("/v1/reports/none", 404),
        ("/nowhere", 404),
        ("/v1/query", 405),
        ("/v1/entities", 422),
        ("/v1/entities/none/neighbourhood?hops=4", 422),
        ("/v1/documents?most=501", 422),
    ],
)
def test_what_is_not_there_is_a_problem_too(served: Served, path: str, status: int) -> None:
    response = served.get(path)
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["status"] == response.status_code == status


def raw(served: Served, head: str, body: bytes = b"") -> bytes:
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
        return connection.recv(65536)


def test_a_body_that_is_no_text_is_told_what_to_send(served: Served) -> None:
    body = b'{"question": "\xff"}'
    head = "POST /v1/query HTTP/1.1\nHost: localhost\nConnection: close\n"
    head += f"Content-Type: application/json\nContent-Length: {len(body)}"
    said = raw(served, head, body)
    assert said.startswith(b"HTTP/1.1 422")
    assert b"send JSON in UTF-8" in said


@pytest.mark.parametrize("said", ["Content-Length: 400000", "Transfer-Encoding: chunked"])
def test_a_body_that_is_too_large_is_not_read(served: Served, said: str) -> None:
    body = b"" if "Length" in said else b"%x\r\n%b\r\n0\r\n\r\n" % (300_000, b" " * 300_000)
    head = f"POST /v1/query HTTP/1.1\nHost: localhost\nContent-Type: application/json\n{said}"
    assert raw(served, head, body).startswith(b"HTTP/1.1 413")


def test_a_body_that_comes_too_slowly_is_not_waited_for(home: Path) -> None:
    head = "POST /v1/query HTTP/1.1\nHost: localhost\nContent-Type: application/json\n"
    with Served({"default": home}, timeout_seconds=0.2) as server:
        said = raw(server, head + "Content-Length: 30", b'{"question"')
    assert said.startswith(b"HTTP/1.1 408")
    assert b"over a faster line" in said


@pytest.mark.parametrize("begun", ["", "GET /health HTTP/1.1\r\nHost: local"])
@pytest.mark.parametrize("n_before", [0, 1])
def test_a_connection_without_a_request_is_ended(
    served: Served, monkeypatch: pytest.MonkeyPatch, begun: str, n_before: int
) -> None:
    monkeypatch.setattr("graphrag_server.connections.HEAD_SECONDS", 0.1)
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        for _ in range(n_before):
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(begun.encode())
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(65536):
                pass


class OverH11(Watched, H11Protocol):
    """The protocol where httptools is not installed."""


@pytest.fixture(scope="module", params=[OverH11, Punctual])
def watched(home: Path, request: pytest.FixtureRequest) -> Iterator[Served]:
    with Served({"default": home}, http=request.param) as server:
        yield server


def all_from(connection: socket.socket) -> bytes:
    """Return what comes until the other side closes."""
    answer = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65_536):
            answer += piece
    return answer


@pytest.mark.parametrize("n_pieces", [1, 2, 64])
@pytest.mark.parametrize("place", ["header", "address", "headers"])
def test_a_head_that_is_too_large_is_refused_and_the_connection_closed(
    watched: Served, place: str, n_pieces: int
) -> None:
    filled = {
        "header": b"GET /health HTTP/1.1\r\nX: %b" % (b"a" * 70_000),
        "address": b"GET /health?x=%b HTTP/1.1" % (b"a" * 70_000),
        "headers": b"GET /health HTTP/1.1" + b"\r\nX: aaaaaa" * 7_000,
    }
    head = filled[place] + b"\r\nHost: localhost\r\n\r\n"
    each = -(-len(head) // n_pieces)
    with socket.create_connection(("127.0.0.1", watched.port), timeout=30) as connection:
        with contextlib.suppress(ConnectionError):
            for start in range(0, len(head), each):
                connection.sendall(head[start : start + each])
        answer = all_from(connection)
    assert answer.count(b"HTTP/1.1") == 1
    assert answer.startswith(b"HTTP/1.1 431")
    assert b"the head of a request has at most 64 KB" in answer


def test_a_head_without_end_is_refused(watched: Served) -> None:
    with socket.create_connection(("127.0.0.1", watched.port), timeout=30) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ")
        with contextlib.suppress(ConnectionError):
            for _ in range(64):
                connection.sendall(b"a" * 65_536)
        answer = all_from(connection)
    assert answer.startswith(b"HTTP/1.1 431") or not answer
    assert watched.get("/health").status_code == 200


def test_a_large_head_and_a_large_body_within_the_limits_are_taken(watched: Served) -> None:
    body = b'{"question": "x", "method": "bm25"%b}' % (b" " * 200_000)
    head = "POST /v1/query HTTP/1.1\nHost: localhost\nConnection: close\nX: " + "a" * 60_000
    head += f"\nContent-Type: application/json\nContent-Length: {len(body)}"
    assert raw(watched, head, body).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("name", ["Authorization", "X-API-Key", "Host", "Origin"])
def test_a_header_that_says_who_asks_or_whom_comes_once(served: Served, name: str) -> None:
    value = "http://localhost" if name == "Origin" else "localhost"
    host = "" if name == "Host" else "Host: localhost\n"
    head = f"GET /v1/methods HTTP/1.1\n{host}Connection: close\n{name}: {value}"
    assert raw(served, head).startswith(b"HTTP/1.1 200")
    answer = raw(served, f"{head}\n{name.lower()}: other")
    assert answer.startswith(b"HTTP/1.1 400")
    if b"problem+json" in answer:
        assert b"came twice: send it once" in answer


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost", None, 200),
        ("127.0.0.1:8000", "http://localhost:3000", 200),
        ("[::1]:8000", None, 200),
        ("evil.example", None, 403),
        ("localhost.evil.example", None, 403),
        ("127.0.0.1.evil.example", None, 403),
        ("127.0.0.1@evil.example", None, 403),
        ("", None, 403),
        ("localhost", "http://evil.example", 403),
        ("localhost", "null", 403),
    ],
)
def test_only_this_machine_may_ask(
    served: Served, host: str, origin: str | None, status: int
) -> None:
    head = f"GET /v1/methods HTTP/1.1\nHost: {host}\nConnection: close"
    head += f"\nOrigin: {origin}" if origin else ""
    assert raw(served, head).startswith(f"HTTP/1.1 {status}".encode())


def test_a_page_that_is_named_may_ask(home: Path) -> None:
    with Served({"default": home}, origins=("http://wiki.example:8080",)) as server:
        named = server.get("/v1/methods", headers={"Origin": "http://wiki.example:8080"})
        assert named.status_code == 200
        assert named.headers["access-control-allow-origin"] == "http://wiki.example:8080"
        other = server.get("/v1/methods", headers={"Origin": "http://wiki.example"})
        assert other.status_code == 403


def test_one_question_too_many_is_told_to_come_again(home: Path) -> None:
    with Served({"default": home}, waiting=1) as server, server.limits.place():
        for path in ("query", "query/stream", "retrieve"):
            response = server.post(f"/v1/{path}", question=QUESTION)
            assert response.status_code == 503
            assert int(response.headers["retry-after"])
        assert server.get("/health").status_code == server.get("/ready").status_code == 200


# Time, and callers who go away

_ENDLESS = (
    "SELECT count(*) FROM range(1_000_000) a, range(1_000_000) b WHERE (a.range + b.range) < 0"
)


def test_sql_that_runs_is_interrupted(home: Path) -> None:
    control = Control()
    with QueryEngine(home, settings=settings_for(home)) as engine:
        index = engine.controlled(control).index
        errors: list[BaseException] = []

        def run() -> None:
            try:
                index.rows(_ENDLESS)
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        while thread.is_alive():
            control.stop("enough")
            thread.join(timeout=0.05)
        assert isinstance(errors[0], StoppedError)
        with pytest.raises(StoppedError, match="enough"):
            engine.controlled(control).answer(QUESTION, "bm25")
        assert engine.answer(QUESTION, "bm25").citations


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let entities be looked for endlessly, in DuckDB."""
    monkeypatch.setattr("graphrag_server.routes.graph._NAMED", _ENDLESS_NAMED)


_ENDLESS_NAMED = f"SELECT $q, $most, n FROM ({_ENDLESS.replace('count(*)', 'count(*) AS n')})"


@pytest.mark.usefixtures("endless")
def test_what_takes_too_long_is_stopped(home: Path) -> None:
    with Served({"default": home}, timeout_seconds=0.3, threads=1) as server:
        response = server.get("/v1/entities?q=x")
        assert response.status_code == 503
        assert "longer than 0.3 seconds" in response.json()["detail"]
        wait_for(lambda: server.limits.inside == 0)
        assert server.get("/v1/methods").status_code == 200


@pytest.mark.usefixtures("endless")
def test_a_caller_who_goes_away_frees_his_thread(home: Path) -> None:
    with Served({"default": home}, threads=1) as server:
        head = "GET /v1/entities?q=x HTTP/1.1\r\nHost: localhost\r\n\r\n"
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.sendall(head.encode())
        wait_for(lambda: server.limits.inside == 1)
        connection.close()
        wait_for(lambda: server.limits.inside == 0)
        assert server.post("/v1/query", question=QUESTION, method="bm25").status_code == 200


def wait_for(condition: Any, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_caller_who_goes_away_ends_the_model_stream(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with (
        ModelServer(lambda _: "word " * 2000, faults=lambda _: slow_stream(0.2)) as model,
        Served({"default": Settings(**_llm(home, model.base_url))}) as server,
        asking(server, "/v1/query/stream"),
    ):
        wait_for(lambda: model.in_flight == 1)
    wait_for(lambda: model.in_flight == 0)


def test_a_caller_who_goes_away_cancels_the_model_call(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with socket.create_server(("127.0.0.1", 0)) as model:
        model.settimeout(60)
        address = f"http://127.0.0.1:{model.getsockname()[1]}/v1"
        with Served({"default": Settings(**_llm(home, address))}) as server:
            with asking(server, "/v1/query"):
                call, _ = model.accept()
                call.settimeout(60)
                assert b"chat/completions" in call.recv(100)
            while call.recv(1 << 16):
                pass
            call.close()
            wait_for(lambda: server.limits.inside == 0)


@contextlib.contextmanager
def asking(server: Served, path: str) -> Iterator[None]:
    """Send a question, and hang up at the end of the block."""
    body = json.dumps({"question": QUESTION, "method": "basic"}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        yield


def _llm(home: Path, address: str) -> dict[str, Any]:
    return {
        "home": str(home),
        "query": {"answers": "llm"},
        "llm": {"base_url": address, "model": "gpt-4o-mini"},
    }


def test_nothing_published_is_told_by_the_holder(tmp_path: Path) -> None:
    with pytest.raises(NothingPublishedError), Holder("x", settings_for(tmp_path)).lease():
        pass


# The command


def serve_here(settings: Settings, **given: Any) -> None:
    options = {"host": "127.0.0.1", "port": 0, "workers": 1, "release": None, **given}
    serve(settings, announce=lambda line: None, **options)


def test_what_keeps_the_server_from_starting_is_one_line(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_for(home)
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(InputError, match=r"already in use; name another with --port"),
    ):
        serve_here(settings, port=taken.getsockname()[1])
    with pytest.raises(
        InputError, match=r"cannot listen on 0\.0\.0\.0: there are no keys, so only this machine"
    ):
        serve_here(settings, host="0.0.0.0")
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ConfigError, match=re.escape(how_to_install("server"))):
        require_extra("server", "serve")


@pytest.mark.live
def test_a_signal_ends_the_server_with_its_last_question(home: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with ModelServer(lambda _: "He did. [Data: Sources (0)]") as model:
        environment = {
            **os.environ,
            "GRAPHRAG_HOME": str(home),
            "GRAPHRAG_QUERY__ANSWERS": "llm",
            "GRAPHRAG_LLM__BASE_URL": model.base_url,
            "GRAPHRAG_SERVER__COLLECTIONS": json.dumps({"empty": str(empty)}),
            "OPENAI_API_KEY": "sk-test",
        }
        command = [sys.executable, "-m", "graphrag_pipeline.cli", "serve", "--port", "0"]
        process = subprocess.Popen(
            command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        try:
            assert process.stderr is not None
            unready, answering = process.stderr.readline(), process.stderr.readline()
            assert re.match(r"empty: nothing published in .*: run graphrag-pipeline index", unready)
            url = re.findall(r"http://127\.0\.0\.1:\d+", answering)[0]
            body = {"question": QUESTION, "method": "basic"}
            requests.post(f"{url}/v1/query", json=body, timeout=60).raise_for_status()
            model.latency = 1.5
            with ThreadPoolExecutor() as pool:
                last = pool.submit(requests.post, f"{url}/v1/query", json=body, timeout=60)
                wait_for(lambda: model.in_flight == 1)
                process.send_signal(signal.SIGTERM)
                assert last.result().status_code == 200
            assert process.wait(timeout=60) == 0
            assert process.stderr.read() == ""
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize("step", ["embedding", "reranking"])
def test_a_caller_who_goes_away_cancels_the_calls_of_retrieval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setattr("graphrag_pipeline.query.operators.reranking.MOST_SECONDS", 600.0)
    with ModelServer(lambda _: "{}") as model:
        settings = Settings(
            home=str(tmp_path),
            embeddings={"embedder": "llm" if step == "embedding" else "hashing"},
            query={"reranker": "llm" if step == "reranking" else ""},
            llm={"base_url": model.base_url, "model": "gpt-4o-mini"},
        )
        published(tmp_path, settings=settings)
        port = int(re.findall(r":(\d+)/", model.base_url)[0])
    with (
        socket.create_server(("127.0.0.1", port)) as silent,
        Served({"default": settings}, threads=1) as server,
    ):
        silent.settimeout(60)
        with asking(server, "/v1/query"):
            call, _ = silent.accept()
            call.settimeout(60)
            assert call.recv(1 << 16)
        while call.recv(1 << 16):
            pass
        call.close()
        wait_for(lambda: server.limits.inside == 0)
        assert server.get("/v1/entities?q=x").status_code == 200
