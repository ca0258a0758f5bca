"""Communities: hierarchical Leiden over the whole graph (paper, 3.1.4).

graspologic-native 1.2 does the clustering. It is pinned because 1.3 partitions the same graph
differently, and 1.2 gives the communities of indexes that exist already.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import polars as pl

from graphrag_pipeline.config import CommunitySettings, fingerprint
from graphrag_pipeline.identity import make_id
from graphrag_pipeline.store import (
    IndexStore,
    assign_identifiers,
    get_meta,
    replace_changed,
    replace_links,
    set_meta,
)

COMMUNITIES_VERSION = "1"
_RANDOMNESS = 0.001
_TITLE_ENTITIES = 3
_ADOPTED = "adopted"

Edge = tuple[str, str, float]

COMMUNITIES = pl.Schema(
    {
        "id": pl.String,
        "level": pl.Int32,
        "last_level": pl.Int32,
        "parent_id": pl.String,
        "title": pl.String,
        "size": pl.Int64,
        "n_relationships": pl.Int64,
    }
)
MEMBERS = pl.Schema({"community_id": pl.String, "entity_id": pl.String, "level": pl.Int32})


@dataclass(frozen=True)
class Cluster:
    """A community of the hierarchy: it stands at levels ``level`` to ``last_level``."""

    id: str
    level: int
    last_level: int
    parent_id: str | None
    members: tuple[str, ...]


@dataclass(frozen=True)
class CommunityChanges:
    """What clustering did; ``counts`` is empty when the graph had not changed."""

    counts: Mapping[str, int]
    modularity: float | None
    n_levels: int


def hierarchical_leiden(
    edges: Iterable[Edge], settings: CommunitySettings
) -> list[tuple[int, int, int | None, list[str]]]:
    """Cluster weighted undirected edges into a hierarchy.

    Returns (cluster number, level, number of the parent cluster, members sorted) of every cluster.
    Each pair of nodes must occur once, its ends in a fixed order; the order of the edges does not
    matter. Source: Traag, Waltman and van Eck, 2019, applied again inside every cluster larger
    than ``max_cluster_size``.
    """
    import graspologic_native

    ordered = sorted(edges)
    if not ordered:
        return []
    found = graspologic_native.hierarchical_leiden(
        edges=ordered,
        max_cluster_size=settings.max_cluster_size,
        seed=settings.seed,
        resolution=settings.resolution,
        randomness=_RANDOMNESS,
        use_modularity=True,
        iterations=1,
        starting_communities=None,
    )
    members: dict[int, list[str]] = defaultdict(list)
    place: dict[int, tuple[int, int | None]] = {}
    for item in found:
        members[item.cluster].append(item.node)
        place[item.cluster] = (item.level, item.parent_cluster)
    return [(number, *place[number], sorted(nodes)) for number, nodes in sorted(members.items())]


def build_hierarchy(
    entity_ids: Sequence[str], edges: Iterable[Edge], settings: CommunitySettings
) -> list[Cluster]:
    """Cluster a graph so that every level covers every entity exactly once.

    An entity without relationships is a community of its own. A community that is split no
    further stands at all deeper levels. Ids are hashes of level and members.
    """
    raw = hierarchical_leiden(edges, settings)
    deepest = max((level for _, level, _, _ in raw), default=0)
    parents = {parent for _, _, parent, _ in raw if parent is not None}
    ids = {number: make_id("community", level, *members) for number, level, _, members in raw}
    clusters = [
        Cluster(
            ids[number],
            level,
            level if number in parents else deepest,
            None if parent is None else ids[parent],
            tuple(members),
        )
        for number, level, parent, members in raw
    ]
    clustered = {node for cluster in clusters for node in cluster.members}
    alone = sorted(set(entity_ids) - clustered)
    return clusters + [
        Cluster(make_id("community", 0, node), 0, deepest, None, (node,)) for node in alone
    ]


def communities_current(con: duckdb.DuckDBPyConnection, settings: CommunitySettings) -> bool:
    """Whether the communities were made from the graph as it is now, under these settings."""
    adopted = f"{_ADOPTED}:{_graph_hash(con)}"
    return get_meta(con, "communities_state") in (_state(con, settings), adopted)


def update_communities(store: IndexStore, settings: CommunitySettings) -> CommunityChanges:
    """Bring ``communities`` and ``community_members`` up to date with the graph."""
    with store.read() as con:
        state = _state(con, settings)
        if communities_current(con, settings):
            return CommunityChanges({}, _stored_modularity(con), _n_levels(con))
        entities = con.sql(_ENTITIES).pl()
        relationships = con.sql(_STRENGTHS).pl()
    edges = list(relationships.iter_rows())
    clusters = build_hierarchy(entities["id"].to_list(), edges, settings)
    members = _member_frame(clusters)
    communities = _community_frame(clusters, members, entities, relationships)
    modularity = _modularity(edges, members)
    with store.transaction() as con:
        counts = _store(con, communities, members)
        set_meta(con, "communities_state", state)
        set_meta(con, "modularity", "" if modularity is None else repr(modularity))
        return CommunityChanges(counts, modularity, _n_levels(con))


def adopt_hierarchy(
    con: duckdb.DuckDBPyConnection,
    clusters: Sequence[Cluster],
    titles: Mapping[str, str],
    *,
    settled: bool,
) -> None:
    """Store a hierarchy made elsewhere. Call it in a transaction.

    ``clusters`` must cover every entity once at every level; ``titles`` are by community id.
    Where ``settled``, ``update_communities`` leaves it as it is until the graph changes, whatever
    the settings; otherwise it clusters anew.
    """
    entities = con.sql(_ENTITIES).pl()
    relationships = con.sql(_STRENGTHS).pl()
    members = _member_frame(clusters)
    communities = _community_frame(clusters, members, entities, relationships).with_columns(
        pl.col("id").replace_strict(titles, default=pl.col("title")).alias("title")
    )
    modularity = _modularity(list(relationships.iter_rows()), members)
    _store(con, communities, members)
    set_meta(con, "communities_state", f"{_ADOPTED}:{_graph_hash(con)}" if settled else "")
    set_meta(con, "modularity", "" if modularity is None else repr(modularity))


_ENTITIES = """
SELECT id, title, degree, frequency, type NOT IN ('CONCEPT', 'DATE') AS named FROM entities
"""
# Edges found by rule are weighted by how much more often than chance their ends meet: always
# positive, so that no edge is lost. A model's and an imported index's weights are taken as given.
_STRENGTHS = """
SELECT source_id, target_id,
       CASE WHEN (SELECT bool_and(extractor = 'nlp') FROM extractions)
            THEN weight * (1 + pmi) / 2 + 1e-9 ELSE weight END AS strength
