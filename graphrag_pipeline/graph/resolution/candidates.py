"""Pairs that look alike, found in blocks so that the cost stays near-linear.

Titles share a block when they share a key: the last word, all words in any order, the consonants,
or some bits of their vectors (random hyperplanes: near vectors fall on the same sides; Charikar
2002, "Similarity Estimation Techniques from Rounding Algorithms"). Blocks above a size are left
out: what so many titles share tells none of them apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_pipeline.graph.resolution.blocks import Row, pair_row, put_pairs
from graphrag_pipeline.graph.resolution.names import conflict, take_apart
from graphrag_pipeline.graph.resolution.pairs import SHARED, Entity, Pair
from graphrag_pipeline.llm.embedders import Embedder, HashingEmbedder
from graphrag_pipeline.store.frames import drop_rows, put_rows
from graphrag_pipeline.store.index_store import insert

_BLOCK = 12
_BANDS = 6
_BITS = 14
_SEED = 7
_SLICE = 4_096
_PAIRS = 8_192
_ALIKE = 0.92
_NEAR = 0.8
_DIGITS = 6
Halves = npt.NDArray[np.float16]
"""Vectors in half precision, one a row."""
ALIKE = "alike"
"""The rule of a pair that nothing speaks against but that nothing joins."""

_BLOCKS = f"""
CREATE OR REPLACE TEMP TABLE alike_blocks AS
SELECT b.kind, b.key, b.n_before, count(k.id) AS n FROM named_blocks b
LEFT JOIN staging.resolution_keys k ON k.kind = b.kind AND k.key = b.key
WHERE b.kind NOT IN ('spelling', 'plural', 'last', 'acronym', 'initials') GROUP BY ALL;

DELETE FROM staging.resolution_pairs p USING alike_blocks b
WHERE p.kind = b.kind AND p.key = b.key AND (
    b.n > {_BLOCK} OR p.one_id IN (SELECT id FROM changed) OR p.two_id IN (SELECT id FROM changed));

CREATE OR REPLACE TEMP TABLE alike_candidates AS
WITH few AS (FROM alike_blocks WHERE n BETWEEN 2 AND {_BLOCK}),
members AS (
    SELECT few.*, k.id, k.id IN (SELECT id FROM changed) AS is_new
    FROM few JOIN staging.resolution_keys k ON k.kind = few.kind AND k.key = few.key)
SELECT a.kind, a.key, a.id AS one, b.id AS two
FROM members a JOIN members b ON a.kind = b.kind AND a.key = b.key AND a.id < b.id
WHERE a.is_new OR b.is_new OR a.n_before > {_BLOCK};

CREATE OR REPLACE TEMP TABLE alike_pairs AS
SELECT one, two, row_number() OVER (ORDER BY one, two) - 1 AS place
FROM (SELECT DISTINCT one, two FROM alike_candidates);
"""
_TITLES = """
SELECT id, title FROM staging.resolution_names
WHERE id IN (SELECT unnest([one, two]) FROM alike_pairs) ORDER BY id
"""
_PLACED = """
SELECT p.place, a.at AS one, b.at AS two FROM alike_pairs p
JOIN vector_places a ON a.id = p.one JOIN vector_places b ON b.id = p.two ORDER BY place
"""
_KEPT = f"""
CREATE OR REPLACE TEMP TABLE alike_kept AS
SELECT * FROM (
    SELECT p.one, p.two, s.near, round(jaro_winkler_similarity(a.words, b.words), {_DIGITS})
               AS alike, abs(length(a.words) - length(b.words)) AS longer,
           a.title AS one_title, a.type AS one_type, b.title AS two_title, b.type AS two_type
    FROM alike_pairs p JOIN nearness s USING (place)
    JOIN staging.resolution_names a ON a.id = p.one JOIN staging.resolution_names b ON b.id = p.two)
