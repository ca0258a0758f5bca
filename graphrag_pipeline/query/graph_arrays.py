"""The graph of a release as arrays: loaded once, by whole columns, and walked without rows.

Nodes are numbered: entities from 0 by id, then chunks by id, then names by id, which rules find in
chunks and which are no entities of the model or the import that gave the graph. Edges come in
kinds, loaded when first asked for, so that each method combines those that its paper has.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.store.held_vectors import places_of

if TYPE_CHECKING:
    import pyarrow as pa
    from scipy.sparse import csr_array

Numbers: TypeAlias = npt.NDArray[np.integer[Any]]
Weights: TypeAlias = npt.NDArray[np.floating[Any]]

_NAMES = """
SELECT DISTINCT coalesce(canonical_id, entity_id) AS id, chunk_id
FROM chunk_names LEFT JOIN entity_aliases USING (entity_id)
"""
_NODES = """
SELECT id, (row_number() OVER (ORDER BY part, id) - 1)::INTEGER AS node, part
FROM (SELECT id, 0 AS part FROM entities UNION ALL SELECT id, 1 FROM chunks UNION ALL
      SELECT DISTINCT id, 2 FROM ({names}) ANTI JOIN entities USING (id))
"""
_NO_NAMES = "SELECT '' AS id, '' AS chunk_id LIMIT 0"

EDGE_KINDS: Mapping[str, str] = {
    "relationships": """
        SELECT source_id AS one, target_id AS two, weight, id FROM relationships""",
    "links": """
        SELECT source_id AS one, target_id AS two, 1 AS weight, id FROM relationships""",
    "facts": """
        SELECT source_id AS one, target_id AS two, coalesce(count, 1) AS weight, r.id
        FROM relationships r LEFT JOIN (
            SELECT relationship_id, sum(n_mentions) AS count FROM relationship_chunks GROUP BY ALL
        ) ON relationship_id = r.id""",
    "mentions": """
        SELECT DISTINCT entity_id AS one, chunk_id AS two, 1 AS weight, chunk_id AS id
        FROM entity_chunks""",
    "names": """
        SELECT n.id AS one, n.chunk_id AS two, 1 AS weight, n.chunk_id AS id FROM ({names}) n
        ANTI JOIN entity_chunks m ON m.entity_id = n.id AND m.chunk_id = n.chunk_id""",
    "synonyms": """
        SELECT least(source_id, target_id) AS one, greatest(source_id, target_id) AS two,
               max(similarity) AS weight, one AS id
        FROM synonym_edges GROUP BY ALL""",
    "identities": """
        SELECT DISTINCT least(source_id, target_id) AS one, greatest(source_id, target_id) AS two,
               1 AS weight, one AS id
        FROM synonym_edges WHERE similarity >= 0.9""",
    "statements": """
        SELECT source_id AS one, target_id AS two, n_mentions AS weight, id FROM facts""",
}
"""What each kind of edge is made of: its two nodes, its weight and the row it stands for.

``relationships`` weigh what the index says, ``links`` are the same, each by 1, ``facts`` are the
same pairs by how many mentions support each, ``mentions`` join an entity to the chunks that mention
it, each by 1, ``names`` those and other names to the chunks in which rules, but not a model, find
them. ``statements`` are the rows of the view ``facts``, whoever found them, by how often
each is made. ``synonyms`` join entities of like titles, by their similarity; ``identities`` those
of a similarity of 0.9 or more, each by 1.
"""

_EDGES = """
WITH nodes AS ({nodes}), edges AS ({edges})
SELECT one.node AS one, two.node AS two, weight::FLOAT AS weight, encode(e.id) AS id
FROM edges e JOIN nodes one ON one.id = e.one JOIN nodes two ON two.id = e.two
WHERE weight > 0 AND one.node <> two.node ORDER BY e.id, 1, 2
"""


@dataclass(frozen=True)
class Edges:
    """Undirected edges, each once: ``one[i]`` and ``two[i]`` are joined by ``weight[i]``.

    ``ids`` (bytes) are the rows they stand for, by which they are sorted.
    """

    one: npt.NDArray[np.int32]
    two: npt.NDArray[np.int32]
    weight: npt.NDArray[np.float32]
    ids: npt.NDArray[np.bytes_]


@dataclass(frozen=True)
class Adjacency:
    """A weighted undirected graph: each edge from both its ends, by rows (CSR).

    The neighbours of node ``i`` are ``neighbours[offsets[i]:offsets[i + 1]]``, ascending, none
    twice, joined to it by ``weights`` at the same places.
    """

    offsets: npt.NDArray[np.int64]
    neighbours: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.offsets) - 1

    @cached_property
    def strengths(self) -> npt.NDArray[np.float64]:
        """The summed weights at each node; 0 where it has no neighbour."""
        return _summed(self.rows, self.weights, self.n_nodes)

    @cached_property
    def rows(self) -> npt.NDArray[np.int32]:
        """The node whose row each neighbour stands in."""
        counts = np.diff(self.offsets)
        return np.repeat(np.arange(self.n_nodes, dtype=np.int32), counts)

    def step(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return scores passed on along edges, each node's in proportion to their weights."""
        return self._transitions @ scores

    @cached_property
    def _transitions(self) -> csr_array:
        from scipy.sparse import csr_array

        shares = self.weights / self.strengths[self.neighbours]
        return csr_array((shares, self.neighbours, self.offsets), (self.n_nodes, self.n_nodes))

    def neighbours_of(self, nodes: Numbers) -> npt.NDArray[np.int32]:
        """Return the distinct neighbours of nodes, ascending."""
        if len(nodes) == 1:
            return self.around(int(nodes[0]))
        return np.unique(self.rows_of(nodes)[1])

    def around(self, node: int) -> npt.NDArray[np.int32]:
        """Return the neighbours of one node, ascending."""
        return self.neighbours[self.offsets[node] : self.offsets[node + 1]]

    def rows_of(self, nodes: Numbers) -> tuple[Numbers, npt.NDArray[np.int32]]:
        """Return the rows of nodes one after the other: the node of each, and the neighbour."""
        starts = self.offsets[nodes]
        counts = self.offsets[nodes + 1] - starts
        within = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        return np.repeat(nodes, counts), self.neighbours[np.repeat(starts, counts) + within]


