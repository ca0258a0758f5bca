"""Attributed communities: entities that are linked and alike, level upon level (ArchRAG).

Source: Wang et al., 2025 (ArchRAG), Algorithm 1: the graph is augmented by edges between nodes
that are alike (:mod:`~graphrag_pipeline.systems.archrag.similarity`), each edge weighs how
alike its ends are, weighted Leiden finds communities, each gets a report, and the communities are
the nodes of the next graph, linked where their members are. That ends after
``hierarchies.attributed_levels`` levels (4), or once a level has fewer than :data:`FEWEST`
communities; it stays, where the authors leave it out (``hierarchies.attributed_fewest``).
Communities have at most :data:`LARGEST` members, by Leiden within those that are larger. These
numbers are those of the authors' code.

The paper's Algorithm 1 weighs an edge by 1 - cos; here it is the cosine, see there. How many pairs
of members link two communities is counted, but does not count: in Algorithm 1 every edge is weighed
anew. A node that joins no other at a level stands on as it is; an entity that does is a community
of one, without a report, so that every level covers every entity.

The clusters of each level are repaired as the graph changes (:mod:`~graphrag_pipeline.
community_repair`), and made anew past ``communities.max_drift``. A report is written again only
where the hash of what it is written from has changed, whoever writes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.settings import (
    CommunitySettings,
    Settings,
    fingerprint,
)
from graphrag_pipeline.graph.clustering import Cluster, Clusters, Graph
from graphrag_pipeline.graph.communities import cluster
from graphrag_pipeline.graph.repair import keep_ids
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.store.frames import drop_rows, put_rows, value_of
from graphrag_pipeline.store.hashing import rows_hash
from graphrag_pipeline.store.index_store import IndexStore, get_meta, set_meta
from graphrag_pipeline.store.vector_store import VectorStore
from graphrag_pipeline.structures.structure import Outcome, VectorTable
from graphrag_pipeline.structures.vector_tables import stale_tables
from graphrag_pipeline.systems.archrag.chnsw import Vectors
from graphrag_pipeline.systems.archrag.clusterings import AttributedNodes, Clusterer, clustering_of
from graphrag_pipeline.systems.archrag.reports import (
    ATTRIBUTED_COMMUNITIES,
    ReportDraft,
    reports_version,
)
from graphrag_pipeline.systems.archrag.similarity import (
    entity_vectors,
    places_of,
    unit,
)

if TYPE_CHECKING:
    from graphrag_pipeline.llm.embedders import Embedder

ATTRIBUTED_VERSION = "1"
LARGEST = 15
FEWEST = 5

COMMUNITY_VECTORS = VectorTable(
    "attributed_communities",
    """SELECT id, title || chr(10) || summary AS text, level, NULL::VARCHAR AS batch
       FROM attributed_communities WHERE full_content IS NOT NULL""",
    made_from=("attributed_communities",),
    about="Vectors and full text of attributed communities, in LanceDB.",
)

_TABLE = "attributed_communities"
_REPORTED = "full_content IS NOT NULL"
_N_FAILED = f"SELECT count(*) FROM {_TABLE} WHERE error IS NOT NULL"
_N_REPORTED = f"SELECT count(*) FROM {_TABLE} WHERE {_REPORTED}"
_MEMBERS = pl.Schema({"community_id": pl.String, "member_id": pl.String})
_CLUSTER_ROWS = pl.Schema(
    {
        "attributed_level": pl.Int32,
        "id": pl.String,
        "level": pl.Int32,
        "last_level": pl.Int32,
        "parent_id": pl.String,
        "members": pl.List(pl.String),
    }
)
_CLUSTERS = """
SELECT attributed_level, id, level, last_level, parent_id, members
FROM staging.attributed_clusters ORDER BY attributed_level, id
"""
# What only readers of a report see of the graph: its places and claims besides its texts.
_GRAPH = "SELECT " + ", ".join(
    [
        rows_hash("entities", "id, title, type, description, degree, frequency"),
        rows_hash("relationships", "id, description, weight, combined_degree"),
        rows_hash(
            "resolved_relationship_mentions",
            "chunk_id, source_id, target_id, start_char, end_char",
        ),
        rows_hash("resolved_claims", "id, subject_id"),
    ]
)

_WANTED = {
    "communities": """
SELECT d.id, d.human_readable_id, d.level,
       coalesce(p.level - 1, max(d.level) OVER ()) AS last_level, p.id AS parent_id, d.title,
       d.size, d.n_relationships
