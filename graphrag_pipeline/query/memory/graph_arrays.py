"""The graph of a release as arrays: loaded once, by whole columns, and walked without rows.

Nodes are numbered: entities from 0 by id, then chunks by id, then names by id, which rules find in
chunks and which are no entities of the model or the import that gave the graph, and titles, which
documents and sections have. Edges come in kinds, loaded when first asked for, so that each method
combines those that its paper has.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import md5
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.core.arrays import distinct, fixed_bytes
from graphrag_pipeline.store.held_vectors import places_of

if TYPE_CHECKING:
    import pyarrow as pa
    from scipy.sparse import csr_array

Numbers: TypeAlias = npt.NDArray[np.integer[Any]]
Weights: TypeAlias = npt.NDArray[np.floating[Any]]
T = TypeVar("T")

_NAMED = """
SELECT DISTINCT coalesce(canonical_id, entity_id) AS id, chunk_id
FROM {table} LEFT JOIN entity_aliases USING (entity_id)
"""
_NODES = """
SELECT id, (row_number() OVER (ORDER BY part, id) - 1)::INTEGER AS node, part
FROM (SELECT id, 0 AS part FROM entities UNION ALL SELECT id, 1 FROM chunks UNION ALL
      SELECT id, 2 FROM (SELECT id FROM ({names}) UNION SELECT id FROM ({titles}))
      ANTI JOIN entities USING (id))
"""
_NONE_NAMED = "SELECT '' AS id, '' AS chunk_id LIMIT 0"
_TITLE_KEYS = """
SELECT DISTINCT md5_number_lower(key) AS key, node
FROM chunk_titles LEFT JOIN entity_aliases USING (entity_id)
JOIN ({nodes}) n ON n.id = coalesce(canonical_id, entity_id) AND n.part <> 1 ORDER BY ALL
"""
_DOCUMENTS = "SELECT dense_rank() OVER (ORDER BY document_id) AS document FROM chunks ORDER BY id"
_TITLE_WEIGHT = 3
_EDGES_OF = "edges "
RARE = 20
"""Names in no more chunks than this tell chunks apart."""
_SHARED_NAME = 0.6

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
    "titles": """
        SELECT id AS one, chunk_id AS two, {title_weight} AS weight, chunk_id AS id
        FROM ({titles})""",
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
same pairs by how many mentions support each. ``mentions`` join an entity to the chunks that mention
it, each by 1, ``names`` those and other names to the chunks in which rules, but not a model, find
them. ``titles`` join the title of a document and the headings of its sections to their chunks, each
by 3: what a text is about weighs more than what it mentions. ``statements`` are the rows of the
view ``facts``, whoever found them, by how often each is made. ``synonyms`` join entities of like
titles, by their similarity; ``identities`` those of a similarity of 0.9 or more, each by 1.
"""

_EDGES = """
WITH nodes AS MATERIALIZED ({nodes}), edges AS ({edges})
SELECT kind, one.node AS one, two.node AS two, weight::FLOAT AS weight, encode(e.id) AS id
FROM edges e JOIN nodes one ON one.id = e.one JOIN nodes two ON two.id = e.two
WHERE weight > 0 AND one.node <> two.node ORDER BY kind, e.id, 2, 3
"""
_OF_KIND = "SELECT {number} AS kind, * FROM ({edges})"


