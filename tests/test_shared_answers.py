"""Indexes that share what they pay for: bought once, each own, and a purge reaches the shared."""

from __future__ import annotations

import importlib
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from llm_helpers import (
    KEY,
    ask,
    ask_many,
    complete_many,
    options_for,
    paid,
    processes,
    said,
    with_client,
)
from model_server import ModelServer
from strict_server import StrictServer

from graphrag_pipeline import Index, Settings
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.ownership import check_values
from graphrag_pipeline.llm import ChatRequest, LlmOptions, ModelClient, run_calls
from graphrag_pipeline.llm.configured import counted_client, model_options, spending_since
from graphrag_pipeline.llm.ledger import calls_since
from graphrag_pipeline.llm.offline import vectors_known

CANARY = "Quillfeather"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


def test_what_one_index_bought_another_has_for_nothing_and_keeps(
    server: ModelServer, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    first = ask(server, tmp_path / "a", shared_cache=str(shared))
    again = ask(server, tmp_path / "b", shared_cache=str(shared))
    assert not first.cached
    assert (again.cached, again.text) == (True, first.text)
    assert len(server.requests) == 1
    assert paid(tmp_path / "b").is_empty()
    shutil.rmtree(shared)
    assert ask(server, tmp_path / "b").cached


def test_the_home_of_another_index_is_shared_both_ways(server: ModelServer, tmp_path: Path) -> None:
    ask(server, tmp_path / "main", "one")
    ask_many(server, tmp_path / "part", ["one", "two"], shared_cache=str(tmp_path / "main"))
    assert len(server.requests) == 2
    assert ask(server, tmp_path / "main", "two").cached
    # The home itself is no other place.
    assert ask(server, tmp_path / "main", "two", shared_cache=str(tmp_path / "main")).cached


def test_vectors_and_their_length_are_shared(server: ModelServer, tmp_path: Path) -> None:
    shared = str(tmp_path / "shared")

    def embedded(home: str) -> list[list[float]]:
        return with_client(
            server,
            tmp_path / home,
            lambda client: client.embed(["one", "two"], stage="test"),
            shared_cache=shared,
        ).tolist()

    def width(home: str) -> int:
        return with_client(
            server,
            tmp_path / home,
            lambda client: client.embedding_width(stage="test"),
            shared_cache=shared,
        )

    first = embedded("a")
    n_requests = len(server.requests)
    assert width("c") == len(first[0])
    assert embedded("b") == first
    assert len(server.requests) == n_requests


def test_an_answer_that_is_forgotten_does_not_come_back_from_the_shared_folder(
    server: ModelServer, tmp_path: Path
) -> None:
    shared = str(tmp_path / "shared")
    first = ask(server, tmp_path / "a", shared_cache=shared)
    with_client(server, tmp_path / "a", lambda c: c.forget([first]), shared_cache=shared)
    assert not ask(server, tmp_path / "a", shared_cache=shared).cached


def test_what_is_spent_in_several_homes_counts_against_one_budget(
    server: ModelServer, tmp_path: Path
) -> None:
    async def spend(home: str) -> tuple[int, int]:
        async with counted_client(options_for(server), tmp_path / home) as client:
            before = client.spent.tokens
            await client.complete(said(f"of {home}"), stage="test", use_cache=False)
            return before, client.spent.tokens

    with spending_since(tmp_path / "a", 0), spending_since(tmp_path / "b", 0):
        first = run_calls(lambda: spend("a"))
        second = run_calls(lambda: spend("b"))
        third = run_calls(lambda: spend("a"))
    assert first[0] == 0
    assert second[0] == first[1]
    assert third[0] == second[1] > first[1]
    with spending_since(tmp_path / "b", 0):
        assert run_calls(lambda: spend("b"))[0] == second[1] - second[0]


def _buy(base_url: str, home: Path, shared: str, texts: list[str]) -> None:
    options = LlmOptions(base_url, KEY, shared_cache=shared)
    requests = [ChatRequest(said(text), "test") for text in texts]

    async def run() -> None:
        async with ModelClient(options, home) as client:
            await complete_many(client, requests)

    run_calls(run)


def test_two_processes_at_once_lose_nothing(server: ModelServer, tmp_path: Path) -> None:
    shared = str(tmp_path / "shared")
    texts = [f"question {n}" for n in range(60)]
    workers = [
        processes.Process(target=_buy, args=(server.base_url, tmp_path / name, shared, part))
        for name, part in (("a", texts[:40]), ("b", texts[20:]))
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    n_requests = len(server.requests)
    ask_many(server, tmp_path / "c", texts, shared_cache=shared)
    assert len(server.requests) == n_requests
    assert paid(tmp_path / "c").is_empty()


@pytest.fixture(scope="module")
def played() -> Iterator[StrictServer]:
    answer = importlib.import_module("benchmarks.played_answers").played_answer
    with pytest.MonkeyPatch.context() as patch, StrictServer(answer) as server:
        patch.setenv("OPENAI_API_KEY", "sk-test")
        yield server


def _settings(server: StrictServer, home: Path, shared: Path) -> Settings:
    return Settings(
        profile="llm",
        home=str(home),
        llm={"base_url": server.base_url, "retry_seconds": 0.005, "shared_cache": str(shared)},
    )


def _documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "mill.txt").write_text("Dora Green built the mill. Dora Green met Emil Black there.")
    (folder / "quay.txt").write_text("Max Miller met Emil Black at the quay and paid Emil Black.")
    (folder / "secret.txt").write_text(f"{CANARY} Tarn met Oskar Kovarna at the {CANARY} mill.")
    return folder


def _texts(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def _kinds(home: Path) -> pl.DataFrame:
    return calls_since(home).group_by("stage", "cached").len()


def test_a_second_index_of_the_same_documents_pays_nothing_and_its_plan_says_so(
    played: StrictServer, tmp_path: Path
) -> None:
    folder, shared = _documents(tmp_path), tmp_path / "shared"
    first = Index(_settings(played, tmp_path / "a", shared))
    first.update(folder)
    second = Index(_settings(played, tmp_path / "b", shared))
    extraction = next(s for s in second.plan(folder).stages if s.stage == "extractions")
    assert (extraction.calls, extraction.cached > 0) == (0, True)
    assert not (tmp_path / "b" / "llm_cache.sqlite").exists()
    options = model_options(second.settings, "embeddings")
    assert vectors_known(tmp_path / "b", options, ["secret"]) == [False]
    second.update(folder)
    assert paid(tmp_path / "b").is_empty(), _kinds(tmp_path / "b")
    assert first.cache().shared == str(shared)


def test_forget_reaches_the_shared_folder_and_names_the_home_of_an_index(
    plain_stores: None, played: StrictServer, tmp_path: Path
) -> None:
    folder, shared = _documents(tmp_path), tmp_path / "shared"
    index = Index(_settings(played, tmp_path / "a", shared))
    index.update(folder)
    # What has left the own cache since is found all the same.
    with sqlite3.connect(Home(tmp_path / "a").calls) as con:
        con.execute("DELETE FROM responses WHERE rowid % 2 = 0")
    assert CANARY.lower().encode() in _texts(shared).lower()
    (folder / "secret.txt").unlink()
    planned = index.forget(folder / "secret.txt", dry_run=True)
    assert planned.answers.shared_dropped
    done = index.forget(folder / "secret.txt")
    assert done.answers.shared_dropped
    assert CANARY.lower().encode() not in _texts(shared).lower()
    assert not [place for place in done.elsewhere if str(shared) in place]

    other = Index(_settings(played, tmp_path / "b", tmp_path / "a"))
    other.update(folder)
    (folder / sorted(file.name for file in folder.iterdir())[0]).unlink()
    other.update(folder)
    before = calls_since(tmp_path / "a").height
    told = other.purge()
    assert [place for place in told.elsewhere if str(tmp_path / "a") in place]
    # What the other index rests on is still there.
    Index(_settings(played, tmp_path / "a", shared)).purge()
    assert calls_since(tmp_path / "a").height == before


def test_another_users_settings_do_not_send_answers_elsewhere(tmp_path: Path) -> None:
    values = {"llm": {"shared_cache": "/tmp/elsewhere"}}
    with pytest.raises(ConfigError, match="write what models answer to /tmp/elsewhere"):
        check_values(tmp_path / "graphrag.toml", "mallory", values)
