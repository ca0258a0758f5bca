"""Vectors follow the rows of the index, whatever is remembered of what they were made from."""

import random

import pytest

from conftest import Engine
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.store.vector_store import row_digest
from graphrag_pipeline.structures.updating import embed_table
from graphrag_pipeline.structures.vector_tables import (
    CHUNKS,
    ENTITIES,
    VectorTable,
    rows_of,
)

WORDS = [
    "harbour",
    "ledger",
    "Anna",
    "Marisol",
    "Brandvik",
    "Kelmouth",
    "sediment",
    "Halcyon",
    "bridge",
    "petition",
]


def wanted(engine: Engine, table: VectorTable) -> dict[str, str]:
    embedder = configured_embedder(engine.settings).name
    with engine.store.read() as con:
        rows = rows_of(con, table).to_pylist()
    return {row["id"]: row_digest(row["content_hash"], embedder) for row in rows}


def held(engine: Engine, table: VectorTable) -> dict[str, str]:
    vectors = engine.workspace.vectors
    snapshot = vectors.at({table.name: vectors.version(table.name)})
    parts = list(snapshot.scan(table.name, ["id", "content_hash"]))
    assert sum(map(len, parts)) == snapshot.count(table.name)
    return {row["id"]: row["content_hash"] for part in parts for row in part.to_pylist()}


def remembered(engine: Engine, table: VectorTable) -> set[str]:
    rows = engine.rows(f"SELECT id FROM staging.embedded_texts WHERE vectors = '{table.name}'")
    return {id for (id,) in rows}


def forget_all(engine: Engine) -> None:
    with engine.store.transaction() as con:
        con.execute("DELETE FROM staging.embedded_texts")


def be_of_another_duckdb(engine: Engine) -> None:
    with engine.store.transaction() as con:
        con.execute("UPDATE staging.embedded_texts SET digest = digest // 2")


def lose_a_vector(engine: Engine) -> None:
    """As a run does that is killed between the vectors and what is remembered of them."""
    ids = sorted(held(engine, CHUNKS))
    engine.workspace.vectors.forget("chunks", ids[:1])


def change_nothing(engine: Engine) -> None:
    pass


DISTURBANCES = (change_nothing, forget_all, be_of_another_duckdb, lose_a_vector)


@pytest.mark.parametrize(
    "disturbances",
    [
        DISTURBANCES,
        *(pytest.param((each,) * 4, marks=pytest.mark.nightly) for each in DISTURBANCES),
    ],
    ids=["each once", *(each.__name__ for each in DISTURBANCES)],
)
def test_vectors_are_those_of_the_rows_after_any_history(engine: Engine, disturbances) -> None:
    chance = random.Random(7)
    for step in range(1 + len(disturbances)):
        for number in chance.sample(range(8), 3):
            text = " ".join(chance.choices(WORDS, k=30)) + f". Anna Marisol met Elias {number}."
            engine.write({f"d{number}.txt": None if step and chance.random() < 0.3 else text})
        engine.index()
        if step:
            disturbances[step - 1](engine)
        for table in (CHUNKS, ENTITIES):
            there = held(engine, table)
            now = wanted(engine, table)
            changes = embed_table(engine.workspace, table)
            assert held(engine, table) == now
            new = {id for id, digest in now.items() if there.get(id) != digest}
            assert (changes.embedded, changes.removed) == (len(new), len(there.keys() - now))
            assert changes.embedded + changes.reused == len(now)
            assert remembered(engine, table) == now.keys()


def test_only_rows_that_changed_are_read_again(engine: Engine, monkeypatch) -> None:
    for number in range(6):
        engine.write({f"d{number}.txt": f"Anna Marisol sailed to Kelmouth {number} times."})
    engine.index()
    embed_table(engine.workspace, CHUNKS)
    engine.write({"d0.txt": "Elias Brandvik stayed.", "d1.txt": None})
    engine.index()
    read = []
    real = rows_of

    def noted(*given):
        read.append(real(*given))
        return read[-1]

    monkeypatch.setattr("graphrag_pipeline.structures.vector_tables.rows_of", noted)
    changes = embed_table(engine.workspace, CHUNKS)
    assert [len(rows) for rows in read] == [1]
    assert (changes.embedded, changes.reused, changes.removed) == (1, 4, 2)