WHERE (alike >= {_ALIKE} AND longer < 6) OR near >= {_NEAR}
"""
_FOUND = """
SELECT c.kind, c.key, k.* FROM alike_candidates c JOIN alike_kept k USING (one, two) ORDER BY ALL
"""


class TitleVectors:
    """Vectors of titles in half precision; where making one takes long, they are kept.

    ``ahead`` are some, by title, that were made before the index was opened. What is computed of
    them is computed in double precision, so that it does not depend on what is computed with it.
    """

    def __init__(
        self, con: duckdb.DuckDBPyConnection, embedder: Embedder, ahead: Mapping[str, Halves]
    ) -> None:
        self._con, self._embedder, self._ahead = con, embedder, ahead
        self._parts: list[Halves] = []
        self._places: dict[str, int] = {}

    def add_codes(self, rows: pl.DataFrame) -> None:
        """Embed a slice of renamed titles; put the bits of their vectors in ``new_keys``."""
        opened = rows.filter("is_open")
        for part in opened.iter_slices(_SLICE):
            vectors = self._add(part, self._made(part["title"].to_list()))
            if is_slow(self._embedder):
                self._keep(part["id"].to_list(), vectors)
            random = np.random.default_rng(_SEED)
            powers = 1 << np.arange(_BITS)
            exact = vectors.astype(np.float64)
            for band in range(_BANDS):
                planes = random.standard_normal((exact.shape[1], _BITS))
                codes = pl.Series((exact @ planes > 0) @ powers).cast(pl.String)
                keys = part.select("id", kind=pl.lit(f"v{band}")).with_columns(key=codes)
                insert(self._con, "new_keys", keys)

    def add(self, rows: pl.DataFrame) -> None:
        """Get the vectors of (id, title) that are not there yet."""
        missing = rows.filter(~pl.col("id").is_in([*self._places]))
        for part in missing.iter_slices(_SLICE):
            kept = self._kept(part["id"].to_list()) if is_slow(self._embedder) else {}
            known = part["id"].is_in([*kept])
            if not known.all():
                rest = part.filter(~known)
                self._add(rest, self._made(rest["title"].to_list()))
            if kept:
                self._add(
                    part.filter(known), np.stack([kept[id] for id in part["id"] if id in kept])
                )

    def placed(self) -> pl.DataFrame:
        """Return the pairs to look at (place, one, two), as places of vectors."""
        ids = pl.DataFrame({"id": [*self._places]}, schema={"id": pl.String})
        put_rows(self._con, "vector_places", ids.with_row_index("at"))
        pairs = self._con.sql(_PLACED).pl()
        drop_rows(self._con, "vector_places")
        return pairs

    def cosines(self, pairs: pl.DataFrame) -> pl.Series:
        """Return the cosine of each pair (one, two) of places of vectors."""
        first, second = (self._exact(pairs[side].to_numpy()) for side in ("one", "two"))
        return pl.Series("near", np.round(np.einsum("ij,ij->i", first, second), _DIGITS))

    def _exact(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        ends = np.cumsum([len(part) for part in self._parts])
        part_of = np.searchsorted(ends, places, side="right")
        rows = np.empty((len(places), self._parts[0].shape[1]))
        for number in np.unique(part_of):
            which = part_of == number
            part = self._parts[number]
            rows[which] = part[places[which] - (ends[number] - len(part))]
        return rows

    def _add(self, rows: pl.DataFrame, vectors: Halves) -> Halves:
        start = len(self._places)
        self._places.update((id, start + place) for place, id in enumerate(rows["id"]))
        self._parts.append(vectors)
        return vectors

    def _made(self, titles: Sequence[str]) -> Halves:
        missing = [title for title in titles if title not in self._ahead]
        made = dict(zip(missing, halved(self._embedder, missing), strict=True)) if missing else {}
        return np.stack([made[t] if t in made else self._ahead[t] for t in titles])

    def _keep(self, ids: Sequence[str], vectors: Halves) -> None:
        rows = pl.DataFrame({"id": ids, "vector": [row.tobytes() for row in vectors]})
        insert(self._con, "staging.resolution_vectors", rows)

    def _kept(self, ids: Sequence[str]) -> dict[str, Halves]:
        rows = self._con.execute(
            "SELECT id, vector FROM staging.resolution_vectors WHERE id IN (SELECT unnest(?))",
            [ids],
        )
        return {id: np.frombuffer(vector, np.float16) for id, vector in rows.fetchall()}


def is_slow(embedder: Embedder) -> bool:
    """Whether a title's vector takes so long to make that it is kept."""
    return not isinstance(embedder, HashingEmbedder)


def halved(embedder: Embedder, titles: Sequence[str]) -> Halves:
    """Return the vectors of titles in half precision."""
    return embedder.embed(titles).astype(np.float16)


def find_alike(con: duckdb.DuckDBPyConnection, vectors: TitleVectors) -> None:
    """Put pairs of open titles that look alike, in blocks whose titles changed, among the pairs."""
    con.execute(_BLOCKS)
    vectors.add(con.execute(_TITLES).pl())
    con.execute("CREATE OR REPLACE TEMP TABLE nearness (place BIGINT, near DOUBLE)")
    for part in vectors.placed().iter_slices(_PAIRS):
        near = part.select("place").with_columns(near=vectors.cosines(part))
        insert(con, "nearness", near)
    con.execute(_KEPT)
    put_pairs(con, [_row(*row) for row in con.execute(_FOUND).fetchall()])


def _row(
    kind: str, key: str, one: str, two: str, near: float, alike: float, _: int, *names: str
) -> Row:
    first = Entity(one, take_apart(names[0], names[1]))
    second = Entity(two, take_apart(names[2], names[3]))
    evidence = {"name": round(alike, 3), "vector": round(near, 3), **SHARED}
    why = conflict(first.name, second.name) or ALIKE
    return pair_row(kind, key, Pair(first, second, why, evidence=evidence), max(alike, near))
