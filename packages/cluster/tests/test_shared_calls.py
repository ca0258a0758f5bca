"""Paid answers, ledger and budget of workers that share an index, in a real Postgres."""

import asyncio
import contextlib
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import cluster_services
import pytest
import test_llm_budget
import test_llm_client
import test_llm_embeddings
from graphrag_cluster.calls import PostgresCalls
from graphrag_cluster.holders import SharedBudget, WorkerHolder
from graphrag_cluster.postgres import Postgres, Session
from llm_helpers import (
    ask,
    ask_many,
    options_for,
    paid,
    processes,
    said,
    with_client,
)
from model_server import ModelServer
from worker_process import ask_beside_others

from graphrag_pipeline.core.environment import Secret
from graphrag_pipeline.core.errors import ConfigError, StorageError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm import (
    BudgetExceededError,
    calls_since,
    last_position,
)
from graphrag_pipeline.llm.budget import BudgetAmount
from graphrag_pipeline.llm.cache import today
from graphrag_pipeline.llm.cache_size import measure_cache, trim_cache, vacuum_cache
from graphrag_pipeline.llm.database import CallDatabase, Write
from graphrag_pipeline.llm.offline import vectors_known
from graphrag_pipeline.store.spending import record_calls, spending
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.upkeep.answers import drop_unused, unused_answers

pytestmark = pytest.mark.cluster

TEXTS = [f"{n:03} " + "ab " * 32 for n in range(60)]


@pytest.fixture(scope="module")
def server():
    with cluster_services.postgres() as service:
        yield service


@pytest.fixture
def place(server, tmp_path):
    """The tables of an index that no other test has."""
    return PostgresCalls(Postgres(Secret(server.address), f"file://{tmp_path}"))


def rows(place, sql, *values):
    session = Session(place.postgres)
    try:
        return session.rows(sql, values)
    finally:
        session.close()


@pytest.mark.parametrize(
    "test",
    [
        test_llm_budget.test_tokens_stop_a_run_cleanly_and_it_resumes,
        test_llm_budget.test_money_stops_a_run_near_its_limit_though_calls_reserve_much_more,
        test_llm_budget.test_what_a_run_spent_before_counts_when_it_is_resumed,
        test_llm_budget.test_cached_answers_need_no_budget,
        test_llm_embeddings.test_no_text_is_asked_twice,
        test_llm_embeddings.test_texts_asked_at_one_time_are_asked_once,
        test_llm_embeddings.test_another_model_or_width_is_another_vector,
        test_llm_client.test_calls_can_be_read_on_from_where_one_was,
    ],
    ids=lambda test: test.__name__,
)
def test_what_holds_of_a_file_holds_of_postgres(test, place):
    test(place)


class Worker:
    """A process that asks a model for an index in Postgres, and writes what came of each text."""

    def __init__(self, place, address, model, texts, since, given, told):
        self.told = told
        told.touch()
        self.process = processes.Process(
            target=ask_beside_others,
            args=(address, place.postgres.url, model.base_url, since, texts, given, told),
        )
        self.process.start()

    @property
    def answers(self):
        return [line.split() for line in self.told.read_text().splitlines()]

    def has_answered(self, number):
        deadline = time.monotonic() + 60
        while len(self.answers) < number:
            assert self.process.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def done(self):
        self.process.join(timeout=60)
        assert self.process.exitcode == 0
        return self.answers


@pytest.fixture
def worker(server, place, tmp_path):
    """Starts workers of the index, and ends those that still run."""
    workers = []

    def start(model, texts=TEXTS, since=0, **given):
        told = tmp_path / f"told-{len(workers)}"
        workers.append(Worker(place, server.address, model, texts, since, given, told))
        return workers[-1]

    yield start
    for each in workers:
        each.process.kill()
        each.process.join()


def test_two_workers_that_ask_the_same_at_the_same_time_pay_once(place, worker):
    with ModelServer(latency=0.1) as model:
        workers = [worker(model, TEXTS if n else TEXTS[::-1], concurrency=4) for n in range(2)]
        for each in workers:
            assert sorted(each.done()) == [["ok", text[:3]] for text in TEXTS]
        assert len(model.requests) == len(TEXTS)
    calls = calls_since(place)
    assert (paid(place).height, calls.height) == (len(TEXTS), 2 * len(TEXTS))
    assert calls["position"].is_sorted()
    assert rows(place, "SELECT count(*) FROM flights") == [(0,)]


