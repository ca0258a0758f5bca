"""Requests in batches, at half the price, by a server that keeps to what is documented."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from batch_server import BatchServer, RunBatch
from index_process import by_model, update
from llm_helpers import KEY, ask_many, complete_many, options_for, paid, processes, said
from model_server import (
    Fault,
    ModelServer,
    Request,
    bad_request,
    prompt_filtered,
    rate_limited,
    server_error,
    too_long,
    unsupported,
)
from test_llm_pipeline import FILES, mind

from graphrag_pipeline import Index
from graphrag_pipeline.core.progress import listening
from graphrag_pipeline.llm import (
    BudgetExceededError,
    ChatRequest,
    Completion,
    LlmOptions,
    ModelClient,
    ModelError,
    TerminalModelError,
    run_calls,
)
from graphrag_pipeline.llm.batching import lane
from graphrag_pipeline.llm.batching.api import BatchApi
from graphrag_pipeline.llm.batching.records import keep_no_answers
from graphrag_pipeline.llm.database import CallTables, reading
from graphrag_pipeline.llm.speed import speed_of

TEXTS = [f"question {number}" for number in range(12)]
LANE = {"lane": "batch", "retry_seconds": 0.005}


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked within half a second is one batch, on a busy machine as well."""
    monkeypatch.setattr(lane, "_QUIET_OF_RETRY", 100)


def in_batches(server: BatchServer, home: Path, texts: list[str] = TEXTS, **given: Any):
    return ask_many(server, home, texts, **(LANE | given))


def texts_of(results: list[Any]) -> list[str]:
    assert all(isinstance(result, Completion) for result in results), results
    return [result.text for result in results]


def answers_of(texts: list[str]) -> list[str]:
    return [f"answer to {text}" for text in texts]


def server_of(**given: Any) -> BatchServer:
    return BatchServer(lambda messages: f"answer to {messages[-1]['content']}", **given)


def not_accounted(home: Path) -> int:
    with reading(home) as tables:
        assert tables is not None
        return sum(tables.read("SELECT (SELECT count(*) FROM sent_requests) +"
                               " (SELECT count(*) FROM sent_batches)")[0])  # fmt: skip


@pytest.mark.usefixtures("together")
def test_what_is_asked_at_once_is_one_batch_at_half_the_price(tmp_path: Path) -> None:
    with server_of() as server:
        assert texts_of(in_batches(server, tmp_path)) == answers_of(TEXTS)
        assert len(server.batches) == 1
        assert server.in_batches == server.answered == len(TEXTS)
        half = paid(tmp_path)["cost"].sum()
        # How long a batch waits says nothing of the time of calls.
        assert speed_of(tmp_path, paid(tmp_path)["model"][0]) is None
        texts_of(ask_many(server, tmp_path / "direct", TEXTS))
        assert half == pytest.approx(paid(tmp_path / "direct")["cost"].sum() / 2)
        # Nothing of the documents stays on the server, and no note of it here.
        assert server.files == {}
    assert not_accounted(tmp_path) == 0


def test_an_answer_bought_either_way_serves_both(tmp_path: Path) -> None:
    with server_of() as server:
        ask_many(server, tmp_path, TEXTS[:4])
        in_batches(server, tmp_path)
        assert server.in_batches == len(TEXTS) - 4
        ask_many(server, tmp_path, TEXTS)
        assert server.answered == len(TEXTS)


@pytest.mark.usefixtures("together")
def test_the_rest_of_an_expired_batch_is_asked_again(tmp_path: Path) -> None:
    with server_of(ends=lambda number: ("expired", 5) if number == 0 else None) as server:
        assert texts_of(in_batches(server, tmp_path)) == answers_of(TEXTS)
        assert server.answered == len(TEXTS)
        assert server.paid_again() == 0
    errors = paid(tmp_path).filter(paid(tmp_path)["error"].is_not_null())
    assert (len(errors), errors["cost"].sum()) == (len(TEXTS) - 5, 0)
    assert not_accounted(tmp_path) == 0