class GraphArrays:
    """The nodes of a release and its edges by kind. Safe to use from several threads.

    ``read`` runs one of the project's own queries and returns its columns.
    """

    def __init__(self, read: Callable[[str], pa.Table]) -> None:
        self._read = read
        self._lock = threading.RLock()
        self._edges: dict[str, Edges] = {}
        self._adjacency: dict[tuple[str, ...], Adjacency] = {}
        self._names = _NAMES if _has_names(read) else _NO_NAMES
        self._nodes = _NODES.format(names=self._names)
        nodes = read(f"SELECT encode(id) AS id, part FROM ({self._nodes}) ORDER BY node")
        self.ids = _bytes(nodes, "id")
        self.n_nodes = len(self.ids)
        self.n_entities, self.n_chunks, _ = np.bincount(nodes["part"].to_numpy(), minlength=3)
        self._of_entities = slice(0, self.n_entities)
        self._of_chunks = slice(self.n_entities, self.n_entities + self.n_chunks)
        self._of_names = slice(self.n_entities + self.n_chunks, self.n_nodes)

    @cached_property
    def chunk_counts(self) -> npt.NDArray[np.int64]:
        """How many chunks mention each entity, by entity."""
        return np.bincount(self.edges("mentions").one, minlength=self.n_entities)

    @cached_property
    def specificity(self) -> npt.NDArray[np.float64]:
        """1 / number of chunks that mention it for each entity, 0 for all other nodes.

        Source: node specificity, Gutiérrez et al., HippoRAG, 2024, section 2.3.
        """
        return _inverse(np.pad(self.chunk_counts, (0, self.n_nodes - self.n_entities)))

    @cached_property
    def specificity_of_names(self) -> npt.NDArray[np.float64]:
        """1 / number of chunks that mention or, by rule, name it for each entity and name."""
        ends = np.concatenate([self.edges(kind).one for kind in ("mentions", "names")])
        return _inverse(np.bincount(ends, minlength=self.n_nodes))

    def edges(self, kind: str) -> Edges:
        """Return the edges of a kind of :data:`EDGE_KINDS`."""
        with self._lock:
            if kind not in self._edges:
                edges = EDGE_KINDS[kind].format(names=self._names)
                table = self._read(_EDGES.format(nodes=self._nodes, edges=edges))
                first, second, weight = (table[n].to_numpy() for n in ("one", "two", "weight"))
                self._edges[kind] = Edges(first, second, weight, _bytes(table, "id"))
            return self._edges[kind]

    def adjacency(self, *kinds: str) -> Adjacency:
        """Return the graph of some kinds of edges; weights between the same two nodes add up."""
        key = tuple(sorted(kinds))
        with self._lock:
            if key not in self._adjacency:
                parts = [self.edges(kind) for kind in key]
                self._adjacency[key] = join_edges(self.n_nodes, parts)
            return self._adjacency[key]

    def entity_nodes(self, ids: Iterable[str]) -> npt.NDArray[np.int64]:
        """Return the nodes of entities, in their order; ids that are none are left out."""
        places, is_node = places_of(self.ids[self._of_entities], ids)
        return places[is_node]

    def chunk_nodes(self, ids: Iterable[str]) -> npt.NDArray[np.int64]:
        """Return the nodes of chunks, in their order; ids that are none are left out."""
        places, is_node = places_of(self.ids[self._of_chunks], ids)
        return self.n_entities + places[is_node]

    def weigh_entities(self, weights: Mapping[str, float]) -> npt.NDArray[np.float64]:
        """Return weights of entities, by id, as one weight for each node."""
        return self._weigh(weights, self._of_entities)

    def weigh_names(self, weights: Mapping[str, float]) -> npt.NDArray[np.float64]:
        """Return weights of names that are no entities, by the id of an entity so called."""
        return self._weigh(weights, self._of_names)

    def weigh_chunks(self, weights: Mapping[str, float]) -> npt.NDArray[np.float64]:
        """Return weights of chunks, by id, as one weight for each node."""
        return self._weigh(weights, self._of_chunks)

    def weigh_ends(self, kind: str, weights: Mapping[str, float]) -> npt.NDArray[np.float64]:
        """Return weights of edges of a kind, by id, summed at the nodes each joins."""
        edges = self.edges(kind)
        places, is_edge = places_of(edges.ids, weights)
        edge_weights = np.fromiter(weights.values(), float, len(weights))[is_edge]
        ends = np.concatenate([edges.one[places[is_edge]], edges.two[places[is_edge]]])
        return _summed(ends, np.concatenate([edge_weights, edge_weights]), self.n_nodes)

    def best_entities(self, scores: Weights, k: int) -> dict[str, float]:
        """Rank the ``k`` entities with the highest score among nodes; none with 0, ties by id."""
        return _best(self.ids[self._of_entities], scores[self._of_entities], k)

    def best_chunks(self, scores: Weights, k: int) -> dict[str, float]:
        """Rank the ``k`` chunks with the highest score among nodes; none with 0, ties by id."""
        return _best(self.ids[self._of_chunks], scores[self._of_chunks], k)

    def ids_of(self, nodes: Numbers) -> list[str]:
        """Return the ids of nodes, entities or chunks, in their order."""
        return [key.decode() for key in self.ids[nodes].tolist()]

    def _weigh(self, weights: Mapping[str, float], part: slice) -> npt.NDArray[np.float64]:
        spread = np.zeros(self.n_nodes)
        places, is_node = places_of(self.ids[part], weights)
        spread[part][places[is_node]] = np.fromiter(weights.values(), float, len(weights))[is_node]
        return spread


