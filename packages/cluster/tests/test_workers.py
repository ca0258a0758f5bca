"""Coordinator, workers and reader with homes of their own, over real Postgres, Redis and S3."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psycopg
import pytest
from cluster_services import Bucket, postgres, redis, s3, with_children
from commands import ForkedPython, command
from graphrag_cluster.addresses import check_services
from graphrag_cluster.objects import ObjectStore
from graphrag_cluster.postgres import Postgres, Session
from index_differences import differing_tables
from llm_helpers import stage_of
from local_model import minilm
from model_server import Request
from strict_server import StrictServer

from benchmarks.played_answers import played_answer
from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.settings import load_settings
from graphrag_pipeline.pipeline.updating import run_stages
from graphrag_pipeline.store.workspace import Workspace

pytestmark = [pytest.mark.cluster, pytest.mark.waits]

PASSWORD, KEY = "password-of-tests", "sk-key-of-tests"
CORPUS = Path(__file__).parents[3] / "examples" / "corpus" / "press"
FILES = sorted(CORPUS.iterdir())[:3]
CONCURRENCY = 2
AWAY = {
    "GRAPHRAG_POSTGRES_URL": "cannot use Postgres at 127.0.0.1:9",
    "GRAPHRAG_BROKER_URL": "cannot reach Redis at 127.0.0.1:9",
    "AWS_ENDPOINT_URL": "cannot use s3://",
}
KILLED_FROM = {"extract": 1, "report": 0}
"""From which of a worker's processes on it is killed, by stage: the one that works, or all."""
OF_ITS_MACHINE = {
    *("main.llm_calls", "main.meta", "main.model_quality", "main.releases"),
    "main.stage_seconds",
}
"""Tables that tell of the times and the calls of one run: those of two builds differ."""


@pytest.fixture
def server() -> Iterator[StrictServer]:
    with StrictServer(played_answer) as server:
        yield server