@pytest.mark.usefixtures("together")
def test_each_fault_of_a_line_is_the_fault_of_its_request(tmp_path: Path) -> None:
    faults = {
        "question 1": too_long(),
        "question 2": prompt_filtered(),
        "question 3": bad_request(),
    }

    def fault_of(request: Request) -> Fault | None:
        if request.text == "question 4" and request.attempt == 1:
            return server_error()
        return faults.get(request.text)

    with server_of(faults=fault_of) as server:
        results = in_batches(server, tmp_path)
        assert [r.kind for r in results if isinstance(r, ModelError)] == [
            "context_length", "filter", "request",
        ]  # fmt: skip
        assert len(texts_of([r for r in results if not isinstance(r, ModelError)])) == 9
        assert server.answered == 9
        assert len(server.batches) == 2
    assert not_accounted(tmp_path) == 0


def test_what_a_model_refuses_is_left_out_of_the_next_round(tmp_path: Path) -> None:
    def refuses(request: Request) -> Fault | None:
        return unsupported("temperature") if "temperature" in request.body else None

    with server_of(faults=refuses) as server:
        texts_of(in_batches(server, tmp_path, model="model-without-temperature"))
        assert server.answered == len(TEXTS)


def test_a_line_that_is_refused_holds_up_none_of_the_others(tmp_path: Path) -> None:
    class Picky(BatchServer):
        def _fault_of(self, lines: list[dict[str, Any]], batch: RunBatch) -> str | None:
            is_odd = lines[-1]["body"]["messages"][0]["content"] == "question 5"
            return "invalid_request" if is_odd else super()._fault_of(lines, batch)

    with Picky(lambda messages: "hello") as server:
        results = in_batches(server, tmp_path)
        failed = [n for n, r in enumerate(results) if isinstance(r, TerminalModelError)]
        assert failed == [5]
        assert server.answered == len(TEXTS) - 1
    assert not_accounted(tmp_path) == 0


def test_a_batch_that_is_cancelled_ends_the_run_and_keeps_its_answers(tmp_path: Path) -> None:
    with server_of(ends=lambda number: ("cancelled", 4) if number == 0 else None) as server:
        results = in_batches(server, tmp_path)
        assert sum(isinstance(r, Completion) for r in results) == 4
        assert {r.kind for r in results if isinstance(r, ModelError)} == {"cancelled"}
        assert texts_of(in_batches(server, tmp_path)) == answers_of(TEXTS)
        assert server.answered == len(TEXTS)


def test_a_queue_that_is_full_is_waited_for_and_filled_in_parts(tmp_path: Path) -> None:
    with server_of(queue=20) as server:
        assert texts_of(in_batches(server, tmp_path)) == answers_of(TEXTS)
        assert server.answered == len(TEXTS)
        assert any(batch.faults for batch in server.batches.values())
        n_batches = len(server.batches)
        in_batches(server, tmp_path, [f"again {text}" for text in TEXTS])
        assert server.paid_again() == 0
        assert n_batches > 3


def test_a_batch_has_only_so_many_requests_and_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "MOST_REQUESTS", 5)
    with server_of() as server:
        texts_of(in_batches(server, tmp_path))
        assert sorted(len(batch.lines) for batch in server.batches.values()) == [2, 5, 5]
    monkeypatch.setattr(lane, "MOST_BYTES", 1000)
    with server_of() as server:
        texts_of(in_batches(server, tmp_path / "other"))
        assert server.largest_upload <= 1000


@pytest.mark.parametrize("drop", ["before it is begun", "after it was begun"])
def test_a_batch_whose_beginning_was_not_answered_is_begun_once(tmp_path: Path, drop: str) -> None:
    lost = iter([Fault(drop="at once" if drop == "before it is begun" else "body")])

    def api(method: str, path: str) -> Fault | None:
        return next(lost, None) if (method, path) == ("POST", "batches") else None

    with server_of(api=api) as server:
        for _ in range(230):
            server._create({"input_file_id": "file-0", "endpoint": "/v1/embeddings",
                            "completion_window": "24h"}, f"Bearer {KEY}")  # fmt: skip
        assert texts_of(in_batches(server, tmp_path)) == answers_of(TEXTS)
        assert server.answered == len(TEXTS)
        assert len([batch for batch in server.batches.values() if batch.lines]) == 1


def test_a_server_that_is_away_for_a_while_does_not_end_the_wait(tmp_path: Path) -> None:
    away = iter([server_error(503), rate_limited("0.01"), Fault(drop="at once")] * 3)

    def api(method: str, path: str) -> Fault | None:
        return next(away, None) if path in ("batches/ID", "files/ID/content") else None

    with server_of(api=api) as server:
        assert texts_of(in_batches(server, tmp_path, max_retries=1)) == answers_of(TEXTS)
        assert server.answered == len(TEXTS)