def test_what_a_killed_worker_asked_is_asked_again_and_nothing_else(place, worker):
    """Killed between paying and writing: at most what was in flight is paid twice."""
    with ModelServer(latency=0.1) as model:
        first = worker(model, concurrency=4)
        first.has_answered(8)
        first.process.kill()
        first.process.join()
        # As if its hold had ended: thirty seconds later.
        assert rows(place, "UPDATE flights SET expires = clock_timestamp() RETURNING key")
        second = worker(model, concurrency=4)
        assert len(second.done()) == len(TEXTS)
        assert len(model.requests) <= len(TEXTS) + 4
    assert rows(place, "SELECT count(*) FROM responses") == [(len(TEXTS),)]


def test_a_worker_waits_for_what_another_asks_until_that_is_heard_of_no_more(place):
    async def run():
        databases = [CallDatabase(place) for _ in range(2)]
        one, other = (
            WorkerHolder(databases[0], seconds=0.6),
            WorkerHolder(databases[1], seconds=0.6),
        )
        keys = [b"a", b"b"]
        assert await one.claim([b"b"]) == [b"b"]
        assert await other.claim(keys) == [b"a"]
        # It lives: its hold goes on beyond its first seconds.
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(other.landed([b"b"]), 1.2)
        one._life.cancel()
        await asyncio.wait_for(other.landed([b"b"]), 20)
        assert await other.claim([b"b"]) == [b"b"]
        await other.close()
        for database in databases:
            database.close()

    asyncio.run(run())
    assert rows(place, "SELECT key, holder FROM flights WHERE expires > clock_timestamp()") == []


def test_workers_of_a_run_spend_one_budget_together(place, worker):
    begin = last_position(place)
    given = {"max_tokens": 1000, "max_output_tokens": 25, "concurrency": 4}
    with ModelServer(lambda messages: "y" * 100, latency=0.01) as model:
        workers = [worker(model, TEXTS[n::2], begin, **given) for n in range(2)]
        kinds = [kind for each in workers for kind, _ in each.done()]
        assert 15 <= kinds.count("ok") == len(model.requests) <= 20
        assert set(kinds) == {"ok", "BudgetExceededError"}
        assert model.prompt_tokens + model.completion_tokens <= 1000
    calls = paid(place)
    spent = calls["prompt_tokens"].sum() + calls["completion_tokens"].sum()
    assert rows(place, STATE) == [(spent, 0)]
    assert rows(place, "SELECT count(*) FROM reservations") == [(0,)]


def shared_budget(database, place, seconds=30.0, most=100):
    return SharedBudget(WorkerHolder(database, seconds), 0, most, None, BudgetAmount())


STATE = "SELECT spent_tokens, reserved_tokens FROM budgets"


def test_what_a_killed_worker_had_reserved_counts_as_spent_once(place):
    async def run():
        dead, database = CallDatabase(place), CallDatabase(place)
        gone = shared_budget(dead, place, seconds=0.3)
        reservation = await gone.reserve(BudgetAmount(60, 0.0))
        # As a killed process does: it says nothing any more.
        gone._holder._life.cancel()
        assert rows(place, STATE) == [(0, 60)]
        budget = shared_budget(database, place)
        began = time.monotonic()
        kept = await budget.reserve(BudgetAmount(40, 0.0))
        with pytest.raises(BudgetExceededError, match="65 of max_tokens 100"):
            await refused(budget, kept)
        assert time.monotonic() - began < 20
        # It was only slow: what the call took takes the place of what it might have taken.
        gone.settle(reservation, BudgetAmount(7, 0.0))
        gone.settle(reservation, BudgetAmount(7, 0.0))
        await dead.write([])
        assert rows(place, STATE) == [(7 + 5, 0)]
        dead.close()
        database.close()

    async def refused(budget, kept):
        waiting = asyncio.create_task(budget.reserve(BudgetAmount(50, 0.0)))
        # While a call is in flight the next one waits for what it leaves.
        await asyncio.sleep(0.7)
        assert not waiting.done()
        budget.settle(kept, BudgetAmount(5, 0.0))
        await waiting

    asyncio.run(run())


def test_what_dead_workers_left_behind_is_cleared_after_a_day(place):
    with ModelServer() as model:
        ask(model, place, max_tokens=10_000, since=0)
        long_ago = "clock_timestamp() - interval '2 days'"
        rows(place, f"INSERT INTO flights VALUES ('a', 'dead', {long_ago}) RETURNING key")
        rows(
            place,
            "INSERT INTO reservations (id, since, holder, tokens, cost, expires) "
            f"VALUES ('r', 0, 'dead', 5, 0, {long_ago}) RETURNING id",
        )
        rows(place, "UPDATE budgets SET reserved_tokens = 5 RETURNING since")
        ask(model, place, "other", max_tokens=10_000, since=0)
    assert rows(place, "SELECT count(*) FROM flights") == [(0,)]
    assert rows(place, "SELECT count(*) FROM reservations") == [(0,)]
    calls = paid(place)
    taken = calls["prompt_tokens"].sum() + calls["completion_tokens"].sum()
    # What it had set aside counts as spent.
    assert rows(place, STATE) == [(taken + 5, 0)]


