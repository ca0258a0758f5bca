"""Entities that are alike by vector although nothing links them: ArchRAG's augmented graph.

Source: Wang et al., 2025 (ArchRAG), "LLM-based hierarchical clustering": entities are linked if
they are alike, by their k nearest neighbours, k the mean degree, and every edge weighs how much its
ends are alike. As in the authors' code a pair must be more alike than 70 of 100 pairs that have a
relationship (``SHARE``), and half as many neighbours again are looked at (``WIDER``), for some are
linked already. The weight is the cosine, as in the text and the code; line 5 of Algorithm 1 has
1 - cos, by which Leiden would put together what is least alike.

Each entity's own nearest are kept: after a change only entities that changed, or lost one of their
nearest, are searched for again, and the others are compared with those that changed. Up to
:data:`EXACT_PAIRS` comparisons a search is exact, and what comes out is what a search of everything
gives, but for ties. Beyond, FAISS's HNSW searches, so that the cost is near-linear.
"""

from __future__ import annotations

import duckdb
import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_pipeline.core.arrays import distinct
from graphrag_pipeline.store.frames import put_rows
from graphrag_pipeline.store.hashing import rows_hash
from graphrag_pipeline.store.index_store import (
    IndexStore,
    get_meta,
    replace_links,
    set_meta,
)
from graphrag_pipeline.store.vector_store import VectorStore
from graphrag_pipeline.structures.cosines import PAIRS, nearest_of_each, similarities
from graphrag_pipeline.structures.structure import Outcome
from graphrag_pipeline.systems.archrag.chnsw import Vectors, layer_graph

SHARE = 0.7
WIDER = 1.5
EXACT_PAIRS = 100_000_000
"""Up to so many comparisons all are made (10,000 entities with each other: seconds of CPU)."""

_VERSION = "1"
_FEW_ROWS = 2000
_EF = 40
_ENTITIES = """
SELECT id, left(sha256(title || chr(10) || description), 16) AS text_hash FROM entities ORDER BY id
"""
_LINKS = "SELECT source_id, target_id FROM relationships ORDER BY ALL"

Places = npt.NDArray[np.int64]


def update_similarity(store: IndexStore, vectors: VectorStore) -> Outcome:
    """Bring ``similarity_edges`` up to date with entities, their vectors and relationships.

    Tells how many entities were ``searched`` for, and where any was, k as ``neighbours``, and the
    cosine that a pair must exceed as ``threshold``.
    """
    with store.read() as con:
        if similarity_current(con):
            return Outcome({"searched": 0})
        state = _state(con)
        entities, links = con.sql(_ENTITIES).pl(), con.sql(_LINKS).pl()
        searched = con.sql("FROM staging.similarity_searched").pl()
        neighbours = con.sql("FROM staging.similarity_nearest").pl()
        embedder = _vectors_state(con).rsplit(":", 2)[0]
        made_by = get_meta(con, "similarity_searched")
    ids = entities["id"]
    matrix = entity_vectors(vectors, ids)
    ends = places_of(ids, links)
    k = mean_degree(ends)
    search = f"{_VERSION}:{k}:{embedder}"
    if made_by != search:
        searched, neighbours = searched.clear(), neighbours.clear()
    n, near = _nearest(entities, searched, neighbours, matrix, k)
    threshold = least_similarity(matrix, ends)
    edges = _named(ids, similar_pairs(ends, near, k, threshold))
    with store.transaction() as con:
        put_rows(con, "wanted_edges", edges)
        put_rows(con, "wanted_nearest", _named(ids, near))
        put_rows(con, "wanted_searched", entities.rename({"id": "entity_id"}))
        pair_columns = ("source_id", "target_id")
        replace_links(con, "similarity_edges", "wanted_edges", pair_columns)
        replace_links(con, "staging.similarity_nearest", "wanted_nearest", pair_columns)
        replace_links(con, "staging.similarity_searched", "wanted_searched", ("entity_id",))
        set_meta(con, "similarity_edges", state)
        set_meta(con, "similarity_searched", search)
    return Outcome({"neighbours": k, "threshold": threshold, "searched": n})


