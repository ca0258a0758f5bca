"""Ctrl-C ends a run wherever it comes, also where a library swallows what Python raises for it."""

from __future__ import annotations

import contextlib
import importlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg
import duckdb
import pytest

from conftest import Engine
from graphrag_pipeline.assets.common import adorned
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.orchestration.runs import index_folder


@pytest.fixture(autouse=True)
def handled() -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGALRM)
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def interrupt_sql() -> dict[str, object]:
    # One thread: DuckDB lets a task of another end first.
    with duckdb.connect(config={"threads": 1}) as con:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        con.execute("SELECT sum(a.i * b.i) FROM range(1_000_000) a(i), range(1_000_000) b(i)")
    return {}


def swallow() -> None:
    with contextlib.suppress(BaseException):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_while_something_is_only_shown_is_no_failure_to_show_it() -> None:
    with pytest.raises((KeyboardInterrupt, RuntimeError)):
        adorned("counts", interrupt_sql)


@pytest.mark.parametrize("come", [interrupt_sql, swallow])
@pytest.mark.parametrize("place", ["ingest.stages.stage_chunks", "assets.stages.facts"])
def test_a_run_is_ended_wherever_ctrl_c_comes(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, place: str, come: Callable[[], object]
) -> None:
    engine.inbox.joinpath("a.txt").write_text("Mara Ilvane built the Orlen Dam.")
    module, name = f"graphrag_pipeline.{place}".rsplit(".", 1)
    work = getattr(importlib.import_module(module), name)
    with monkeypatch.context() as patched:
        patched.setattr(f"{module}.{name}", lambda *given: come() or work(*given))
        with pytest.raises(KeyboardInterrupt):
            index_folder(engine.workspace, engine.inbox)
    assert not Home(engine.workspace.home).published.exists()
    index_folder(engine.workspace, engine.inbox)
    assert Home(engine.workspace.home).published.exists()


def test_ctrl_c_between_two_steps_ends_the_run(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.inbox.joinpath("a.txt").write_text("Mara Ilvane built the Orlen Dam.")
    execute = dg.JobDefinition.execute_in_process

    def swallowing(job: dg.JobDefinition, **given: Any) -> dg.ExecuteInProcessResult:
        result = execute(job, **given)
        swallow()
        return result

    with monkeypatch.context() as patched:
        patched.setattr(dg.JobDefinition, "execute_in_process", swallowing)
        with pytest.raises(KeyboardInterrupt):
            index_folder(engine.workspace, engine.inbox)
    assert not Home(engine.workspace.home).published.exists()