def test_a_reservation_that_is_cancelled_is_given_back(place):
    async def run():
        database = CallDatabase(place)
        budget = shared_budget(database, place)
        first = await budget.reserve(BudgetAmount(90, 0.0))
        waiting = asyncio.create_task(budget.reserve(BudgetAmount(90, 0.0)))
        await asyncio.sleep(0.1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        budget.settle(first, BudgetAmount(10, 0.0))
        await database.write([])
        assert rows(place, STATE) == [(10, 0)]
        database.close()

    asyncio.run(run())


def test_postgres_restarted_in_the_middle_costs_no_answer(place, server, worker):
    with ModelServer(latency=0.05) as model:
        process = worker(model, concurrency=4, max_tokens=10**6, max_output_tokens=25)
        process.has_answered(6)
        server.stop()
        time.sleep(0.5)
        server.start()
        assert sorted(process.done()) == [["ok", text[:3]] for text in TEXTS]
        assert len(model.requests) == len(TEXTS)
    assert paid(place).height == len(TEXTS)
    assert paid(place)["id"].n_unique() == len(TEXTS)


def test_postgres_that_goes_away_for_good_ends_a_run_in_one_line(place, server, monkeypatch):
    monkeypatch.setattr("graphrag_cluster.postgres.LOST_SECONDS", 0.5)

    async def use_and_lose(client):
        await client.complete(said("first"), stage="test")
        server.kill()
        with pytest.raises(StorageError, match=r"cannot use Postgres at 127\.0\.0\.1.*run again"):
            await client.complete(said("second"), stage="test")

    with ModelServer() as model:
        try:
            with pytest.raises(StorageError) as caught:
                with_client(model, place, use_and_lose)
            assert "\n" not in str(caught.value)
        finally:
            server.start()
        assert ask(model, place, "first").cached
        assert not ask(model, place, "second").cached


def test_postgres_that_hangs_is_given_up_after_a_while(place, server, monkeypatch):
    monkeypatch.setattr("graphrag_cluster.postgres._ANSWER_SECONDS", 0.5)
    monkeypatch.setattr("graphrag_cluster.postgres.LOST_SECONDS", 0.5)
    session = Session(place.postgres)
    server.pause()
    try:
        began = time.monotonic()
        with pytest.raises(StorageError, match="it does not answer") as caught:
            session.rows("SELECT 1")
        assert time.monotonic() - began < 20
        assert "\n" not in str(caught.value)
    finally:
        server.resume()
    assert session.rows("SELECT 1") == [(1,)]
    session.close()


def test_calls_are_numbered_in_the_order_in_which_they_can_be_seen(place):
    """Who has copied the ledger up to a number has missed no call below it."""
    put = (
        "INSERT INTO llm_calls (id, called_at, stage, model, prompt_tokens, completion_tokens,"
        " seconds, cached) VALUES ($1, 0, 's', 'm', 1, 1, 0, 0)"
    )
    n_each, seen, ended = 40, [], threading.Event()

    async def write(name):
        database = CallDatabase(place)
        for number in range(n_each):
            await database.write([Write(put, [(f"{name}{number}",)])])
        database.close()

    def follow():
        while not (was_over := ended.is_set()) or (was_over and len(seen) < 3 * n_each):
            seen.extend(calls_since(place, seen[-1] if seen else 0)["position"].to_list())

    CallDatabase(place).close()
    threads = [threading.Thread(target=asyncio.run, args=(write(name),)) for name in "abc"]
    follower = threading.Thread(target=follow)
    for thread in (*threads, follower):
        thread.start()
    for thread in threads:
        thread.join()
    ended.set()
    follower.join(timeout=20)
    assert seen == calls_since(place)["position"].to_list()
    assert len(seen) == 3 * n_each


def test_an_answer_with_what_postgres_cannot_hold_is_kept(place):
    with ModelServer(lambda messages: "a\0b") as model:
        ask(model, place)
        again = ask(model, place)
    assert (again.cached, again.text) == (True, "a\ufffdb")


def test_what_is_known_is_looked_up_without_a_trace(place):
    with ModelServer() as model:
        with_client(model, place, lambda client: client.embed(["a", "b"], stage="t"))
        position = last_position(place)
        assert vectors_known(place, options_for(model), ["a", "c", "b"]) == [True, False, True]
    assert last_position(place) == position


def test_a_cache_that_is_too_large_loses_what_was_not_used_for_longest(place):
    with ModelServer(lambda messages: os.urandom(1500).hex()) as model:
        ask_many(model, place, TEXTS[:20])
        with_client(model, place, lambda client: client.embed(TEXTS[:5], stage="t"))
    for number, text in enumerate(rows(place, "SELECT key FROM responses ORDER BY created_at")):
        sql = "UPDATE responses SET used_on = $2 WHERE key = $1 RETURNING key"
        rows(place, sql, text[0], today() - 30 + number)
    before = measure_cache(place)
    kinds = {entries.kind: entries.entries for entries in before.entries}
    assert (kinds, before.calls) == ({"chat": 20, "embeddings": 5}, 21)
    assert str(before.path).startswith("Postgres at 127.0.0.1")
    n_bytes = sum(entries.n_bytes for entries in before.entries)
    dropped = trim_cache(place, n_bytes // 2)
    assert 8 <= dropped["chat"] <= 12
    assert "embeddings" not in dropped
    kept = [day for (day,) in rows(place, "SELECT used_on FROM responses ORDER BY used_on")]
    assert kept == [today() - 30 + number for number in range(dropped["chat"], 20)]
    vacuum_cache(place)
    after = measure_cache(place)
    assert after.calls == before.calls
    assert after.file_bytes < before.file_bytes


def test_a_vacuum_waits_as_long_as_it_takes_and_no_other_statement_does(place, monkeypatch):
    session = Session(place.postgres)
    with place.postgres.connect() as reader, ThreadPoolExecutor(1) as beside:
        monkeypatch.setattr("graphrag_cluster.postgres._ANSWER_SECONDS", 0.4)
        monkeypatch.setattr("graphrag_cluster.postgres._STATEMENT_MS", 200)
        with reader.transaction():
            reader.execute("SELECT count(*) FROM responses")
            vacuum = beside.submit(session.vacuum)
            with pytest.raises(TimeoutError):
                vacuum.result(0.8)
        vacuum.result(60)
    session.close()
    with contextlib.closing(Session(place.postgres)) as session:
        session.vacuum()
        with pytest.raises(StorageError, match="statement timeout"):
            session.rows("SELECT pg_sleep(5)")


def test_a_stage_counts_its_own_calls_and_the_index_has_those_of_all(place, server, tmp_path):
    with ModelServer() as model:
        ask_many(model, place, TEXTS[:3])
        settings = Settings(
            home=str(tmp_path / "home"),
            storage={"url": place.postgres.url, "postgres": server.address},
            profile="llm",
            llm={"base_url": model.base_url},
        )
        workspace = Workspace(settings)
        with spending(workspace, last_position(place)) as spent:
            ask_many(model, place, TEXTS[:5])
    assert spent.metadata["model_calls"] == 2
    assert spent.metadata["model_calls_cached"] == 3
    record_calls(workspace)
    with workspace.store.read() as con:
        # Eight, and before the first text the length of the vectors, which two answers must say.
        assert con.execute("SELECT count(*) FROM llm_calls").fetchall() == [(8 + 2,)]


def test_batches_of_a_shared_index_are_refused_before_anything_is_asked(place):
    with ModelServer() as model:
        with pytest.raises(ConfigError, match=r'lane = "batch" is for an index on one machine'):
            ask_many(model, place, TEXTS[:2], lane="batch")
        assert model.requests == []
    assert calls_since(place).is_empty()


def test_a_purge_leaves_nothing_of_an_answer_in_the_tables_of_postgres(place, server, tmp_path):
    settings = Settings(
        home=str(tmp_path / "home"), storage={"url": place.postgres.url, "postgres": server.address}
    )
    workspace = Workspace(settings)
    with ModelServer(lambda messages: "told-of-nobody " * 20) as model:
        ask_many(model, place, TEXTS[:30])
        with_client(model, place, lambda client: client.embed(TEXTS[:5], stage="t"))
    assert unused_answers(workspace).dropped == 30
    assert is_in_files(server, b"told-of-nobody")
    summary = drop_unused(workspace)
    assert (summary.kept, summary.dropped, summary.vectors_dropped) == (0, 30, 5)
    assert rows(place, "SELECT count(*) FROM responses") == [(0,)]
    assert calls_since(place).height == 31
    assert not is_in_files(server, b"told-of-nobody")


def is_in_files(server, text):
    with Postgres(Secret(server.address), "file:///any").connect() as con:
        con.execute("CHECKPOINT")
    files = (server.folder / "data" / "base").rglob("*")
    return any(text in file.read_bytes() for file in files if file.is_file())