GRAPH_SQL = "".join(
    [
        *(_NAMED, _NODES, _TITLE_KEYS, _DOCUMENTS, str(_TITLE_WEIGHT)),
        *(*EDGE_KINDS.values(), _EDGES),
    ]
)
"""All queries that make the arrays of a graph: those that others made are other arrays."""


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
        """The number of nodes."""
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

    def light_step(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return :meth:`step` in single precision, in half the time."""
        return (self._light_transitions @ scores.astype(np.float32)).astype(np.float64)

    @cached_property
    def _light_transitions(self) -> csr_array:
        from scipy.sparse import csr_array

        shares = (self.weights / self.strengths[self.neighbours]).astype(np.float32)
        offsets = self.offsets
        if len(shares) <= np.iinfo(np.int32).max:
            offsets = offsets.astype(np.int32)
        return csr_array((shares, self.neighbours, offsets), (self.n_nodes, self.n_nodes))

    def neighbours_of(self, nodes: Numbers) -> npt.NDArray[np.int32]:
        """Return the distinct neighbours of nodes, ascending."""
        if len(nodes) == 1:
            return self.around(int(nodes[0]))
        return distinct(self.rows_of(nodes)[1])

    def around(self, node: int) -> npt.NDArray[np.int32]:
        """Return the neighbours of one node, ascending."""
        return self.neighbours[self.offsets[node] : self.offsets[node + 1]]

    def rows_of(self, nodes: Numbers) -> tuple[Numbers, npt.NDArray[np.int32]]:
        """Return the rows of nodes one after the other: the node of each, and the neighbour."""
        counts = self.offsets[nodes + 1] - self.offsets[nodes]
        return np.repeat(nodes, counts), self.neighbours[self.places_of(nodes)]

    def places_of(self, nodes: Numbers) -> npt.NDArray[np.int64]:
        """Return where the neighbours of nodes stand, one row after the other."""
        starts = self.offsets[nodes]
        counts = self.offsets[nodes + 1] - starts
        within = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        return np.repeat(starts, counts) + within


@dataclass(frozen=True)
class Nodes:
    """The ids of all nodes, and how many of them are entities, chunks, and names."""

    ids: npt.NDArray[np.bytes_]
    counts: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Titles:
    """The nodes of titles, by a hash of what a question may call them (``chunk_titles.key``)."""

    keys: npt.NDArray[np.uint64]
    nodes: npt.NDArray[np.int32]

    def having(self, keys: Sequence[str]) -> list[list[int]]:
        """Return the nodes that each of some keys leads to, ascending."""
        digests = b"".join(md5(key.encode()).digest()[8:] for key in keys)
        hashes = np.frombuffer(digests, "<u8")
        starts = np.searchsorted(self.keys, hashes, "left").tolist()
        stops = np.searchsorted(self.keys, hashes, "right").tolist()
        return [self.nodes[a:b].tolist() for a, b in zip(starts, stops, strict=True)]


@dataclass(frozen=True)
class _OfNodes:
    """One number for each node, or for each chunk."""

    values: npt.NDArray[Any]


class GraphArrays:
    """The nodes of a release and its edges by kind. Safe to use from several threads.

    ``read`` runs one of the project's own queries and returns its columns. ``held`` is what
    :meth:`arrays` gave, where a file has it: what is not among it is made when first asked for.
    """

    def __init__(
        self,
        read: Callable[[str], pa.Table],
        held: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> None:
        self._read = read
        self._held = held or {}
        self._lock = threading.RLock()
        self._made: dict[str, Any] = {}
        self._parts = {
            "names": _named(read, "chunk_names"),
            "titles": _named(read, "chunk_titles"),
            "title_weight": _TITLE_WEIGHT,
        }
        self._sql = _NODES.format(**self._parts)
        nodes = self._once("nodes", Nodes, self._read_nodes)
        self.ids = nodes.ids
        self.n_nodes = len(self.ids)
        self.n_entities, self.n_chunks, _ = nodes.counts.tolist()
        self._of_entities = slice(0, self.n_entities)
        self._of_chunks = slice(self.n_entities, self.n_entities + self.n_chunks)
        self._of_names = slice(self.n_entities + self.n_chunks, self.n_nodes)

    def arrays(self, edges: Collection[str] = ()) -> dict[str, npt.NDArray[Any]]:
        """Return all arrays that were made or held so far, by name; of edges those of some kinds.

        The others may have served to make an adjacency alone.
        """
        wanted = {f"{_EDGES_OF}{kind}" for kind in edges}
        return {
            f"{name}/{each.name}": getattr(made, each.name)
            for name, made in self._made.items()
            if name in wanted or not name.startswith(_EDGES_OF)
            for each in fields(made)
        }

    @cached_property
    def chunk_counts(self) -> npt.NDArray[np.int64]:
        """The number of chunks that mention each entity, by entity."""
        return np.bincount(self.edges("mentions").one, minlength=self.n_entities)

    def specificity(self, *kinds: str) -> npt.NDArray[np.float64]:
        """1 / number of chunks that edges of these kinds join it to for each entity and name.

        0 for all other nodes. Source: node specificity, Gutiérrez et al., HippoRAG, 2024, 2.3.
        """
        name = f"specificity {' '.join(kinds)}"
        return self._numbers(name, lambda: _inverse(self._n_joined(self._pairs(*kinds))))

    def edges(self, kind: str) -> Edges:
        """Return the edges of a kind of :data:`EDGE_KINDS`."""

        return self._once(f"{_EDGES_OF}{kind}", Edges, lambda: next(self._read_edges([kind])))

    def _read_edges(self, kinds: Sequence[str]) -> Iterator[Edges]:
        """Yield the edges of each of some kinds: nodes are numbered once for all."""
        parts = [
            _OF_KIND.format(number=number, edges=EDGE_KINDS[kind].format(**self._parts))
            for number, kind in enumerate(kinds)
        ]
        table = self._read(_EDGES.format(nodes=self._sql, edges=" UNION ALL ".join(parts)))
        starts = np.searchsorted(table["kind"].to_numpy(), range(len(kinds) + 1)).tolist()
        for start, stop in pairwise(starts):
            part = table.slice(start, stop - start)
            first, second, weight = (part[n].to_numpy() for n in ("one", "two", "weight"))
            yield Edges(first, second, weight, _bytes(part, "id"))

    def _edges_of_all(self, kinds: Iterable[str]) -> list[Edges]:
        """Return the edges of some kinds; those that are not at hand are read by one query."""
        with self._lock:
            names = {kind: f"{_EDGES_OF}{kind}" for kind in kinds}
            absent = [
                kind
                for kind, name in names.items()
                if name not in self._made and f"{name}/ids" not in self._held
            ]
            for kind, edges in zip(absent, self._read_edges(absent) if absent else (), strict=True):
                self._made[names[kind]] = edges
            return [self.edges(kind) for kind in names]

    def adjacency(self, *kinds: str, **factors: float) -> Adjacency:
        """Return the graph of some kinds of edges; weights between the same two nodes add up.

        The weights of a kind that has a factor are multiplied by it.
        """
        key = sorted((kind, factors.get(kind, 1.0)) for kind in {*kinds, *factors})
        name = " ".join(f"{kind} {factor}" for kind, factor in key)

        def made() -> Adjacency:
            edges = self._edges_of_all(kind for kind, _ in key)
            factors = (factor for _, factor in key)
            return join_edges(self.n_nodes, list(map(_scaled, edges, factors)))

        return self._once(f"adjacency {name}", Adjacency, made)

    def _once(self, name: str, kind: type[T], make: Callable[[], T]) -> T:
        """Return what is held, or made when first asked for, then shared."""
        with self._lock:
            if name not in self._made:
                parts = {
                    each.name: self._held.get(f"{name}/{each.name}")
                    for each in fields(cast("Any", kind))
                }
                is_held = all(part is not None for part in parts.values())
                self._made[name] = kind(**parts) if is_held else make()
            return self._made[name]

    def _numbers(self, name: str, make: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Return a number for each node, or chunk, as :meth:`_once`."""
        return self._once(name, _OfNodes, lambda: _OfNodes(make())).values

    def _read_nodes(self) -> Nodes:
        nodes = self._read(f"SELECT encode(id) AS id, part FROM ({self._sql}) ORDER BY node")
        counts = np.bincount(nodes["part"].to_numpy(), minlength=3)
        return Nodes(_bytes(nodes, "id"), counts.astype(np.int64))

    def entity_nodes(self, ids: Iterable[str]) -> npt.NDArray[np.int64]:
        """Return the nodes of entities, in their order; ids that are none are left out."""
        places, is_node = places_of(self.ids[self._of_entities], ids)
        return places[is_node]

    def chunk_nodes(self, ids: Iterable[str]) -> npt.NDArray[np.int64]:
        """Return the nodes of chunks, in their order; ids that are none are left out."""
        places, is_node = places_of(self.ids[self._of_chunks], ids)
        return self.n_entities + places[is_node]

    def titles(self) -> Titles:
        """Return the nodes of titles, by what a question may call them."""
        return self._once("titles", Titles, self._read_titles)

    def about(self, titles: Sequence[int]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return the chunks that any of some titles is of, as nodes, and each one's document.

        Documents are numbers that tell them apart.
        """
        chunks = self.adjacency("titles").neighbours_of(np.array(titles, np.int64))
        return chunks, self._documents[chunks - self.n_entities]

    @property
    def _documents(self) -> npt.NDArray[np.int64]:
        """The document of each chunk, as a number."""
        return self._numbers("documents", lambda: self._read(_DOCUMENTS)["document"].to_numpy())

    def some_chunks(self, n: int) -> list[str]:
        """Return the ids of the first ``n`` chunks."""
        return self.ids_of(np.arange(self.n_entities, self.n_entities + min(n, self.n_chunks)))

    def _read_titles(self) -> Titles:
        if self._parts["titles"] == _NONE_NAMED:
            return Titles(np.empty(0, np.uint64), np.empty(0, np.int32))
        table = self._read(_TITLE_KEYS.format(nodes=self._sql))
        return Titles(table["key"].to_numpy(), table["node"].to_numpy())

    def links_among(self, chunks: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return how surely some chunks lead to each other, 0 to 1, shape (chunks, chunks).

        1 where one is about what the other mentions. Where no other text mentions what either is
        about, for files have names that nobody writes, 0.6 where both have a name that at most 20
        chunks have.
        """
        nodes = self.chunk_nodes(chunks)
        mentioned = self.adjacency("mentions", "names").rows_of(nodes)
        titled = self.adjacency("titles").rows_of(nodes)
        names = distinct(np.concatenate([mentioned[1], titled[1]]))
        mentions = _incidence(nodes, mentioned, names)
        about = _overlapping(_incidence(nodes, titled, names), mentions)
        counts = self._mention_counts[names]
        rare = mentions & (counts >= 2) & (counts <= RARE)
        shared = _overlapping(rare, rare)
        of_title, title = titled
        has_name = np.isin(nodes, of_title[self._mentioned_elsewhere[title]])
        links = np.where(shared, _SHARED_NAME, 0.0)
        links[has_name[:, None] | has_name[None, :]] = 0
        links[about | about.T] = 1
        np.fill_diagonal(links, 0)
        return links

    def rare_names(self, chunk: int) -> npt.NDArray[np.int32]:
        """Return the names that few chunks have beside a chunk, the rarest first, without its own.

        ``chunk`` is a node. Few are 2 to 20; what it is about are its own.
        """
        names = self.adjacency("mentions", "names").around(chunk)
        counts = self._mention_counts[names]
        is_rare = (counts >= 2) & (counts <= RARE)
        is_rare &= ~np.isin(names, self.adjacency("titles").around(chunk))
        return names[is_rare][np.argsort(counts[is_rare], kind="stable")]

    @property
    def _mention_counts(self) -> npt.NDArray[np.int64]:
        """The number of chunks that mention or, by rule, name each node."""
        return self._numbers(
            "mention counts", lambda: self._n_joined(self._pairs("mentions", "names"))
        )

    @property
    def _mentioned_elsewhere(self) -> npt.NDArray[np.bool_]:
        """Whether a chunk mentions each node that it is not the title of."""

        def made() -> npt.NDArray[np.bool_]:
            mentions, titles = self._pairs("mentions", "names"), self._pairs("titles")
            own = np.intersect1d(mentions, titles, assume_unique=True)
            return self._mention_counts > self._n_joined(own)

        return self._numbers("mentioned elsewhere", made)

    def _pairs(self, *kinds: str) -> npt.NDArray[np.int64]:
        """Return the distinct pairs of nodes that edges of some kinds join, as one * n + two."""
        joined = [self.edges(kind) for kind in kinds]
        pairs = [edges.one.astype(np.int64) * self.n_nodes + edges.two for edges in joined]
        return distinct(np.concatenate(pairs))

    def _n_joined(self, pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return in how many pairs of :meth:`_pairs` each node is the first."""
        return np.bincount(pairs // max(1, self.n_nodes), minlength=self.n_nodes)

    def name_nodes(self, ids: Iterable[str]) -> npt.NDArray[np.int64]:
        """Return the nodes of names that are no entities, by the ids that entities so called have.

        In their order; ids that are none are left out.
        """
        places, is_node = places_of(self.ids[self._of_names], ids)
        return self.n_entities + self.n_chunks + places[is_node]

    def weigh_entities(self, weights: Mapping[str, float]) -> npt.NDArray[np.float64]:
        """Return weights of entities, by id, as one weight for each node."""
        return self._weigh(weights, self._of_entities)

    def weigh_nodes(self, nodes: Iterable[int]) -> npt.NDArray[np.float64]:
        """Return how often each node is listed, as one weight for each."""
        listed = np.fromiter(nodes, np.int64)
        return np.bincount(listed, minlength=self.n_nodes).astype(np.float64)

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


def _named(read: Callable[[str], pa.Table], table: str) -> str:
    """Return a query for the names in a table; a release of an older program may lack it."""
    there = read(f"SELECT 1 FROM duckdb_tables() WHERE table_name = '{table}' LIMIT 1")
    return _NAMED.format(table=table) if len(there) else _NONE_NAMED


def _scaled(edges: Edges, factor: float) -> Edges:
    return edges if factor == 1 else replace(edges, weight=edges.weight * np.float32(factor))


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


def _incidence(
    nodes: Numbers, pairs: tuple[Numbers, Numbers], columns: Numbers
) -> npt.NDArray[np.bool_]:
    """Return True at (i, j) where nodes[i] is joined to columns[j].

    ``columns`` are ascending, and all that a node is joined to is among them.
    """
    order = np.argsort(nodes)
    rows = order[np.searchsorted(nodes, pairs[0], sorter=order)]
    joined = np.zeros((len(nodes), len(columns)), np.bool_)
    joined[rows, np.searchsorted(columns, pairs[1])] = True
    return joined


def _overlapping(one: npt.NDArray[np.bool_], other: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return True at (i, j) where one[i] and other[j] are both True somewhere.

    By bits: BLAS would wake its threads for a product as small, which takes far longer.
    """
    bits, others = np.packbits(one, axis=1), np.packbits(other, axis=1)
    shared: npt.NDArray[np.uint8] = np.bitwise_or.reduce(bits[:, None] & others[None, :], axis=2)
    return shared > 0


def _summed(places: Numbers, values: Weights, n: int) -> npt.NDArray[np.float64]:
    return np.bincount(places, values, minlength=n).astype(np.float64, copy=False)


def _best(ids: npt.NDArray[np.bytes_], scores: Weights, k: int) -> dict[str, float]:
    order = np.argsort(-scores, kind="stable")[:k]
    positive = order[scores[order] > 0]
    return dict(
        zip(map(bytes.decode, ids[positive].tolist()), scores[positive].tolist(), strict=True)
    )


def _bytes(table: pa.Table, column: str) -> npt.NDArray[np.bytes_]:
    return fixed_bytes(table[column].combine_chunks())
