"""Slices of embeddings made by workers: the vectors that one machine makes, each made once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import numpy as np
import pyarrow as pa
import pytest

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.definitions import build_definitions
from graphrag_pipeline.llm.embedders import HashingEmbedder, Storing
from graphrag_pipeline.store.objects import MissingObjectError, ObjectStore
from graphrag_pipeline.store.vector_store import VectorStore, row_schema
from graphrag_pipeline.workers.slices import SpreadEmbedder, make_slice, order_slice

DIMENSIONS = 32
N_ROWS = 10
WORKER = Settings(embeddings={"dimensions": DIMENSIONS})


class FewAtOnce(HashingEmbedder):
    """An embedder whose work is cut into slices of four texts."""

    storing = Storing(rows=4)


@pytest.fixture
def objects(tmp_path: Path) -> ObjectStore:
    return ObjectStore(f"file://{tmp_path}/shared")


def rows() -> pa.Table:
    values = [
        {"id": f"{n:02}", "text": f"Ada met Charles in town {n}", "content_hash": f"{n:032x}"}
        for n in range(N_ROWS)
    ]
    return pa.Table.from_pylist(values, schema=row_schema())


def test_vectors_made_by_workers_are_those_of_one_machine(
    tmp_path: Path, objects: ObjectStore
) -> None:
    made: list[str] = []

    def make(keys: Sequence[str]) -> None:
        for key in sorted(keys):
            # A worker may be given a slice twice.
            assert make_slice(WORKER, objects, key) == make_slice(WORKER, objects, key)
            made.append(key)

    embedder = FewAtOnce(DIMENSIONS)
    tables = []
    for name, used in (("alone", embedder), ("spread", SpreadEmbedder(embedder, objects, make))):
        store = VectorStore(tmp_path / name)
        version = store.sync("chunks", rows(), used).version
        tables.append(store.at({"chunks": version}).matrix("chunks"))
    assert tables[0][0] == tables[1][0]
    assert np.array_equal(tables[0][1], tables[1][1])
    assert len(made) == 3
    assert objects.sizes("slices") == {}


def test_a_slice_made_before_the_coordinator_was_killed_is_not_made_again(
    objects: ObjectStore,
) -> None:
    texts = [["Ada", "Charles"], ["London"]]
    key = order_slice(objects, FewAtOnce(DIMENSIONS).name, texts[0])
    make_slice(WORKER, objects, key)
    asked: list[str] = []

    def make(keys: Sequence[str]) -> None:
        asked.extend(keys)
        for key in keys:
            make_slice(WORKER, objects, key)

    vectors = list(SpreadEmbedder(FewAtOnce(DIMENSIONS), objects, make).embed_parts(texts))
    assert [len(each) for each in vectors] == [2, 1]
    assert len(asked) == 1
    assert key not in asked


def test_a_worker_with_another_embedder_makes_no_vectors(objects: ObjectStore) -> None:
    key = order_slice(objects, FewAtOnce(64).name, ["Ada"])
    with pytest.raises(ConfigError, match="this worker embeds by hashing"):
        make_slice(WORKER, objects, key)


def test_vectors_that_are_damaged_are_not_taken(objects: ObjectStore) -> None:
    def make(keys: Sequence[str]) -> None:
        for key in keys:
            objects.write(f"slices/{key}/vectors.npy", b"\x93NUMPY and no more")

    with pytest.raises(MissingObjectError, match="are damaged"):
        list(SpreadEmbedder(FewAtOnce(DIMENSIONS), objects, make).embed_parts([["a"], ["b"]]))
    assert len(objects.sizes("slices")) == 2


@pytest.mark.parametrize(("embedder", "is_shown"), [("local", True), ("hashing", False)])
def test_dagster_shows_slices_where_workers_embed(
    tmp_path: Path, embedder: str, is_shown: bool
) -> None:
    settings = Settings(
        home=str(tmp_path / "home"),
        storage={"url": f"file://{tmp_path}/shared", "postgres": "postgresql://not.asked"},
        workers={"launcher": "k8s"},
        embeddings={"embedder": embedder, "model": "a-model"},
    )
    definitions = build_definitions(settings)
    assets = {spec.key: spec for spec in definitions.resolve_all_asset_specs()}
    slices = assets.get(dg.AssetKey("embedding_slices"))
    assert (slices is not None) is is_shown
    assert slices is None or slices.partitions_def == dg.DynamicPartitionsDefinition(
        name="embedding_slice"
    )