FROM described d LEFT JOIN new_members m ON m.member_id = d.id
LEFT JOIN described p ON p.id = m.community_id
""",
    "members": """
SELECT community_id, entity_id, unnest(range(level, last_level + 1))::INTEGER AS level
FROM own JOIN {communities} c ON c.id = community_id
""",
    "reports": "SELECT *, 0::DOUBLE AS outdated FROM told",
    "failures": "FROM failed",
}


@dataclass(frozen=True)
class LevelClusters:
    """The communities of a level: ``members`` has (community_id, member_id), ascending by member.

    ``clusters`` is the hierarchy they are the leaves of, ``edges`` the graph.
    """

    members: pl.DataFrame
    clusters: Sequence[Cluster]
    edges: pl.DataFrame

    @property
    def groups(self) -> list[str]:
        """The communities of two or more."""
        counted = self.members.group_by("community_id").len().filter(pl.col("len") > 1)
        return sorted(counted["community_id"].to_list())

    @property
    def new_members(self) -> pl.DataFrame:
        """The members of communities that do not stand at the level below already."""
        return self.members.filter(pl.col("community_id") != pl.col("member_id"))


def update_attributed(store: IndexStore, vectors: VectorStore, settings: Settings) -> Outcome:
    """Bring ``attributed_communities`` and their members up to date with the graph.

    Tells how many reports were ``written``, ``reused`` and ``removed``; where level 1 was clustered
    and can be measured, its ``modularity`` and ``calinski_harabasz`` (Caliński and Harabasz, 1974;
    the paper's measure of quality).

    All is stored in one transaction; reports that a killed run had written are in the cache of the
    model's answers. Raises what the report writer raises.
    """
    with store.read() as con:
        if attributed_current(con, settings) and not value_of(con, _N_FAILED):
            return Outcome({"written": 0, "reused": value_of(con, _N_REPORTED), "removed": 0})
        state = _state(con, settings)
        nodes, similar = _read_graph(con, vectors)
        old = _old_clusters(con)
        follows = (get_meta(con, "attributed") or "").startswith(_clustering(settings))
        embedded = _Embedded.read(con, vectors, configured_embedder(settings))
        draft = ReportDraft(con, settings)
    given = settings.hierarchies
    clustering = clustering_of(given)
    levels: list[LevelClusters] = []
    quality: Mapping[str, float] = {}
    for level in range(1, given.attributed_levels + 1):
        edges = clustering.edges(nodes, similar if level == 1 else None)
        found = communities_of(
            level,
            nodes.ids,
            edges,
            old.get(level, []),
            settings.communities,
            follows=follows,
            anew=clustering.clusters,
        )
        if len(found.groups) < given.attributed_fewest:
            break
        draft.add(store, level, found.new_members, nodes.entities)
        levels.append(found)
        if level == 1:
            quality = _quality(nodes, found, settings.communities)
        nodes = community_graph(nodes, found, embedded.vectors(draft, nodes, found))
        if len(found.groups) < FEWEST:
            break
    with store.transaction() as con:
        removed = _store(con, draft, levels)
        set_meta(con, "attributed", state)
    reused = len(draft.kept)
    counts = {"written": len(draft.reports) - reused, "reused": reused, "removed": removed}
    return Outcome({**counts, **quality}, len(draft.failures))


def attributed_current(con: duckdb.DuckDBPyConnection, settings: Settings) -> bool:
    """Whether the communities are those of the graph, its vectors and the settings as they are."""
    return get_meta(con, "attributed") == _state(con, settings)


def attributed_version(settings: Settings) -> str:
    """Return what decides the communities besides the graph."""
    given = settings.hierarchies
    kept = [given.attributed_fewest] if given.attributed_fewest > 1 else []
    made = fingerprint(
        given.attributed_levels, settings.communities.max_drift, reports_version(settings), *kept
    )
    return f"{_clustering(settings)}{made}"


def forget_clusters(con: duckdb.DuckDBPyConnection) -> None:
    """Let the next update cluster every level anew."""
    con.execute("UPDATE meta SET value = '' WHERE key = 'attributed'")


def communities_of(
    level: int,
    ids: pl.Series,
    edges: pl.DataFrame,
    old: Sequence[Cluster],
    settings: CommunitySettings,
    *,
    follows: bool,
    anew: Clusterer | None = None,
) -> LevelClusters:
    """Return the communities of a level: ``old`` clusters repaired, or if not ``follows``, anew.

    What ``anew`` clusters is always made anew.
    """
    if anew is not None:
        clusters = keep_ids(old, anew(ids.to_list(), edges, LARGEST, settings.seed))
    else:
        given = settings.model_copy(update={"max_cluster_size": LARGEST})
        weights = edges["similarity"].to_numpy()
        graph = Graph(ids, edges["source"].to_numpy(), edges["target"].to_numpy(), weights)
        allowed = given.max_drift if follows else None
        clusters = cluster(graph, Clusters.of(old, ids), given, allowed).clusters.listed(ids)
    divided = {cluster.parent_id for cluster in clusters}
    rows = [
        (
            node if level > 1 and len(leaf.members) == 1 else make_id("attributed", level, leaf.id),
            node,
        )
        for leaf in clusters
        if leaf.id not in divided
        for node in leaf.members
    ]
    members = pl.DataFrame(rows, schema=_MEMBERS, orient="row").sort("member_id")
    return LevelClusters(members, clusters, edges)


def community_graph(
    nodes: AttributedNodes, found: LevelClusters, vectors: Vectors
) -> AttributedNodes:
    """Return the graph whose nodes are communities, linked where edges lead from one to another.

    ``vectors`` has a row for each community, by id.
    """
    ids = found.members["community_id"].unique().sort()
    place = np.searchsorted(ids.to_numpy(), found.members["community_id"].to_numpy())
    ends = pl.DataFrame(
        {
            "one": place[found.edges["source"].to_numpy()],
            "two": place[found.edges["target"].to_numpy()],
        }
    )
    pairs = (
        ends.filter(pl.col("one") != pl.col("two"))
        .select(one=pl.min_horizontal("one", "two"), two=pl.max_horizontal("one", "two"))
        .unique()
        .sort("one", "two")
    )
    entities = nodes.entities.join(found.members, left_on="node_id", right_on="member_id")
    return AttributedNodes(
        ids,
        vectors,
        (pairs["one"].to_numpy(), pairs["two"].to_numpy()),
        entities.select(node_id="community_id", entity_id="entity_id"),
    )


@dataclass(frozen=True)
class _Embedded:
    """The embedder of reports; ``known`` has those of the reports there are."""

    embedder: Embedder
    known: Mapping[str, Vectors]

    @classmethod
    def read(
        cls, con: duckdb.DuckDBPyConnection, vectors: VectorStore, embedder: Embedder
    ) -> _Embedded:
        if stale_tables(con, embedder.name, [COMMUNITY_VECTORS]):
            return cls(embedder, {})
        ids, matrix = vectors.newest(_TABLE).matrix(_TABLE)
        return cls(embedder, dict(zip(ids, matrix, strict=True)))

    def vectors(self, draft: ReportDraft, nodes: AttributedNodes, found: LevelClusters) -> Vectors:
        """Return a row for each community, by id: its report's vector or its members' mean."""
        ids = found.members["community_id"].unique().sort()
        place = np.searchsorted(ids.to_numpy(), found.members["community_id"].to_numpy())
        rows = np.zeros((len(ids), nodes.vectors.shape[1]), np.float32)
        np.add.at(rows, place, nodes.vectors)
        told = draft.reports.filter(pl.col("community_id").is_in(found.groups))
        stays = sorted(draft.kept & self.known.keys())
        new = told.filter(~pl.col("community_id").is_in(stays))
        given = dict(self.known)
        if len(new):
            texts = (new["title"] + "\n" + new["summary"]).to_list()
            given |= dict(zip(new["community_id"], self.embedder.embed(texts), strict=True))
        if len(told):
            reported = np.searchsorted(ids.to_numpy(), told["community_id"].to_numpy())
            rows[reported] = np.stack([given[key] for key in told["community_id"]])
        return unit(rows)


def _quality(
    nodes: AttributedNodes, found: LevelClusters, settings: CommunitySettings
) -> dict[str, float]:
    """Return how good a level's communities of two or more are, as far as it can be measured."""
    import graspologic_native

    ids, label = np.unique(found.members["community_id"].to_numpy(), return_inverse=True)
    one, two = (found.edges[end].cast(pl.String).to_list() for end in ("source", "target"))
    edges = list(zip(one, two, found.edges["similarity"].to_list(), strict=True))
    partition = {node: int(label[int(node)]) for node in {*one, *two}}
    reached = graspologic_native.modularity(edges, partition, settings.resolution)
    grouped = np.isin(ids, found.groups)[label]
    apart = calinski_harabasz(nodes.vectors[grouped], label[grouped])
    measured = {"modularity": reached, "calinski_harabasz": apart}
    return {name: round(value, 4) for name, value in measured.items() if value is not None}


def calinski_harabasz(vectors: Vectors, label: npt.NDArray[np.integer]) -> float | None:
    """Return how far apart clusters are against how wide (the paper's equation 3).

    None where there are fewer than two, or as many as vectors.
    """
    _, place, sizes = np.unique(label, return_inverse=True, return_counts=True)
    n, k = len(vectors), len(sizes)
    if not 1 < k < n:
        return None
    sums = np.zeros((k, vectors.shape[1]))
    np.add.at(sums, place, vectors)
    centres = sums / sizes[:, None]
    apart = sizes @ ((centres - vectors.mean(axis=0)) ** 2).sum(axis=1)
    wide = ((vectors - centres[place]) ** 2).sum()
    return float(apart * (n - k) / (wide * (k - 1))) if wide else None


def _store(
    con: duckdb.DuckDBPyConnection, draft: ReportDraft, levels: Sequence[LevelClusters]
) -> int:
    """Put the communities in place of those there were; return how many reports went."""
    before = con.execute(f"SELECT id FROM {_TABLE} WHERE {_REPORTED}").fetchall()
    frames = {
        "described": draft.communities,
        "own": draft.entities,
        "told": draft.reports,
        "failed": draft.failures,
        "new_members": pl.concat([pl.DataFrame(schema=_MEMBERS), *(f.new_members for f in levels)]),
        "clusters": pl.DataFrame(_cluster_rows(levels), schema=_CLUSTER_ROWS, orient="row"),
    }
    for name, frame in frames.items():
        put_rows(con, name, frame)
    for table, query in _WANTED.items():
        ATTRIBUTED_COMMUNITIES.replace(con, table, f"({ATTRIBUTED_COMMUNITIES.sql(query)})")
    con.execute("DELETE FROM staging.attributed_clusters")
    con.execute("INSERT INTO staging.attributed_clusters BY NAME FROM clusters")
    drop_rows(con, *frames)
    return len({key for (key,) in before} - set(draft.reports["community_id"]))


def _cluster_rows(levels: Sequence[LevelClusters]) -> list[tuple[object, ...]]:
    return [
        (level, each.id, each.level, each.last_level, each.parent_id, list(each.members))
        for level, found in enumerate(levels, start=1)
        for each in found.clusters
    ]


def _read_graph(
    con: duckdb.DuckDBPyConnection, vectors: VectorStore
) -> tuple[AttributedNodes, pl.DataFrame]:
    """Return the graph of the entities, and the pairs among them that are only alike."""
    ids = con.sql("SELECT id FROM entities ORDER BY id").pl()["id"]
    links = con.sql("SELECT source_id, target_id FROM relationships ORDER BY ALL").pl()
    similar = con.sql("FROM similarity_edges ORDER BY ALL").pl()
    one, two = places_of(ids, similar)
    own = pl.DataFrame({"node_id": ids, "entity_id": ids})
    nodes = AttributedNodes(ids, entity_vectors(vectors, ids), places_of(ids, links), own)
    return nodes, pl.DataFrame({"source": one, "target": two, "similarity": similar["similarity"]})


def _old_clusters(con: duckdb.DuckDBPyConnection) -> Mapping[int, list[Cluster]]:
    old: dict[int, list[Cluster]] = defaultdict(list)
    rows = con.execute(_CLUSTERS).fetchall()
    for attributed_level, key, level, last_level, parent, members in rows:
        old[attributed_level].append(Cluster(key, level, last_level, parent, tuple(members)))
    return old


def _clustering(settings: Settings) -> str:
    given, by = settings.communities, settings.hierarchies.attributed_clustering
    # Raises for one that is not there, and for parameters that it does not have.
    clustering_of(settings.hierarchies)
    numbers = sorted(settings.hierarchies.attributed_parameters.items())
    named = [by, *(f"{name}={value}" for name, value in numbers)]
    ablation = "" if by == "attributed" else f"/{'/'.join(named)}"
    return f"{ATTRIBUTED_VERSION}{ablation}:{given.resolution}:{given.seed}:"


def _state(con: duckdb.DuckDBPyConnection, settings: Settings) -> str:
    """Return all that the communities depend on: how they are made, graph and edges."""
    graph = fingerprint(get_meta(con, "similarity_edges"), con.execute(_GRAPH).fetchone())
    return f"{attributed_version(settings)}:{graph}"
