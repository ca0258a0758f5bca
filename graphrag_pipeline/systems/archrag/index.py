"""The C-HNSW of an index: built from two vector tables, kept in a table, opened by a release.

What is kept is a row per layer without the vectors, which LanceDB has: thirteen megabytes for
50,000 entities. So it is written in one transaction, goes into a release with its rows, is gone
with them, and needs no file of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from graphrag_pipeline.store.index_store import IndexStore, get_meta, insert, set_meta
from graphrag_pipeline.structures.structure import Outcome
from graphrag_pipeline.systems.archrag.chnsw import CommunityHnsw, Rows, StoredLayer

if TYPE_CHECKING:
    from graphrag_pipeline.store.vector_store import VectorSnapshot, VectorStore

_VERSION = "1"
_TABLES = ("entities", "attributed_communities")
_LEVELS = "SELECT id, level FROM attributed_communities WHERE full_content IS NOT NULL"
_LAYERS = "SELECT n_nodes, ids_hash, links, down FROM chnsw ORDER BY layer"
_COLUMNS = {"layer": int, "n_nodes": int, "ids_hash": str, "links": bytes, "down": bytes}


def update_chnsw(store: IndexStore, vectors: VectorStore) -> Outcome:
    """Bring the table ``chnsw`` up to date with the vectors; does nothing if these are the same.

    Tells the ``nodes`` of each layer, the lowest first, and whether it was ``built`` now.
    """
    import polars as pl

    with store.read() as con:
        if chnsw_current(con):
            return _told([row[0] for row in con.execute(_LAYERS).fetchall()], built=False)
        state = _state(con)
        levels = dict(con.execute(_LEVELS).fetchall())
    snapshot = vectors.newest(*_TABLES)
    layers_stored = CommunityHnsw.build(_layers(snapshot, levels)).stored()
    rows = [
        (layer, layer_rows.n_nodes, layer_rows.ids_hash, layer_rows.links, layer_rows.down)
        for layer, layer_rows in enumerate(layers_stored)
    ]
    with store.transaction() as con:
        con.execute("DELETE FROM chnsw")
        insert(con, "chnsw", pl.DataFrame(rows, schema=_COLUMNS, orient="row"))
        set_meta(con, "chnsw", state)
    return _told([layer_rows.n_nodes for layer_rows in layers_stored], built=True)


def _told(nodes: Sequence[int], *, built: bool) -> Outcome:
    return Outcome({"nodes": ", ".join(map(str, nodes)), "built": built})


def chnsw_current(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether the index was built from the vectors as they are."""
    return get_meta(con, "chnsw") == _state(con)


def open_chnsw(con: duckdb.DuckDBPyConnection, snapshot: VectorSnapshot) -> CommunityHnsw:
    """Return the index of a release from its rows and vectors.

    Raises StorageError where they do not belong together.
    """
    levels = dict(con.execute(_LEVELS).fetchall())
    layers = [StoredLayer(*row) for row in con.execute(_LAYERS).fetchall()]
    return CommunityHnsw.restored(layers, _layers(snapshot, levels))


def _layers(snapshot: VectorSnapshot, levels: dict[str, int]) -> list[Rows]:
    """Return entities, then the communities of each level."""
    ids, vectors = snapshot.matrix("attributed_communities")
    level_of = np.array([levels[key] for key in ids], np.int64)
    top = int(level_of.max(initial=0))
    places = (np.flatnonzero(level_of == level) for level in range(1, top + 1))
    above: list[Rows] = [([ids[place] for place in rows], vectors[rows]) for rows in places]
    return [snapshot.matrix("entities"), *above]


def _state(con: duckdb.DuckDBPyConnection) -> str:
    embedders = ((get_meta(con, f"vectors:{table}") or "").rsplit("@", 1)[0] for table in _TABLES)
    return "|".join([_VERSION, *embedders])