def similarity_current(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether ``similarity_edges`` are those of the graph and the vectors as they are."""
    return get_meta(con, "similarity_edges") == _state(con)


def entity_vectors(vectors: VectorStore, ids: pl.Series) -> Vectors:
    """Return the vectors of entities, of length one, in the order of ``ids``, a row each."""
    return unit(vectors.of("entities", ids))


def unit(rows: Vectors) -> Vectors:
    """Return rows of length one; those of length zero stay."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.ascontiguousarray(rows / np.where(length > 0, length, 1), np.float32)


def places_of(ids: pl.Series, links: pl.DataFrame) -> tuple[Places, Places]:
    """Return the places in ``ids``, ascending, of the ends of (source_id, target_id)."""
    sorted_ids = ids.to_numpy()
    return tuple(np.searchsorted(sorted_ids, links[end].to_numpy()) for end in links.columns[:2])  # type: ignore[return-value]


def mean_degree(ends: tuple[Places, Places]) -> int:
    """Return the mean degree of the nodes that have edges, rounded down; 0 if none has."""
    nodes = distinct(np.concatenate(ends))
    return 2 * len(ends[0]) // len(nodes) if len(nodes) else 0


def least_similarity(vectors: Vectors, ends: tuple[Places, Places]) -> float:
    """Return the cosine that :data:`SHARE` of the linked pairs do not exceed, 1 without any."""
    cosines = similarities(vectors, *ends)
    return float(np.quantile(cosines, SHARE)) if len(cosines) else 1.0


def similar_pairs(
    ends: tuple[Places, Places], near: pl.DataFrame, k: int, threshold: float
) -> pl.DataFrame:
    """Return the pairs (source, target, similarity), each once, that are to join linked ones.

    ``near`` has each node's nearest. Of those that are not linked and more alike than
    ``threshold`` the first ``k`` are taken.
    """
    pairs = pl.DataFrame({"source": np.minimum(*ends), "target": np.maximum(*ends)})
    low, high = pl.min_horizontal("source", "target"), pl.max_horizontal("source", "target")
    apart = (
        near.filter(pl.col("similarity") > threshold)
        .with_columns(low=low, high=high)
        .join(pairs, left_on=["low", "high"], right_on=["source", "target"], how="anti")
    )
    first = nearest_of_each(apart, k).select(source="low", target="high", similarity="similarity")
    return first.unique().sort("source", "target")


def nearest(vectors: Vectors, rows: Places, among: Places, n: int) -> pl.DataFrame:
    """Return (source, target, similarity) of the ``n`` nearest ``among`` rows to each of ``rows``.

    A row is not near itself.
    """
    n_asked = min(n + 1, len(among))
    if not (len(rows) and n_asked):
        return pl.DataFrame(schema=PAIRS)
    if len(rows) * len(among) <= EXACT_PAIRS or len(rows) <= _FEW_ROWS:
        import faiss

        metric = faiss.METRIC_INNER_PRODUCT
        neighbours = faiss.knn(
            vectors[rows], np.ascontiguousarray(vectors[among]), n_asked, metric
        )[1]
    else:
        graph = layer_graph(vectors[among], ef_construction=_EF)
        graph.hnsw.efSearch = max(_EF, 2 * n_asked)
        neighbours = graph.search(np.ascontiguousarray(vectors[rows]), n_asked)[1]
    source, target = np.repeat(rows, n_asked), neighbours.ravel()
    source, target = source[target >= 0], among[target[target >= 0]]
    apart = source != target
    source, target = source[apart], target[apart]
    cosines = similarities(vectors, source, target)
    return nearest_of_each(pl.DataFrame([source, target, cosines], schema=PAIRS), n)


def _nearest(
    entities: pl.DataFrame,
    searched: pl.DataFrame,
    before: pl.DataFrame,
    vectors: Vectors,
    k: int,
) -> tuple[int, pl.DataFrame]:
    """Return how many entities were searched for, and each one's nearest."""
    n = int(k * WIDER) + 1
    place = entities.select("id").with_row_index("place").cast({"place": pl.Int64})
    searched = searched.rename({"entity_id": "id"})
    new = entities.join(searched, on=["id", "text_hash"], how="anti")
    changed_places = new.join(place, on="id")["place"].to_numpy()
    numbered = (
        before.join(place.rename({"place": "source"}), left_on="source_id", right_on="id")
        .join(place.rename({"place": "target"}), left_on="target_id", right_on="id", how="left")
        .select(list(PAIRS))
    )
    lost_rows = numbered.filter(pl.col("target").is_null() | pl.col("target").is_in(changed_places))
    again = np.union1d(changed_places, lost_rows["source"].to_numpy())
    everything = np.arange(len(entities))
    places_kept = np.setdiff1d(everything, again)
    near = pl.concat(
        [
            numbered.filter(~pl.col("source").is_in(again)),
            nearest(vectors, places_kept, changed_places, n),
            nearest(vectors, again, everything, n),
        ]
    )
    return len(again), nearest_of_each(near, n)


def _named(ids: pl.Series, pairs: pl.DataFrame) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "source_id": ids.gather(pairs["source"]),
            "target_id": ids.gather(pairs["target"]),
            "similarity": pairs["similarity"],
        }
    )


def _state(con: duckdb.DuckDBPyConnection) -> str:
    """Return what the edges depend on: version, embedder, texts, and relationships."""
    ends = rows_hash("relationships", "source_id, target_id")
    row = con.execute(f"SELECT {ends}").fetchone()
    return f"{_VERSION}|{_vectors_state(con)}|{row}"


def _vectors_state(con: duckdb.DuckDBPyConnection) -> str:
    """Return the embedder and a hash of the texts that the vectors of entities are of."""
    return (get_meta(con, "vectors:entities") or "").rsplit("@", 1)[0]