def test_a_server_that_stays_away_is_no_reason_to_ask_again(tmp_path: Path) -> None:
    broken = [server_error(500)]

    def api(method: str, path: str) -> Fault | None:
        return broken[0] if broken and path == "files/ID/content" else None

    with server_of(api=api) as server:
        results = in_batches(server, tmp_path, max_retries=1)
        assert {r.kind for r in results if isinstance(r, ModelError)} == {"unreachable"}
        broken.clear()
        assert texts_of(in_batches(server, tmp_path)) == answers_of(TEXTS)
        assert len(server.batches) == 1
        assert server.paid_again() == 0
    assert paid(tmp_path)["cost"].len() == len(TEXTS)


def test_a_server_without_batches_is_said_so_before_anything_is_paid(tmp_path: Path) -> None:
    with ModelServer() as server:
        results = ask_many(server, tmp_path, TEXTS, **LANE)
        assert server.answered == 0
    assert isinstance(results[0], TerminalModelError)
    assert 'set llm.lane to "direct"' in str(results[0])
    assert not_accounted(tmp_path) == 0


def test_a_batch_of_another_key_is_not_paid_for_twice(tmp_path: Path) -> None:
    with server_of() as server:
        interrupted(server, tmp_path)
        other = LlmOptions(server.base_url, "sk-other", **LANE)
        with pytest.raises(TerminalModelError, match=r"not known .* to this key"):
            run_calls(lambda: _ask_with(other, tmp_path))
        assert len(server.batches) == 1
        assert texts_of(in_batches(server, tmp_path)) == answers_of(TEXTS)
        assert server.answered == len(TEXTS)


def test_ctrl_c_leaves_the_batch_running_and_the_next_run_collects_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with server_of() as server:
        interrupted(server, tmp_path)
        assert "the next run collects its answers" in caplog.text
        assert len(paid(tmp_path)) == 0
        assert texts_of(in_batches(server, tmp_path)) == answers_of(TEXTS)
        assert server.answered == len(TEXTS)
        assert len(server.batches) == 1


def test_answers_that_nobody_asks_for_again_are_counted_and_kept(tmp_path: Path) -> None:
    with server_of() as server:
        interrupted(server, tmp_path)
        [batch] = server.batches.values()
        for _ in batch.steps:
            pass
        in_batches(server, tmp_path, ["another question"])
        assert len(paid(tmp_path)) == len(TEXTS) + 1
        texts_of(ask_many(server, tmp_path, TEXTS))
        assert server.answered == len(TEXTS) + 1
        assert server.files == {}
    assert not_accounted(tmp_path) == 0


def test_what_was_on_its_way_when_the_index_was_purged_is_counted_and_not_kept(
    tmp_path: Path,
) -> None:
    with server_of() as server:
        interrupted(server, tmp_path)
        with reading(tmp_path) as tables:
            assert tables is not None
            tables.forget([keep_no_answers()])
        [batch] = server.batches.values()
        for _ in batch.steps:
            pass
        in_batches(server, tmp_path, ["another question"])
        assert len(paid(tmp_path)) == len(TEXTS) + 1
        with reading(tmp_path) as tables:
            assert tables is not None
            assert tables.read("SELECT text FROM responses") == [("answer to another question",)]


def test_a_budget_holds_for_what_batches_may_cost(tmp_path: Path) -> None:
    with server_of() as server:
        texts_of(in_batches(server, tmp_path / "whole", max_output_tokens=20))
        cost = paid(tmp_path / "whole")["cost"].sum()
        results = in_batches(server, tmp_path, max_output_tokens=20, max_cost=cost)
        assert paid(tmp_path)["cost"].sum() <= cost
        assert any(isinstance(r, BudgetExceededError) for r in results)
        assert any(isinstance(r, Completion) for r in results)


def test_answers_deleted_on_the_server_are_asked_for_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with server_of() as server:
        interrupted(server, tmp_path)
        [batch] = server.batches.values()
        for _ in batch.steps:
            pass
        server.files.clear()
        assert texts_of(in_batches(server, tmp_path)) == answers_of(TEXTS)
        assert "are not there any more" in caplog.text