def _has_names(read: Callable[[str], pa.Table]) -> bool:
    """Whether a release has names; one published by an older program has not."""
    return len(read("SELECT 1 FROM duckdb_tables() WHERE table_name = 'chunk_names' LIMIT 1")) > 0


def _inverse(counts: Numbers) -> npt.NDArray[np.float64]:
    return np.divide(1.0, counts, out=np.zeros(len(counts)), where=counts > 0)


def join_edges(n_nodes: int, parts: Iterable[Edges]) -> Adjacency:
    """Return the graph of several lists of edges; weights between the same two nodes add up."""
    edge_sets = list(parts)
    first = np.concatenate([edges.one for edges in edge_sets]).astype(np.int64)
    second = np.concatenate([edges.two for edges in edge_sets]).astype(np.int64)
    weight = np.concatenate([edges.weight for edges in edge_sets])
    places, where = np.unique(
        np.concatenate([first * n_nodes + second, second * n_nodes + first]), return_inverse=True
    )
    summed = _summed(where, np.concatenate([weight, weight]), len(places))
    rows = places // max(1, n_nodes)
    return Adjacency(
        offsets=np.searchsorted(rows, np.arange(n_nodes + 1)),
        neighbours=(places % max(1, n_nodes)).astype(np.int32),
        weights=summed.astype(np.float32),
    )


def _summed(places: Numbers, values: Weights, n: int) -> npt.NDArray[np.float64]:
    return np.bincount(places, values, minlength=n).astype(np.float64, copy=False)


def _best(ids: npt.NDArray[np.bytes_], scores: Weights, k: int) -> dict[str, float]:
    order = np.argsort(-scores, kind="stable")[:k]
    positive = order[scores[order] > 0]
    return dict(
        zip(map(bytes.decode, ids[positive].tolist()), scores[positive].tolist(), strict=True)
    )


def _bytes(table: pa.Table, column: str) -> npt.NDArray[np.bytes_]:
    return np.array(table[column].to_pylist(), dtype=np.bytes_)
