"""Slices made by workers: what one machine makes, each made once and paid once."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pyarrow as pa
import pytest
from artefacts import copy_of
from graphrag_cluster.embedding_slices import SpreadEmbedder, order_vectors
from graphrag_cluster.objects import MissingObjectError, ObjectStore
from graphrag_cluster.pieces import MakePieces
from graphrag_cluster.slices import (
    KINDS,
    SWEPT_AFTER_SECONDS,
    SliceKind,
    is_made,
    make_pieces,
    make_slice,
    order_slice,
    sweep_slices,
)
from model_server import Messages, ModelServer, unauthorized

from conftest import Engine
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.spreading import spreading
from graphrag_pipeline.definitions import build_definitions
from graphrag_pipeline.llm.embedders import HashingEmbedder, Storing
from graphrag_pipeline.llm.errors import ModelError
from graphrag_pipeline.reports.levels import LevelReports, update_reports
from graphrag_pipeline.reports.model_writer import REPORTS, report_writer
from graphrag_pipeline.store.vector_store import VectorStore, row_schema
from graphrag_pipeline.structures.updating import EMBEDDINGS

DIMENSIONS = 32
N_ROWS = 10
WORKER = Settings(embeddings={"dimensions": DIMENSIONS})
KIND_OF = {kind.name: kind for kind in KINDS}
REPORT = {
    "title": "A circle of people",
    "summary": "They meet.",
    "rating": 5,
    "rating_explanation": "They are few.",
    "findings": [{"summary": "They meet.", "explanation": "They meet often [Data: Entities (1)]."}],
}
SLICE = 2
"""Reports in a slice of a model that is asked one thing at a time."""


@dataclass
class Workers:
    """Workers that make slices in turn; ``killed_after`` so many, the coordinator is killed."""

    kind: SliceKind
    objects: ObjectStore
    settings: Sequence[Settings]
    killed_after: int | None = None
    made: list[str] = field(default_factory=list)

    @property
    def make(self) -> MakePieces:
        return partial(make_pieces, self.objects, self._make)

    def _make(self, keys: Sequence[str]) -> None:
        for key in sorted(keys):
            if len(self.made) == self.killed_after:
                raise KeyboardInterrupt
            settings = self.settings[len(self.made) % len(self.settings)]
            make_slice(self.kind, settings, self.objects, key)
            self.made.append(key)


@pytest.fixture
def objects(tmp_path: Path) -> ObjectStore:
    return ObjectStore(f"file://{tmp_path}/shared")


# Embeddings


class FewAtOnce(HashingEmbedder):
    """An embedder whose work is cut into slices of four texts."""

    storing = Storing(rows=4)


@pytest.fixture
def embedding(objects: ObjectStore) -> Workers:
    return Workers(KIND_OF[EMBEDDINGS], objects, [WORKER])


def rows() -> pa.Table:
    values = [
        {"id": f"{n:02}", "text": f"Ada met Charles in town {n}", "content_hash": f"{n:032x}"}
        for n in range(N_ROWS)
    ]
    return pa.Table.from_pylist(values, schema=row_schema())


def test_vectors_made_by_workers_are_those_of_one_machine(
    tmp_path: Path, embedding: Workers
) -> None:
    embedder = FewAtOnce(DIMENSIONS)
    tables = []
    for name, used in (("alone", embedder), ("spread", SpreadEmbedder(embedder, embedding.make))):
        store = VectorStore(tmp_path / name)
        version = store.sync("chunks", rows(), used).version
        tables.append(store.at({"chunks": version}).matrix("chunks"))
    assert tables[0][0] == tables[1][0]
    assert np.array_equal(tables[0][1], tables[1][1])
    assert len(embedding.made) == 3
    assert embedding.objects.sizes("slices") == {}


def test_a_slice_made_before_the_coordinator_was_killed_is_not_made_again(
    objects: ObjectStore, embedding: Workers
) -> None:
    texts = [["Ada", "Charles"], ["London"]]
    key = order_slice(objects, order_vectors(FewAtOnce(DIMENSIONS).name, texts[0]))
    # A worker may be given a slice twice.
    for _ in range(2):
        assert make_slice(embedding.kind, WORKER, objects, key) == 2
    spread = SpreadEmbedder(FewAtOnce(DIMENSIONS), embedding.make)
    assert [len(each) for each in spread.embed_parts(texts)] == [2, 1]
    assert len(embedding.made) == 1
    assert key not in embedding.made


def test_slices_of_the_same_texts_are_made_once(objects: ObjectStore, embedding: Workers) -> None:
    spread = SpreadEmbedder(FewAtOnce(DIMENSIONS), embedding.make)
    first, other, again = spread.embed_parts([["Ada", "Ada"], ["Charles"], ["Ada", "Ada"]])
    assert np.array_equal(first, again)
    assert not np.array_equal(first[:1], other)
    assert len(embedding.made) == 2
    assert objects.sizes("slices") == {}


def test_a_worker_with_another_embedder_makes_no_vectors(
    objects: ObjectStore, embedding: Workers
) -> None:
    key = order_slice(objects, order_vectors(FewAtOnce(64).name, ["Ada"]))
    with pytest.raises(ConfigError, match="this worker embeds by hashing"):
        make_slice(embedding.kind, WORKER, objects, key)


def test_slices_of_a_coordinator_that_is_gone_are_swept_after_a_day(
    tmp_path: Path, objects: ObjectStore, embedding: Workers
) -> None:
    orders = [order_vectors(FewAtOnce(DIMENSIONS).name, [text]) for text in ("Ada", "Bo", "Cy")]
    forgotten, ordered_again, new = (order_slice(objects, order) for order in orders)
    make_slice(embedding.kind, WORKER, objects, forgotten)
    make_slice(embedding.kind, WORKER, objects, ordered_again)
    yesterday = time.time() - SWEPT_AFTER_SECONDS - 60
    for path in (tmp_path / "shared" / "slices").rglob("*"):
        if new not in str(path):
            os.utime(path, (yesterday, yesterday))
    # What was made yesterday and is asked for today is younger than a day.
    order_slice(objects, orders[1])
    sweep_slices(objects)
    assert {name.split("/")[1] for name in objects.sizes("slices")} == {ordered_again, new}
    assert is_made(objects, ordered_again)


# Reports


def crowd(n_circles: int = 5) -> str:
    """Circles of six people each, joined in a few places: communities on two levels."""
    sentences = []
    for group in ("Smith", "Jones", "Brown", "Green", "White")[:n_circles]:
        names = [f"{first} {group}" for first in ("Alice", "Bob", "Carol", "Dora", "Emil", "Frank")]
        for i, name in enumerate(names):
            sentences.append(f"{name} met {names[(i + 1) % 6]} and {names[(i + 2) % 6]} in Paris.")
    return " ".join(sentences)


def settings_of(folder: Path, server: ModelServer, **llm: Any) -> Settings:
    given: dict[str, Any] = {
        "home": str(folder / ".graphrag"),
        "reports": {"writer": "llm"},
        "communities": {"max_cluster_size": 4},
        "llm": {"base_url": server.base_url, "concurrency": SLICE // 2, "max_retries": 0, **llm},
    }
    return Settings(**given)


def engine_for(folder: Path, server: ModelServer) -> Engine:
    """Return an index with communities and no report."""

    def make(made: Path) -> None:
        engine = Engine(made, settings_of(made, server))
        engine.write({"a.txt": crowd()})
        engine.index()
        engine.cluster()

    return Engine(copy_of("crowd", make, folder), settings_of(folder, server))


def report(engine: Engine, workers: Workers | None = None) -> LevelReports:
    given = engine.settings
    with spreading({REPORTS: workers.kind.standing_in(workers.make)} if workers else {}):
        return update_reports(
            engine.store, given.reports, 0, and_deeper=True, writer=report_writer(given)
        )


def tables_of(engine: Engine) -> list[list[tuple[Any, ...]]]:
    queries = (
        "FROM community_reports ORDER BY id",
        "FROM report_elements ORDER BY ALL",
        "FROM report_failures ORDER BY ALL",
    )
    with engine.store.read() as con:
        return [con.execute(query).fetchall() for query in queries]


class Mind:
    """Writes the same report on everything, but none where the context has a word."""

    def __init__(self) -> None:
        self.refuses = "nothing refused"

    def __call__(self, messages: Messages) -> str:
        if self.refuses in messages[1]["content"]:
            return "no report today"
        return json.dumps(REPORT)


@pytest.fixture
def mind() -> Mind:
    return Mind()


@pytest.fixture
def server(mind: Mind, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with ModelServer(mind) as server:
        yield server


@pytest.fixture
def workers(tmp_path: Path, objects: ObjectStore, server: ModelServer) -> Workers:
    """Two workers with homes of their own: neither knows what the other has paid for."""
    settings = [settings_of(tmp_path / f"worker{number}", server) for number in range(2)]
    return Workers(KIND_OF[REPORTS], objects, settings)


def asked(server: ModelServer) -> Counter[str]:
    """Take what was asked since the last time."""
    requests = Counter(request.content_hash for request in server.asked())
    server.forget()
    return requests


def test_reports_made_by_workers_are_those_of_one_machine_and_ask_the_same(
    tmp_path: Path, server: ModelServer, mind: Mind, workers: Workers
) -> None:
    alone, spread = (engine_for(tmp_path / name, server) for name in ("alone", "spread"))
    # A report that cannot be written is asked for three times, by a worker as by one machine.
    mind.refuses = "Emil Brown"
    done = report(alone)
    assert done.failed
    at_once = asked(server)
    assert report(spread, workers) == done
    assert asked(server) == at_once
    assert tables_of(spread) == tables_of(alone)
    assert len(workers.made) > 2
    assert workers.objects.sizes("slices") == {}
    mind.refuses = "nothing refused"
    assert report(spread, workers) == report(alone)
    assert tables_of(spread) == tables_of(alone)
    assert tables_of(spread)[2] == []


def test_a_worker_that_writes_no_reports_of_its_own_writes_those_that_are_ordered(
    tmp_path: Path, server: ModelServer, workers: Workers
) -> None:
    by_rule = workers.settings[0].reports.model_copy(update={"writer": "extractive"})
    workers.settings = [w.model_copy(update={"reports": by_rule}) for w in workers.settings]
    alone, spread = (engine_for(tmp_path / name, server) for name in ("alone", "spread"))
    assert report(spread, workers) == report(alone)
    assert len(workers.made) > 2
    assert tables_of(spread) == tables_of(alone)


def test_reports_made_before_the_coordinator_was_killed_are_not_paid_again(
    tmp_path: Path, server: ModelServer, workers: Workers
) -> None:
    engine = engine_for(tmp_path / "spread", server)
    workers.killed_after = 1
    with pytest.raises(KeyboardInterrupt):
        report(engine, workers)
    first, workers.killed_after = asked(server), None
    assert first.total() == SLICE
    report(engine, workers)
    then = asked(server)
    assert not first & then
    assert report(engine_for(tmp_path / "alone", server)).written
    assert asked(server) == first + then


def test_reports_that_are_no_more_than_a_slice_are_written_by_the_coordinator(
    tmp_path: Path, server: ModelServer, workers: Workers
) -> None:
    engine = engine_for(tmp_path / "spread", server)
    limit = {"concurrency": 100}
    llm = engine.settings.llm.model_copy(update=limit)
    engine.settings = engine.settings.model_copy(update={"llm": llm})
    assert report(engine, workers).written > SLICE
    assert workers.made == []


OTHERWISE: list[tuple[str, dict[str, Any]]] = [
    ("llm", {"model": "gpt-4o"}),
    ("llm", {"extra": {"reasoning_effort": "low"}}),
    ("llm", {"max_output_tokens": 900}),
    ("llm", {"structured_output": "off"}),
    ("llm", {"base_url": "http://127.0.0.1:9/v1"}),
    ("reports", {"max_words": 99}),
]


def test_a_worker_that_would_ask_otherwise_asks_nothing(
    tmp_path: Path, server: ModelServer, workers: Workers
) -> None:
    engine = engine_for(tmp_path / "spread", server)
    own, *_ = workers.settings
    for name, values in OTHERWISE:
        section = getattr(own, name).model_copy(update=values)
        workers.settings = [own.model_copy(update={name: section})]
        with pytest.raises(ConfigError, match="would ask the model otherwise for reports"):
            report(engine, workers)
        assert not server.requests, values


def test_an_error_that_all_reports_would_meet_is_the_coordinators(
    tmp_path: Path, server: ModelServer, workers: Workers
) -> None:
    engine = engine_for(tmp_path / "spread", server)
    server.misbehave(lambda request: unauthorized())
    with pytest.raises(ModelError) as told:
        report(engine, workers)
    assert told.value.stops_everything
    server.misbehave(())
    report(engine, workers)
    alone = engine_for(tmp_path / "alone", server)
    report(alone)
    assert tables_of(engine) == tables_of(alone)


def test_what_workers_could_not_ask_the_coordinator_asks(
    tmp_path: Path, server: ModelServer, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = workers._make

    def make_without_a_key(keys: Sequence[str]) -> None:
        server.misbehave(lambda request: unauthorized())
        make(keys)
        server.misbehave(())

    monkeypatch.setattr(workers, "_make", make_without_a_key)
    alone, spread = (engine_for(tmp_path / name, server) for name in ("alone", "spread"))
    assert report(spread, workers) == report(alone)
    assert len(workers.made) > 2
    assert tables_of(spread) == tables_of(alone)


# What a worker brings


def of_another(data: bytes) -> bytes:
    made = json.loads(data)
    return json.dumps({**made, "failures": {"another": "none was written"}}).encode()


def with_another_rating(data: bytes) -> bytes:
    made = json.loads(data)
    for written in made["reports"].values():
        written["rating"] = "high"
    return json.dumps(made).encode()


@pytest.mark.parametrize(
    "damage", [of_another, with_another_rating, lambda data: b"", lambda data: data[:9]]
)
def test_reports_that_are_damaged_are_not_taken_and_made_again(
    tmp_path: Path,
    server: ModelServer,
    workers: Workers,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[bytes], bytes],
) -> None:
    engine = engine_for(tmp_path / "spread", server)
    write = workers.objects.write

    def damaged(name: str, data: bytes) -> None:
        write(name, damage(data) if name.endswith("made") and not workers.made else data)

    with monkeypatch.context() as patch:
        patch.setattr(workers.objects, "write", damaged)
        with pytest.raises(MissingObjectError, match="is damaged") as told:
            report(engine, workers)
    assert "\n" not in str(told.value)
    with engine.store.read() as con:
        assert con.execute("SELECT count(*) FROM community_reports").fetchone() == (0,)
    assert report(engine, workers).failed == 0


@pytest.mark.parametrize("damaged", [b"\x93NUMPY and no more", b""])
def test_vectors_that_are_damaged_are_not_taken(objects: ObjectStore, damaged: bytes) -> None:
    def make(keys: Sequence[str]) -> None:
        for key in keys:
            objects.write(f"slices/{key}/made", damaged)

    spread = SpreadEmbedder(FewAtOnce(DIMENSIONS), partial(make_pieces, objects, make))
    with pytest.raises(MissingObjectError, match="is damaged"):
        list(spread.embed_parts([["a"], ["b"]]))
    assert len(objects.sizes("slices")) == 2


# What Dagster shows


SLICES = {"embedding_slices": "embedding_slice", "report_slices": "report_slice"}


@pytest.mark.parametrize(
    ("embedder", "writer", "launcher", "shown"),
    [
        ("local", "llm", "k8s", SLICES),
        # A worker is ordered what the coordinator's settings ask for, whatever its own say.
        ("hashing", "extractive", "k8s", SLICES),
        ("local", "llm", "in_process", {}),
    ],
)
def test_dagster_has_the_slices_that_may_be_ordered(
    tmp_path: Path, embedder: str, writer: str, launcher: str, shown: dict[str, str]
) -> None:
    settings = Settings(
        home=str(tmp_path / "home"),
        storage={"url": f"file://{tmp_path}/shared", "postgres": "postgresql://not.asked"},
        workers={"launcher": launcher},
        embeddings={"embedder": embedder, "model": "a-model"},
        reports={"writer": writer},
    )
    definitions = build_definitions(settings)
    slices = {
        spec.key.to_user_string(): spec.partitions_def
        for spec in definitions.resolve_all_asset_specs()
        if spec.key.to_user_string().endswith("_slices")
    }
    assert slices == {
        name: dg.DynamicPartitionsDefinition(name=partitions) for name, partitions in shown.items()
    }
    jobs = {job.name for job in definitions.resolve_all_job_defs()}
    assert {f"make_{partitions}" for partitions in shown.values()} == {
        name for name in jobs if name.endswith("_slice")
    }