@pytest.fixture
def bucket(server: StrictServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """The bucket; all processes are told of it, of Postgres, Redis and the model."""
    with postgres() as database, redis() as broker, s3() as bucket:
        environment = {
            **bucket.environment,
            "OPENAI_API_KEY": KEY,
            "GRAPHRAG_PROFILE": "llm",
            "GRAPHRAG_LLM__BASE_URL": server.base_url,
            "GRAPHRAG_LLM__CONCURRENCY": str(CONCURRENCY),
            "GRAPHRAG_LLM__MAX_TOKENS": str(10**8),
            "GRAPHRAG_EMBEDDINGS__EMBEDDER": "hashing",
            "GRAPHRAG_BATCHES__MAX_FILES": "2",
            "GRAPHRAG_STORAGE__URL": f"{bucket.url}/index",
            "GRAPHRAG_POSTGRES_URL": database.address.replace("@", f":{PASSWORD}@"),
            "GRAPHRAG_BROKER_URL": broker.address,
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield bucket


@contextlib.contextmanager
def running(folder: Path, *arguments: str) -> Iterator[ForkedPython]:
    """Run a command in a folder, and in a home, of its own; kill what is left of it at last."""
    folder.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "GRAPHRAG_HOME": str(folder / "home"),
        "GRAPHRAG_WORKERS__LAUNCHER": "celery",
    }
    with (folder / "said").open("ab") as said:
        process = ForkedPython(
            ("-m", "graphrag_pipeline.cli", *arguments),
            cwd=folder, env=environment, stdout=said, stderr=said,
        )  # fmt: skip
    try:
        yield process
    finally:
        kill(process)
        process.wait()


def kill(process: ForkedPython, first: int = 0) -> None:
    """Kill a process and all that come from it, or those from the first of them on."""
    for pid in with_children(process.pid)[first:]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_for(happens: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def build_alone(folder: Path, batches: Path) -> Path:
    """Build, of the same batches, what one machine makes of them; return the index file."""
    settings = load_settings().model_copy(update={"home": str(folder / "home")})
    settings = settings.model_copy(
        update={"storage": settings.storage.model_copy(update={"url": ""})}
    )
    workspace = Workspace(settings)
    shutil.rmtree(workspace.paths.batches, ignore_errors=True)
    shutil.copytree(batches, workspace.paths.batches)
    run_stages(workspace)
    return workspace.paths.index


def questions(server: StrictServer) -> set[str]:
    """Take what the model was asked since the last time."""
    asked = {request.content_hash for request in server.requests}
    server.forget()
    return asked


def slices_made(asset: str) -> set[str]:
    """Return the slices that Dagster has seen made by workers."""
    with psycopg.connect(os.environ["GRAPHRAG_POSTGRES_URL"]) as con:
        rows = con.execute(
            "SELECT partition FROM event_logs WHERE asset_key = %s"
            " AND dagster_event_type = 'ASSET_MATERIALIZATION'",
            (json.dumps([asset]),),
        ).fetchall()
    return {partition for (partition,) in rows}


def spent_by_run() -> tuple[list[int], list[int]]:
    """Return the tokens that count against the budget of each run, and those that its calls took.

    The coordinator and its workers share one budget in each run.
    """
    with contextlib.closing(Session(Postgres.of(load_settings()))) as session:
        budgets = session.rows("SELECT since, spent_tokens FROM budgets ORDER BY since")
        calls = session.rows(
            "SELECT position, prompt_tokens + completion_tokens FROM llm_calls WHERE cached = 0"
        )
    ends = [since for since, _ in budgets[1:]] + [math.inf]
    taken = [
        sum(tokens for position, tokens in calls if since < position <= end)
        for (since, _), end in zip(budgets, ends, strict=True)
    ]
    return [spent for _, spent in budgets], taken


def change(documents: Path) -> None:
    first, second, third, *_ = sorted(documents.iterdir())
    first.unlink()
    second.write_text(second.read_text() + "\n\nAda Lovelace met Charles Babbage in London.\n")
    third.rename(third.with_name("renamed.md"))
    (documents / "new.md").write_text("Marie Curie worked with Pierre Curie in Paris.")


class Killed:
    """A worker that is killed as the model is asked for something, some calls after the first.

    What was answered before is kept by then; what is in flight is answered, and nobody hears it.
    """

    def __init__(self, server: StrictServer, worker: ForkedPython, stage: str) -> None:
        self._server, self._worker, self._stage = server, worker, stage
        self._calls_left = CONCURRENCY
        server.misbehave(self._kill)

    def wait(self) -> None:
        wait_for(lambda: self._calls_left < 0)
        self._server.misbehave(())

    def _kill(self, request: Request) -> None:
        if self._calls_left >= 0 and stage_of(request.messages) == self._stage:
            self._calls_left -= 1
            if self._calls_left < 0:
                kill(self._worker, KILLED_FROM[self._stage])


# What a killed process asked is asked again half a minute later; a worker of which nothing is left
# is given up after a minute and a half.
@pytest.mark.parametrize(
    "killed_in", [None, *(pytest.param(each, marks=pytest.mark.nightly) for each in KILLED_FROM)]
)
def test_workers_elsewhere_make_the_index_of_one_machine_also_where_one_is_killed(
    tmp_path: Path,
    server: StrictServer,
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
    killed_in: str | None,
) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "unreadable.pdf").write_bytes(b"%PDF-1.7 and no more")
    for file in FILES:
        shutil.copy(file, documents)
    coordinator = tmp_path / "coordinator"
    with contextlib.ExitStack() as workers:
        worker = workers.enter_context(running(tmp_path / "worker1", "worker"))
        killed = Killed(server, worker, killed_in) if killed_in else None
        if not killed:
            workers.enter_context(running(tmp_path / "worker2", "worker"))
        slices: set[str] = set()
        for step in ("new", "changed"):
            with running(coordinator, "index", "--yes", str(documents)) as index:
                if killed and step == "new":
                    killed.wait()
                    workers.enter_context(running(tmp_path / "worker2", "worker"))
                index.wait(300)
                assert index.returncode == 0, (coordinator / "said").read_text()
            # What was in flight is asked again, and nothing else.
            in_flight = range(1, CONCURRENCY + 1) if killed and step == "new" else [0]
            assert server.paid_again() in in_flight
            by_workers = questions(server)
            alone = build_alone(tmp_path / "alone", coordinator / "home" / "batches")
            assert questions(server) == by_workers
            made = differing_tables(alone, coordinator / "home" / "index.duckdb")
            assert set(made) <= OF_ITS_MACHINE, step
            slices_before, slices = slices, slices_made("report_slices")
            assert len(slices - slices_before) > 1, step
            change(documents)
    if not killed:
        # What a killed worker had set aside counts as spent.
        budgets, taken = spent_by_run()
        assert budgets == taken
        assert len(budgets) == 2
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path / "reader"))
    read = command("sql", "SELECT text FROM chunks")
    assert "Marie Curie worked with Pierre Curie" in read.stdout, read.stderr
    for variable, said in AWAY.items():
        with monkeypatch.context() as away:
            away.setenv(variable, re.sub(r":\d+", ":9", os.environ[variable]))
            away.setenv("GRAPHRAG_WORKERS__LAUNCHER", "celery")
            settings = load_settings()
            with pytest.raises(StorageError, match=said) as told:
                check_services(settings)
        assert told.value.exit_code == 5
        assert "\n" not in str(told.value)
    secrets = (PASSWORD, KEY, bucket.environment["AWS_SECRET_ACCESS_KEY"])
    assert (
        list(places_of(secrets, tmp_path, ObjectStore(os.environ["GRAPHRAG_STORAGE__URL"]))) == []
    )