FROM relationships ORDER BY source_id, target_id
"""


def _member_frame(clusters: Sequence[Cluster]) -> pl.DataFrame:
    rows = [
        (cluster.id, node, level)
        for cluster in clusters
        for level in range(cluster.level, cluster.last_level + 1)
        for node in cluster.members
    ]
    return pl.DataFrame(rows, schema=MEMBERS, orient="row")


def _community_frame(
    clusters: Sequence[Cluster],
    members: pl.DataFrame,
    entities: pl.DataFrame,
    relationships: pl.DataFrame,
) -> pl.DataFrame:
    frame = pl.DataFrame(
        [(c.id, c.level, c.last_level, c.parent_id, len(c.members)) for c in clusters],
        schema={n: COMMUNITIES[n] for n in ("id", "level", "last_level", "parent_id", "size")},
        orient="row",
    )
    own = members.join(frame.select(community_id="id", level="level"), ["community_id", "level"])
    inside = (
        relationships.join(own, left_on="source_id", right_on="entity_id")
        .join(
            own,
            left_on=["target_id", "community_id", "level"],
            right_on=["entity_id", "community_id", "level"],
        )
        .group_by("community_id")
        .agg(n_relationships=pl.len().cast(pl.Int64))
    )
    titles = (
        own.join(entities, left_on="entity_id", right_on="id")
        .sort(["named", "degree", "frequency", "title"], descending=[True, True, True, False])
        .group_by("community_id", maintain_order=True)
        .agg(title=pl.col("title").head(_TITLE_ENTITIES).str.join(", "))
    )
    return (
        frame.join(titles, left_on="id", right_on="community_id", how="left")
        .join(inside, left_on="id", right_on="community_id", how="left")
        .with_columns(pl.col("n_relationships").fill_null(0), pl.col("title").fill_null(""))
        .select(list(COMMUNITIES))
    )


def _modularity(edges: Sequence[Edge], members: pl.DataFrame) -> float | None:
    import graspologic_native

    if not edges:
        return None
    last = members.filter(pl.col("level") == 0)
    number = {c: i for i, c in enumerate(last["community_id"].unique(maintain_order=True))}
    nodes = {node for source, target, _ in edges for node in (source, target)}
    partition = {
        node: number[community]
        for community, node in last.select("community_id", "entity_id").iter_rows()
        if node in nodes
    }
    return graspologic_native.modularity(list(edges), partition, 1.0)


def _store(
    con: duckdb.DuckDBPyConnection, communities: pl.DataFrame, members: pl.DataFrame
) -> Mapping[str, int]:
    con.register("new_communities", communities)
    con.register("new_members", members)
    assign_identifiers(
        con, "community", "SELECT id FROM new_communities ORDER BY level, size DESC, id"
    )
    con.execute(
        """CREATE OR REPLACE TEMP TABLE wanted_communities AS
           SELECT c.id, i.human_readable_id, c.level, c.last_level, c.parent_id, c.title, c.size,
                  c.n_relationships
           FROM new_communities c JOIN identifiers i ON i.kind = 'community' AND i.id = c.id"""
    )
    counts = replace_changed(con, "communities", "wanted_communities")
    replace_links(con, "community_members", "new_members", ("community_id", "entity_id", "level"))
    con.unregister("new_communities")
    con.unregister("new_members")
    return counts


def _state(con: duckdb.DuckDBPyConnection, settings: CommunitySettings) -> str:
    version = fingerprint(COMMUNITIES_VERSION, settings.model_dump(exclude={"levels"}))
    return f"{version}:{_graph_hash(con)}"


def _graph_hash(con: duckdb.DuckDBPyConnection) -> str:
    row = con.execute(
        """SELECT (SELECT coalesce(
                       bit_xor(hash(id, title, type, description, degree, frequency)), 0)
                   FROM entities),
                  (SELECT coalesce(bit_xor(hash(id, description, weight, pmi)), 0)
                   FROM relationships),
                  (SELECT count(*) FROM entities),
                  (SELECT bool_and(extractor = 'nlp') FROM extractions)"""
    ).fetchone()
    return ":".join(str(part) for part in row or ())


def _stored_modularity(con: duckdb.DuckDBPyConnection) -> float | None:
    value = get_meta(con, "modularity")
    return float(value) if value else None


def _n_levels(con: duckdb.DuckDBPyConnection) -> int:
    row = con.execute("SELECT coalesce(max(last_level) + 1, 0) FROM communities").fetchone()
    return row[0] if row else 0
