"""Names that may stand for two things: how many there are, counted when a release is published.

The view ``homonyms`` lists them, which takes seconds in a large index. The rule is the same here:
two documents of a name belong together where a neighbour of it in the one is, or is related to, a
neighbour in the other; a name whose documents fall apart may be two.
"""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import polars as pl

_MAY_BE_TWO = """
SELECT hash(id) AS entity FROM entities WHERE degree > 3 AND type NOT IN ('CONCEPT', 'DATE', 'GEO')
"""
"""Two things of a name have two neighbours each at least, and none in common."""
_RELATIONSHIPS = """
SELECT hash(id) AS relationship, hash(source_id) AS source, hash(target_id) AS target
FROM relationships
"""
_SUPPORTS = """
SELECT hash(relationship_id) AS relationship, hash(chunk_id) AS chunk FROM relationship_chunks
"""
_CHUNKS = "SELECT hash(id) AS chunk, hash(document_id) AS document FROM chunks"
_FEWEST, _MOST = 2, 20


def count_homonyms(con: duckdb.DuckDBPyConnection) -> int:
    """Return the number of rows of the view ``homonyms``, from the tables of an index."""
    relationships = con.execute(_RELATIONSHIPS).pl()
    few = _by_document(con, relationships)
    parts = _parts(few.height, _meeting(few, relationships))
    n_parts = few.select("entity", part=parts).group_by("entity").agg(pl.col("part").n_unique())
    return n_parts.filter(pl.col("part") > 1).height


def _by_document(con: duckdb.DuckDBPyConnection, relationships: pl.DataFrame) -> pl.DataFrame:
    """Return a row, numbered ``place``, for each document in which an entity has neighbours."""
    supports, chunks = con.execute(_SUPPORTS).pl(), con.execute(_CHUNKS).pl()
    found = supports.join(chunks, on="chunk").select("relationship", "document").unique()
    found = found.join(relationships, on="relationship")
    ends = [
        found.select("document", entity="source", neighbor="target"),
        found.select("document", entity="target", neighbor="source"),
    ]
    met = pl.concat(ends).join(con.execute(_MAY_BE_TWO).pl(), on="entity", how="semi")
    met = (
        met.group_by("entity", "document").agg("neighbor").filter(pl.col("neighbor").list.len() > 1)
    )
    return met.filter(pl.len().over("entity").is_between(_FEWEST, _MOST)).with_row_index("place")


def _meeting(few: pl.DataFrame, relationships: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs of places, of one entity each, whose neighbours are or know each other."""
    rows = few.select("place", "entity", "neighbor").explode("neighbor")
    pairs = rows.join(rows, on="entity", suffix="_other")
    pairs = pairs.filter(pl.col("place") < pl.col("place_other"))
    one, other = pl.col("neighbor"), pl.col("neighbor_other")
    # A sum of two hashes stands for both in either order.
    related = (relationships["source"] + relationships["target"]).implode()
    met = pairs.filter((one == other) | (one + other).is_in(related))
    return met.select("place", "place_other").unique()


def _parts(n_places: int, meeting: pl.DataFrame) -> pl.Series:
    """Return for each place the first of the places that it is connected with."""
    one, other = meeting["place"].to_numpy(), meeting["place_other"].to_numpy()
    first = np.arange(n_places)
    while True:
        nearer: np.ndarray[Any, np.dtype[np.int64]] = first.copy()
        np.minimum.at(nearer, one, first[other])
        np.minimum.at(nearer, other, first[one])
        if np.array_equal(nearer, first):
            return pl.Series(first)
        first = nearer