def test_progress_says_what_is_waited_for(tmp_path: Path) -> None:
    lines: list[tuple[str, int, int]] = []
    with server_of(portions=4) as server, listening(lambda *line: lines.append(line)):
        in_batches(server, tmp_path)
    assert lines[0] == ("batch 1 of round 1", 0, 12)
    assert ("batch 1 of round 1", 6, 12) in lines
    assert lines[-1] == ("batch 1 of round 1", 12, 12)


def interrupted(server: BatchServer, home: Path) -> None:
    """Ask in a batch, and be stopped (as by Ctrl-C) once it is in progress."""

    async def run() -> None:
        async with ModelClient(options_for(server, **LANE), home) as client:
            asking = asyncio.ensure_future(complete_many(client, requests()))
            while not any(batch.lines for batch in server.batches.values()):
                await asyncio.sleep(0.005)
            asking.cancel()
            await asking

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())


def requests() -> list[ChatRequest]:
    return [ChatRequest(said(text), "test", "b1") for text in TEXTS]


async def _ask_with(options: LlmOptions, home: Path) -> None:
    async with ModelClient(options, home) as client:
        await client.ask(requests()[0])


def ask_until_step(base_url: str, home: Path, step: int, count: Path | None = None) -> None:
    """Ask in a process of its own that is killed before or after one of its writes or calls."""
    steps = itertools.count()

    def pass_step() -> None:
        if next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    commit, once = CallTables.commit, BatchApi._once

    def commit_in_steps(tables: CallTables, jobs: Any) -> Any:
        pass_step()
        rows = commit(tables, jobs)
        pass_step()
        return rows

    async def call_in_steps(api: BatchApi, call: Any, **given: Any) -> Any:
        pass_step()
        answer = await once(api, call, **given)
        pass_step()
        return answer

    CallTables.commit = commit_in_steps  # pyright: ignore[reportAttributeAccessIssue]
    BatchApi._once = call_in_steps  # pyright: ignore[reportAttributeAccessIssue]

    async def run() -> None:
        async with ModelClient(LlmOptions(base_url, KEY, **LANE), home) as client:
            await complete_many(client, requests())

    run_calls(run)
    if count is not None:
        count.write_text(str(next(steps)))


def killed_at(server: BatchServer, home: Path, step: int, count: Path | None = None) -> None:
    process = processes.Process(target=ask_until_step, args=(server.base_url, home, step, count))
    process.start()
    process.join()


def check_kill(tmp_path: Path, step: int) -> None:
    home = tmp_path / str(step)
    with server_of() as server:
        killed_at(server, home, step)
        assert texts_of(in_batches(server, home)) == answers_of(TEXTS), step
        assert server.answered == len(TEXTS), step
        assert server.paid_again() == 0, step
        calls = paid(home)
        assert len(calls) == len(TEXTS), step
        assert calls["prompt_tokens"].sum() == server.prompt_tokens, step
    assert not_accounted(home) == 0, step


def number_of_steps(tmp_path: Path) -> int:
    count = tmp_path / "count"
    with server_of() as server:
        killed_at(server, tmp_path / "whole", -1, count)
    return int(count.read_text())


def test_a_kill_in_each_phase_loses_nothing_and_pays_nothing_twice(tmp_path: Path) -> None:
    n_steps = number_of_steps(tmp_path)
    assert n_steps > 20
    for step in range(0, n_steps, n_steps // 6):
        check_kill(tmp_path, step)


@pytest.mark.nightly
def test_a_kill_at_any_step_loses_nothing_and_pays_nothing_twice(tmp_path: Path) -> None:
    for step in range(number_of_steps(tmp_path)):
        check_kill(tmp_path, step)


def test_an_index_is_made_in_batches_and_questions_are_asked_directly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with BatchServer(mind) as server:
        engine = by_model(tmp_path, server.base_url, llm={"lane": "batch", "retry_seconds": 0.01})
        engine.write(FILES)
        update(engine)
        assert server.in_batches == len(server.asked()) > len(FILES)
        assert all(batch.status == "completed" for batch in server.batches.values())
        in_batches_before = server.in_batches
        Index(engine.workspace.settings).answer("Who is Alice Smith?", method="local")
        assert len(server.asked()) > in_batches_before
        assert server.in_batches == in_batches_before