def test_the_end_of_the_budget_on_a_worker_ends_the_run_with_its_own_exit_code(
    tmp_path: Path, server: StrictServer, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    for file in FILES:
        shutil.copy(file, documents)
    monkeypatch.setenv("GRAPHRAG_LLM__MAX_TOKENS", "9000")
    coordinator = tmp_path / "coordinator"
    with (
        running(tmp_path / "worker", "worker"),
        running(coordinator, "index", "--yes", str(documents)) as index,
    ):
        index.wait(300)
    said = (coordinator / "said").read_text()
    assert index.returncode == 7, said
    assert "max_tokens" in said
    assert "is tried again" not in said


@pytest.mark.nightly
def test_a_worker_embeds_slices_by_a_real_local_model_as_one_machine_does(
    tmp_path: Path, server: StrictServer, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {
        "PROFILE": "embedded",
        "BATCHES__MAX_FILES": "2000",
        # More texts than a slice has.
        "CHUNKS__SIZE": "9",
        "CHUNKS__OVERLAP": "0",
        "EMBEDDINGS__EMBEDDER": "local",
        "EMBEDDINGS__MODEL": minilm(monkeypatch),
        "EMBEDDINGS__METHODS": '["basic"]',
    }
    for name, value in environment.items():
        monkeypatch.setenv(f"GRAPHRAG_{name}", value)
    coordinator = tmp_path / "coordinator"
    with (
        running(tmp_path / "worker", "worker"),
        running(coordinator, "index", "--yes", str(CORPUS.parent)) as index,
    ):
        index.wait(600)
        assert index.returncode == 0, (coordinator / "said").read_text()
    assert not server.requests
    assert len(slices_made("embedding_slices")) == 2
    build_alone(tmp_path / "alone", coordinator / "home" / "batches")
    (ids, vectors), (ids_alone, vectors_alone) = (
        vectors_in(folder / "home") for folder in (coordinator, tmp_path / "alone")
    )
    assert ids == ids_alone
    assert vectors.shape == (len(ids), 384)
    # By half precision's last place: processors may round otherwise. Here all bits were equal.
    np.testing.assert_allclose(vectors, vectors_alone, rtol=0, atol=2**-10)


def vectors_in(home: Path) -> tuple[list[str], npt.NDArray[np.float32]]:
    """Return the ids and vectors of the chunks of an index."""
    settings = load_settings().model_copy(update={"home": str(home)})
    return Workspace(settings).vectors.newest("chunks").matrix("chunks")


def places_of(secrets: tuple[str, ...], folder: Path, objects: ObjectStore) -> Iterator[str]:
    """Yield the files, objects and tables of Postgres in which a secret stands."""
    for path in folder.rglob("*"):
        if path.is_file() and any(secret.encode() in path.read_bytes() for secret in secrets):
            yield str(path)
    for name in objects.sizes(""):
        if any(secret.encode() in objects.read(name) for secret in secrets):
            yield name
    with psycopg.connect(os.environ["GRAPHRAG_POSTGRES_URL"]) as con:
        tables = con.execute(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        for (table,) in tables:
            for secret in secrets:
                query = f"SELECT count(*) FROM {table} t WHERE t::text LIKE %s"
                if con.execute(query.encode(), (f"%{secret}%",)).fetchall()[0][0]:
                    yield table
