"""Pairs that look alike, found in blocks so that the cost stays near-linear.

Titles share a block when they share a key: the last word, all words in any order, the consonants,
or some bits of their vectors (random hyperplanes: near vectors fall on the same sides; Charikar
2002, "Similarity Estimation Techniques from Rounding Algorithms"). Blocks above a size are left
out: what so many titles share tells none of them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from graphrag_pipeline.graph.resolution.pairs import Entity, Pair, shared_documents
from graphrag_pipeline.llm.embedders import Embedder, Vectors
from graphrag_pipeline.store.frames import put_rows, streamed
from graphrag_pipeline.store.index_store import memory_database

_BLOCK = 12
_BANDS = 6
_BITS = 14
_SEED = 7
_SLICE = 50_000
_ALIKE = 0.92
_NEAR = 0.8
_KEPT = """
SELECT one, two, alike, near FROM (
    SELECT p.one, p.two, p.near, jaro_winkler_similarity(a.text, b.text) AS alike,
           abs(length(a.text) - length(b.text)) AS longer
    FROM pairs p JOIN titles a ON a.place = p.one JOIN titles b ON b.place = p.two)
WHERE (alike >= $alike AND longer < 6) OR near >= $near
ORDER BY greatest(alike, near) DESC, one, two LIMIT $most
"""


def similar_pairs(entities: Sequence[Entity], embedder: Embedder, most: int) -> list[Pair]:
    """Return pairs whose titles or vectors are near, the nearest first, ``most`` at most.

    They are undecided: their ``confidence`` is 0, their evidence holds both similarities.
    """
    by_id = sorted(entities, key=lambda entity: entity.id)
    titles = [" ".join(entity.name.words) for entity in by_id]
    vectors = embedder.embed([entity.title for entity in by_id])
    keys = pl.concat([_name_keys(by_id), *_vector_keys(vectors)])
    pairs = _in_blocks(keys)
    near = _cosines(vectors, pairs)
    frame = pl.DataFrame({"place": range(len(titles)), "text": titles}, schema=_TITLES)
    with memory_database() as con, streamed(con, "pairs", pairs.with_columns(near=near)):
        put_rows(con, "titles", frame)
        limits = {"alike": _ALIKE, "near": _NEAR, "most": most}
        rows = con.execute(_KEPT, limits).fetchall()
    return [
        Pair(by_id[first], by_id[second], "alike", evidence=_evidence(by_id, *row))
        for row in rows
        for first, second in [row[:2]]
    ]


_TITLES = {"place": pl.Int64, "text": pl.String}


def _evidence(
    entities: Sequence[Entity], first: int, second: int, alike: float, near: float
) -> dict[str, object]:
    shared = shared_documents(entities[first], entities[second])
    return {"name": round(alike, 3), "vector": round(near, 3), "shared_documents": shared}


def _name_keys(entities: Sequence[Entity]) -> pl.DataFrame:
    """Return (key, place) of each key of each title."""
    rows = [
        (key, place)
        for place, entity in enumerate(entities)
        for key in (
            f"s:{entity.name.skeleton}" if entity.name.skeleton else "",
            f"w:{' '.join(sorted(entity.name.words))}",
            f"l:{entity.name.words[-1]}" if entity.name.words else "",
        )
        if key
    ]
    return pl.DataFrame(rows, schema={"key": pl.String, "place": pl.Int64}, orient="row")


def _vector_keys(vectors: Vectors) -> Iterator[pl.DataFrame]:
    random = np.random.default_rng(_SEED)
    powers = 1 << np.arange(_BITS)
    for band in range(_BANDS):
        planes = random.standard_normal((vectors.shape[1], _BITS)).astype(np.float32)
        codes = (vectors @ planes > 0) @ powers
        yield pl.DataFrame({"key": codes, "place": np.arange(len(vectors))}).select(
            key=pl.format("v{}:{}", pl.lit(band), pl.col("key")), place=pl.col("place")
        )


def _in_blocks(keys: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs (one, two) of places that share a block, each once."""
    blocked = keys.filter(pl.len().over("key").is_between(2, _BLOCK))
    return (
        blocked.join(blocked, "key", suffix="_two")
        .filter(pl.col("place") < pl.col("place_two"))
        .select(one="place", two="place_two")
        .unique()
        .sort("one", "two")
    )


def _cosines(vectors: Vectors, pairs: pl.DataFrame) -> pl.Series:
    first, second = pairs["one"].to_numpy(), pairs["two"].to_numpy()
    near = [
        np.einsum("ij,ij->i", vectors[first[i : i + _SLICE]], vectors[second[i : i + _SLICE]])
        for i in range(0, len(first), _SLICE)
    ]
    return pl.Series("near", np.concatenate(near) if near else [], dtype=pl.Float64)
