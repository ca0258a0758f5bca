"""The RAPTOR tree: summaries of like chunks, of like summaries, and so on, kept up to date.

Chunks are clustered by their vectors (``nested_mixtures``), each cluster is summarised, the
summaries are embedded and clustered in turn, up to ``hierarchies.raptor_layers`` times.

The mixtures of each layer are kept: rows that come are placed in the clusters there are, and a
cluster of the same texts as before keeps its node and its summary. So one more document changes the
clusters that its chunks join, and those above. Once more than a fifth of a layer's rows have
changed, that layer is clustered anew. What a removed document said goes with the summaries of its
clusters; mixtures keep no cluster without rows, and of the others weights, means and covariances.

Source: Sarthi et al., 2024, section 3; lengths, layers and limits as in their code. Departures: a
cluster of one row makes no node, for its summary would say the row again; two clusters of the same
texts are one node; a layer that would be no smaller than the one below it is not made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import polars as pl

from graphrag_pipeline.core import progress
from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.identity import content_hash, make_id
from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.llm.embedders import Embedder
from graphrag_pipeline.store.frames import put_rows
from graphrag_pipeline.store.index_store import (
    IndexStore,
    assign_identifiers,
    count_rows,
    get_meta,
    insert,
    replace_changed,
    replace_links,
    set_meta,
)
from graphrag_pipeline.store.vector_store import VectorStore
from graphrag_pipeline.structures.mixtures import Floats, Whole
from graphrag_pipeline.structures.nested_mixtures import NestedMixture
from graphrag_pipeline.structures.structure import Outcome
from graphrag_pipeline.systems.raptor.summaries import STAGE, Summariser, configured_summariser

DIMENSIONS = 10
"""Vectors are reduced to so many dimensions; a layer of hardly more rows is the top."""
MOST_CHANGED = 0.2
"""A layer is clustered anew once more than this share of its rows came or went since."""

_VERSION = "1"
_TABLE = "raptor_nodes"
_SEED = 224
_META = "raptor"
_INCOMPLETE = " incomplete"
_NODE = {"id": pl.String, "layer": pl.Int32, "text": pl.String, "n_tokens": pl.Int64,
         "n_children": pl.Int64, "written_by": pl.String}  # fmt: skip
_EDGE = {"node_id": pl.String, "child_id": pl.String}
_MIXTURE = {
    "layer": pl.Int32, "made_with": pl.String, "mixture": pl.Binary, "n_fitted": pl.Int64
}  # fmt: skip
_FITTED = {"layer": pl.Int32, "row_id": pl.String}


def update_tree(store: IndexStore, vectors: VectorStore, settings: Settings) -> Outcome:
    """Bring ``raptor_nodes`` and ``raptor_edges`` up to date with the chunks and their vectors.

    Tells how many nodes were ``summarised`` now, ``reused`` and ``failed``.
    Does nothing when these have not changed. A cluster whose summary a model failed to give has no
    node and is tried again by the next run. Raises StorageError where chunks lack their vectors,
    the model's error when no further call can succeed.
    """
    summariser, embedder = configured_summariser(settings), configured_embedder(settings)
    with store.read() as con:
        state = _state(con, settings)
        if get_meta(con, _META) == state:
            return _told(reused=count_rows(con, _TABLE))
        chunks = con.sql("SELECT id, text, n_tokens FROM chunks ORDER BY id").pl()
        nodes = con.sql(f"SELECT {', '.join(_NODE)} FROM raptor_nodes ORDER BY id").pl()
        fits = _kept_fits(con, _fitted_with(settings, embedder))
    rows = _rows_of(chunks, _vectors(vectors, embedder, "chunks"))
    of_nodes = _vectors(vectors, embedder, _TABLE)
    layers = list(_Builder(settings, summariser, embedder, nodes, of_nodes, fits).layers(rows))
    n_failed = sum(layer.failed for layer in layers)
    with store.transaction() as con:
        _store(con, layers, _fitted_with(settings, embedder))
        set_meta(con, _META, state + _INCOMPLETE if n_failed else state)
    new = sum(layer.new for layer in layers)
    all_nodes = sum(len(layer.nodes) for layer in layers)
    return _told(new, all_nodes - new, n_failed, sum(layer.refitted for layer in layers))


def _told(summarised: int = 0, reused: int = 0, failed: int = 0, refitted: int = 0) -> Outcome:
    facts = {"summarised": summarised, "reused": reused, "failed": failed}
    return Outcome({**facts, "layers_clustered_anew": refitted}, failed)


def tree_current(con: duckdb.DuckDBPyConnection, settings: Settings) -> bool:
    """Whether the tree is that of the chunks and their vectors, but for summaries that failed."""
    state = (get_meta(con, _META) or "").removesuffix(_INCOMPLETE)
    return state == _state(con, settings)


def forget_mixtures(con: duckdb.DuckDBPyConnection) -> None:
    """Let the next update cluster every layer anew."""
    con.execute("DELETE FROM staging.raptor_mixtures")
    con.execute("UPDATE meta SET value = '' WHERE key = ?", [_META])


def tree_version(settings: Settings) -> str:
    """Return what decides the tree besides the chunks and their vectors."""
    options = settings.hierarchies
    summariser = configured_summariser(settings)
    return fingerprint(
        _VERSION, summariser.version, options.raptor_layers, options.raptor_cluster_tokens
    )


@dataclass(frozen=True)
class _Rows:
    """The rows of a layer, which the one above is made from."""

    ids: list[str]
    texts: list[str]
    n_tokens: Whole
    vectors: Floats


@dataclass(frozen=True)
class _Fit:
    """Mixture of a layer: fitted to ``n_rows``, of which those ``fitted`` are still there."""

    mixture: NestedMixture
    n_rows: int
    fitted: frozenset[str]

    def outdated(self, ids: Sequence[str]) -> bool:
        n_gone = self.n_rows - len(self.fitted & set(ids))
        come = len(ids) - self.n_rows + n_gone
        return max(n_gone, come) > MOST_CHANGED * self.n_rows


@dataclass(frozen=True)
class _Layer:
    """A layer of summaries; ``new`` were written now, ``failed`` could not be.

    ``refitted`` says that the layer below was clustered anew, and not placed in ``fit``.
    """

    number: int
    nodes: pl.DataFrame
    edges: pl.DataFrame
    fit: _Fit
    new: int
    failed: int
    refitted: bool


class _Builder:
    """Makes layer upon layer, from what was made before as far as that is still right."""

    def __init__(
        self,
        settings: Settings,
        summariser: Summariser,
        embedder: Embedder,
        nodes: pl.DataFrame,
        vectors: tuple[list[str], Floats],
        fits: Mapping[int, _Fit],
    ) -> None:
        self._given = settings.hierarchies
        self._encoding = settings.chunks.encoding
        self._summariser = summariser
        self._embedder = embedder
        self._written = dict(zip(nodes["id"], nodes["text"], strict=True))
        self._vectors = dict(zip(*vectors, strict=True))
        self._fits = fits

    def layers(self, rows: _Rows) -> Iterator[_Layer]:
        """Yield the layers above these rows, from the lowest."""
        for number in range(1, self._given.raptor_layers + 1):
            if len(rows.ids) <= DIMENSIONS + 1:
                return
            earlier = self._fits.get(number)
            fit, clusters = self._clustered(rows, earlier)
            groups = self._groups(number, rows, clusters)
            if not 0 < len(groups) < len(rows.ids):
                return
            texts, n_new = self._summarised(rows, groups)
            layer = self._layer(number, rows, groups, texts)
            refitted = earlier is None or fit.fitted is not earlier.fitted
            yield _Layer(number, *layer, fit, n_new, len(groups) - len(texts), refitted)
            if layer[0].is_empty():
                return
            rows = self._next(layer[0])

    def _clustered(self, rows: _Rows, fit: _Fit | None) -> tuple[_Fit, list[Whole]]:
        if fit is None or fit.outdated(rows.ids):
            fit = _Fit(NestedMixture(), len(rows.ids), frozenset(rows.ids))
        mixture, clusters = fit.mixture.place(
            rows.vectors, rows.n_tokens, rows.ids,
            most_tokens=self._given.raptor_cluster_tokens, seed=_SEED, dimensions=DIMENSIONS,
        )  # fmt: skip
        return _Fit(mixture, fit.n_rows, fit.fitted), clusters

    def _groups(
        self, number: int, rows: _Rows, clusters: Sequence[Whole]
    ) -> dict[str, list[list[int]]]:
        """Return by node id the clusters of several rows: those of the same texts are one node."""
        hashes = [content_hash(text) for text in rows.texts]
        version = self._summariser.version
        groups: dict[str, list[list[int]]] = {}
        for cluster in clusters:
            places = sorted(cluster.tolist(), key=lambda place: (hashes[place], place))
            texts = list(dict.fromkeys(hashes[place] for place in places))
            if len(texts) > 1:
                groups.setdefault(make_id("raptor", number, version, *texts), []).append(places)
        return dict(sorted(groups.items()))

    def _summarised(
        self, rows: _Rows, groups: Mapping[str, list[list[int]]]
    ) -> tuple[dict[str, str], int]:
        """Return the text of each node that has one, and how many of them are new."""
        todo = [key for key in groups if key not in self._written]
        texts = [list(dict.fromkeys(rows.texts[p] for p in groups[key][0])) for key in todo]
        summaries = self._summariser.write(
            texts, lambda done, of: progress.report(STAGE, done, of + 1)
        )
        new = {key: text for key, text in zip(todo, summaries, strict=True) if text is not None}
        unchanged = {key: self._written[key] for key in groups if key in self._written}
        return unchanged | new, len(new)

    def _layer(
        self,
        number: int,
        rows: _Rows,
        groups: Mapping[str, list[list[int]]],
        texts: Mapping[str, str],
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        children = {
            key: sorted({rows.ids[place] for places in groups[key] for place in places})
            for key in sorted(texts)
        }
        texts_below = [texts[key] for key in children]
        nodes = pl.DataFrame(
            {
                "id": list(children),
                "layer": number,
                "text": texts_below,
                "n_tokens": count_tokens(texts_below, self._encoding),
                "n_children": [len(of) for of in children.values()],
                "written_by": self._summariser.written_by,
            },
            schema=_NODE,
        )
        edges = pl.DataFrame(
            {"node_id": list(children), "child_id": list(children.values())},
            schema={"node_id": pl.String, "child_id": pl.List(pl.String)},
        )
        return nodes, edges.explode("child_id")

    def _next(self, nodes: pl.DataFrame) -> _Rows:
        ids, texts = nodes["id"].to_list(), nodes["text"].to_list()
        new = [
            (key, text) for key, text in zip(ids, texts, strict=True) if key not in self._vectors
        ]
        if new:
            new_vectors = self._embedder.embed([text for _, text in new])
            self._vectors.update(zip((key for key, _ in new), new_vectors, strict=True))
        vectors = np.stack([self._vectors[key] for key in ids])
        return _Rows(ids, texts, nodes["n_tokens"].to_numpy(), vectors)


def _rows_of(chunks: pl.DataFrame, vectors: tuple[list[str], Floats]) -> _Rows:
    """Return chunks with their vectors, both of which are in the order of ids."""
    ids = chunks["id"].to_list()
    if ids != vectors[0]:
        raise StorageError(
            "vectors of chunks are behind the graph: run graphrag-pipeline index again"
        )
    return _Rows(ids, chunks["text"].to_list(), chunks["n_tokens"].to_numpy(), vectors[1])


def _vectors(vectors: VectorStore, embedder: Embedder, table: str) -> tuple[list[str], Floats]:
    """Return the ids of a vector table, ascending, and their vectors, if the embedder made them."""
    if vectors.embedder_name(table) != embedder.name:
        return [], np.empty((0, 0), np.float32)
    return vectors.newest(table).matrix(table)


def _kept_fits(con: duckdb.DuckDBPyConnection, made_with: str) -> dict[int, _Fit]:
    ids_of: dict[int, set[str]] = {}
    for layer, row_id in con.execute("FROM staging.raptor_fitted").fetchall():
        ids_of.setdefault(layer, set()).add(row_id)
    rows = con.execute(
        "SELECT layer, mixture, n_fitted FROM staging.raptor_mixtures WHERE made_with = ?",
        [made_with],
    )
    return {
        layer: _Fit(NestedMixture.from_bytes(data), n, frozenset(ids_of.get(layer, ())))
        for layer, data, n in rows.fetchall()
    }


def _store(con: duckdb.DuckDBPyConnection, layers: Sequence[_Layer], made_with: str) -> None:
    nodes = pl.concat([pl.DataFrame(schema=_NODE), *(layer.nodes for layer in layers)])
    edges = pl.concat([pl.DataFrame(schema=_EDGE), *(layer.edges for layer in layers)])
    put_rows(con, "raptor_new", nodes)
    put_rows(con, "raptor_new_edges", edges)
    assign_identifiers(con, "raptor_node", "SELECT id FROM raptor_new ORDER BY layer, id")
    con.execute(
        """CREATE OR REPLACE TEMP TABLE wanted_raptor AS
           SELECT n.id, human_readable_id, n.* EXCLUDE id FROM raptor_new n
           JOIN identifiers i ON i.id = n.id AND i.kind = 'raptor_node'"""
    )
    replace_changed(con, _TABLE, "wanted_raptor")
    replace_links(con, "raptor_edges", "raptor_new_edges", ("node_id", "child_id"))
    con.execute("DROP TABLE wanted_raptor")
    _store_fits(con, layers, made_with)


def _store_fits(con: duckdb.DuckDBPyConnection, layers: Sequence[_Layer], made_with: str) -> None:
    con.execute("DELETE FROM staging.raptor_mixtures; DELETE FROM staging.raptor_fitted")
    rows = [(x.number, made_with, x.fit.mixture.to_bytes(), x.fit.n_rows) for x in layers]
    insert(con, "staging.raptor_mixtures", pl.DataFrame(rows, schema=_MIXTURE, orient="row"))
    for layer in layers:
        below = "chunks" if layer.number == 1 else _TABLE
        ids = pl.DataFrame({"layer": layer.number, "row_id": sorted(layer.fit.fitted)}, _FITTED)
        insert(con, "staging.raptor_fitted", ids)
        con.execute(
            f"DELETE FROM staging.raptor_fitted WHERE layer = ? AND row_id NOT IN "
            f"(SELECT id FROM {below})",
            [layer.number],
        )


def _fitted_with(settings: Settings, embedder: Embedder) -> str:
    return fingerprint(_VERSION, settings.hierarchies.raptor_cluster_tokens, embedder.name)


def _state(con: duckdb.DuckDBPyConnection, settings: Settings) -> str:
    return f"{tree_version(settings)}:{get_meta(con, 'vectors:chunks')}"
