"""The tables of communities: clustered once, then repaired as the graph changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb
import polars as pl

from graphrag_pipeline.core.settings import CommunitySettings, fingerprint
from graphrag_pipeline.core.text import names_apart
from graphrag_pipeline.extraction.rules.words import usually_lower
from graphrag_pipeline.graph.clustering import Cluster, Edge, build_hierarchy, leiden, modularity
from graphrag_pipeline.graph.repair import keep_ids, repair_hierarchy
from graphrag_pipeline.store.frames import drop_rows, put_rows
from graphrag_pipeline.store.hashing import rows_hash
from graphrag_pipeline.store.hierarchy import GRAPH, Hierarchy
from graphrag_pipeline.store.index_store import (
    IndexStore,
    assign_identifiers,
)

COMMUNITIES_VERSION = "3"
_STATE = "communities_state"
CLUSTERED, REPAIRED, IMPROVED, ADOPTED = "clustered", "repaired", "improved", "adopted"
_TITLE_ENTITIES = 3
# So many names are looked at for a title, the most characteristic first.
_TITLE_CANDIDATES = 12
_LONGEST_NAME = 40
# What a name weighs against a term of several words, and one of a single word: those are generic.
# A name that is a word of every day weighs as a term, less if shouted, as licences are, or a code.
_NAME_WEIGHT, _TERM_WEIGHT, _SHOUTED_WEIGHT, _WORD_WEIGHT = 4, 2, 1, 0.5
# What no name of a title is: what has a sign of code, a number, or one letter.
_NO_NAME = r"[_=<>{}\\|¶@#$%^*~`\[\]]|\(\)|^\W|^.$|^[\d\W]+$"
_IN_SMALL_LETTERS = r"^[^\p{Lu}\p{Lo}]+$"
_SHOUTED = r"^\P{Ll}*(?:\p{Lu}{6}|\p{Lu}{2}\P{Ll}* \P{Ll}*\p{Lu}{2})\P{Ll}*$|^\p{L}{1,3}[- ]?\d+$"

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
class CommunityChanges:
    """What was done: ``how`` is clustered, repaired or improved, None when nothing had changed.

    ``counts`` are rows of ``communities`` by level (added, changed, removed, reused); ``drift`` is
    the share of modularity that a fresh clustering would have and this one has not.
    """

    how: str | None
    counts: Mapping[int, Mapping[str, int]]
    modularity: float | None
    drift: float | None
    n_levels: int


def communities_current(
    con: duckdb.DuckDBPyConnection, settings: CommunitySettings, hierarchy: Hierarchy = GRAPH
) -> bool:
    """Whether the communities were made from the graph as it is now, under these settings."""
    state = hierarchy.get_state(con, _STATE)
    if not _is_followed(state, settings):
        return False
    return state == f"{_version(state)}:{_graph_hash(con, hierarchy)}"


def update_communities(
    store: IndexStore, settings: CommunitySettings, hierarchy: Hierarchy = GRAPH
) -> CommunityChanges:
    """Bring the communities of a hierarchy and their members up to date with its graph.

    They are repaired. Once they lack more than ``max_drift`` of the modularity that a fresh
    clustering would have, they are improved: Leiden goes over the whole graph from where they are.
    They are clustered from nothing if there are none, if settings changed, if that was asked for,
    or if improving was not enough.
    """
    with store.read() as con:
        last = _last_update(con) if hierarchy.has_history else _LastUpdate()
        if communities_current(con, settings, hierarchy):
            n_levels = _n_levels(con, hierarchy)
            return CommunityChanges(None, {}, last.modularity, last.drift, n_levels)
        followed = _is_followed(hierarchy.get_state(con, _STATE), settings)
        old = _stored_hierarchy(con, hierarchy)
        allowed = last.allowed_drift + settings.max_drift
        graph = _read_graph(con, hierarchy)
    found = _followed(graph, old, settings, allowed) if followed and old else None
    if found is None:
        found = _clustered(graph, old, settings)
    with store.transaction() as con:
        counts = _store(con, hierarchy, *_frames(graph, found.clusters))
        hierarchy.set_state(con, _STATE, f"{_fingerprint(settings)}:{graph.hash}")
        if hierarchy.has_history:
            _log_update(con, found)
        n_levels = _n_levels(con, hierarchy)
        return CommunityChanges(found.how, counts, found.modularity, found.drift, n_levels)


def ask_for_clustering(store: IndexStore) -> None:
    """Let the next update cluster the whole graph anew."""
    with store.transaction() as con:
        forget_state(con, GRAPH)


def forget_state(con: duckdb.DuckDBPyConnection, hierarchy: Hierarchy) -> None:
    """Let the next update cluster the graph of a hierarchy anew."""
    if hierarchy.get_state(con, _STATE) is not None:
        hierarchy.set_state(con, _STATE, "")


def adopt_hierarchy(
    con: duckdb.DuckDBPyConnection,
    clusters: Sequence[Cluster],
    titles: Mapping[str, str],
    settings: CommunitySettings,
    *,
    settled: bool,
) -> None:
    """Store a hierarchy made elsewhere. Call it in a transaction.

    ``clusters`` must cover every entity once at every level; ``titles`` are by community id.
    Where ``settled``, it stays as it is until the graph changes and is then repaired, whatever the
    settings and whatever its modularity; otherwise ``update_communities`` clusters anew.
    """
    graph = _read_graph(con, GRAPH)
    communities, members = _frames(graph, clusters)
    communities = communities.with_columns(
        pl.col("id").replace_strict(titles, default=pl.col("title")).alias("title")
    )
    _store(con, GRAPH, communities, members)
    GRAPH.set_state(con, _STATE, f"{ADOPTED}:{graph.hash}" if settled else "")
    _log_update(con, _measured(ADOPTED, graph, clusters, settings, _possible(graph, settings)))


@dataclass(frozen=True)
class _Graph:
    entities: pl.DataFrame
    relationships: pl.DataFrame
    edges: Sequence[Edge]
    hash: str


@dataclass(frozen=True)
class _Found:
    how: str
    clusters: Sequence[Cluster]
    modularity: float | None
    drift: float | None


def _followed(
    graph: _Graph, old: Sequence[Cluster], settings: CommunitySettings, allowed_drift: float
) -> _Found | None:
    """Return the old hierarchy repaired or else improved, None if both drift too far."""
    entities = graph.entities["id"].to_list()
    possible = _possible(graph, settings)
    for how in (REPAIRED, IMPROVED):
        regain = how == IMPROVED
        clusters = repair_hierarchy(old, entities, graph.edges, settings, regain=regain)
        found = _measured(how, graph, clusters, settings, possible)
        if (found.drift or 0.0) <= allowed_drift:
            return found
    return None


def _clustered(graph: _Graph, old: Sequence[Cluster], settings: CommunitySettings) -> _Found:
    clusters = build_hierarchy(graph.entities["id"].to_list(), graph.edges, settings)
    clusters = keep_ids(old, clusters)
    reached = modularity(graph.edges, clusters, settings.resolution)
    return _Found(CLUSTERED, clusters, reached, None if reached is None else 0.0)


def _measured(
    how: str,
    graph: _Graph,
    clusters: Sequence[Cluster],
    settings: CommunitySettings,
    possible: float | None,
) -> _Found:
    reached = modularity(graph.edges, clusters, settings.resolution)
    if reached is None or possible is None:
        return _Found(how, clusters, reached, None)
    drift = max(0.0, 1 - reached / possible) if possible > 0 else 0.0
    return _Found(how, clusters, reached, drift)


def _possible(graph: _Graph, settings: CommunitySettings) -> float | None:
    """Return the modularity of a fresh clustering, None without relationships."""
    if not graph.edges:
        return None
    return leiden(graph.edges, settings.resolution, settings.seed)[0]


_ENTITIES = """
SELECT id, title, degree, frequency, type NOT IN ('CONCEPT', 'DATE') AS named FROM {entities}
"""
# Edges found by rule are weighted by how much more often than chance their ends meet: always
# positive, so that no edge is lost. A model's and an imported index's weights are taken as given,
# but for a 0, which would lose one too.
_STRENGTHS = """
SELECT source_id, target_id,
       CASE WHEN (SELECT bool_and(extractor = 'nlp') FROM extractions)
            THEN weight * (1 + pmi) / 2 + 1e-9 ELSE greatest(weight, 1e-9) END AS strength
FROM {relationships} ORDER BY source_id, target_id
"""
_STORED = """
SELECT c.id, c.level, c.last_level, c.parent_id, list(m.entity_id ORDER BY m.entity_id)
FROM {communities} c JOIN {members} m ON m.community_id = c.id AND m.level = c.level
GROUP BY ALL ORDER BY c.id
"""
# What becomes of the communities, by level, when they are made those wanted.
_CHANGES = """
SELECT coalesce(new.level, old.level) AS level,
       count(*) FILTER (old.id IS NULL),
       count(*) FILTER (old.id = new.id AND old IS DISTINCT FROM new),
       count(*) FILTER (new.id IS NULL),
       count(*) FILTER (old IS NOT DISTINCT FROM new)
FROM wanted_communities new FULL JOIN {communities} old ON old.id = new.id
GROUP BY ALL ORDER BY ALL
"""


def _read_graph(con: duckdb.DuckDBPyConnection, hierarchy: Hierarchy) -> _Graph:
    relationships = con.sql(hierarchy.sql(_STRENGTHS)).pl()
    edges = list(relationships.iter_rows())
    entities = con.sql(hierarchy.sql(_ENTITIES)).pl()
    return _Graph(entities, relationships, edges, _graph_hash(con, hierarchy))


def _stored_hierarchy(con: duckdb.DuckDBPyConnection, hierarchy: Hierarchy) -> list[Cluster]:
    rows = con.execute(hierarchy.sql(_STORED)).fetchall()
    return [
        Cluster(community, level, last_level, parent, tuple(members))
        for community, level, last_level, parent, members in rows
    ]


def _frames(graph: _Graph, clusters: Sequence[Cluster]) -> tuple[pl.DataFrame, pl.DataFrame]:
    members = _member_frame(clusters)
    return _community_frame(clusters, members, graph.entities, graph.relationships), members


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
    titles = _titles(own, entities, relationships)
    return (
        frame.join(titles, left_on="id", right_on="community_id", how="left")
        .join(inside, left_on="id", right_on="community_id", how="left")
        .with_columns(pl.col("n_relationships").fill_null(0), pl.col("title").fill_null(""))
        .select(list(COMMUNITIES))
    )


def _titles(own: pl.DataFrame, entities: pl.DataFrame, relationships: pl.DataFrame) -> pl.DataFrame:
    """Return (community_id, title): the names most characteristic of each community.

    A name counts by its relationships within the community times the share of all its
    relationships that these are: what is connected with everything everywhere says nothing of a
    community. Names count for more than concepts and dates, and those of a single word least; a
    name that is a word of every day counts for less; what reads as code or number comes last. A
    name that another of the title holds is left out.
    """
    ends = pl.concat(
        [
            relationships.select(entity_id="source_id", other="target_id"),
            relationships.select(entity_id="target_id", other="source_id"),
        ]
    )
    within = (
        own.join(ends, "entity_id")
        .join(
            own,
            left_on=["other", "community_id", "level"],
            right_on=["entity_id", "community_id", "level"],
            how="semi",
        )
        .group_by("community_id", "entity_id")
        .agg(inside=pl.len())
    )
    return (
        own.join(entities, left_on="entity_id", right_on="id")
        .join(within, ["community_id", "entity_id"], how="left")
        .with_columns(
            inside=pl.col("inside").fill_null(0),
            plain=~pl.col("title").str.contains(_NO_NAME)
            & (pl.col("title").str.len_chars() <= _LONGEST_NAME),
            weight=pl.when(pl.col("named") & ~pl.col("title").str.contains(_IN_SMALL_LETTERS))
            .then(
                pl.when(pl.col("title").str.contains(_SHOUTED))
                .then(_SHOUTED_WEIGHT)
                .when(_is_everyday(pl.col("title")))
                .then(_TERM_WEIGHT)
                .otherwise(_NAME_WEIGHT)
            )
            .when(pl.col("title").str.contains(" "))
            .then(_TERM_WEIGHT)
            .otherwise(_WORD_WEIGHT),
        )
        .with_columns(
            own=pl.col("weight") * pl.col("inside") ** 2 / pl.max_horizontal("degree", "inside", 1)
        )
        .sort(
            ["plain", "own", "weight", "degree", "frequency", "title"],
            descending=[True, True, True, True, True, False],
        )
        .group_by("community_id", maintain_order=True)
        .agg(title=pl.col("title").head(_TITLE_CANDIDATES))
        .with_columns(pl.col("title").map_elements(_title, return_dtype=pl.String))
    )


def _is_everyday(title: pl.Expr) -> pl.Expr:
    """Whether a title is one word, and people mostly write that in lower case."""
    return title.map_batches(
        lambda titles: pl.Series(
            [" " not in title and usually_lower(title.casefold()) for title in titles],
            dtype=pl.Boolean,
        ),
        return_dtype=pl.Boolean,
    )


def _title(names: Sequence[str]) -> str:
    return ", ".join(names_apart(names, _TITLE_ENTITIES))


def _store(
    con: duckdb.DuckDBPyConnection,
    hierarchy: Hierarchy,
    communities: pl.DataFrame,
    members: pl.DataFrame,
) -> Mapping[int, Mapping[str, int]]:
    put_rows(con, "new_communities", communities)
    put_rows(con, "new_members", members)
    assign_identifiers(
        con, "community", "SELECT id FROM new_communities ORDER BY level, size DESC, id"
    )
    con.execute(
        """CREATE OR REPLACE TEMP TABLE wanted_communities AS
           SELECT c.id, i.human_readable_id, c.level, c.last_level, c.parent_id, c.title, c.size,
                  c.n_relationships
           FROM new_communities c JOIN identifiers i ON i.kind = 'community' AND i.id = c.id"""
    )
    counts = _changes(con, hierarchy)
    hierarchy.replace(con, "communities", "wanted_communities")
    hierarchy.replace(con, "members", "new_members")
    drop_rows(con, "new_communities", "new_members")
    return counts


def _changes(
    con: duckdb.DuckDBPyConnection, hierarchy: Hierarchy
) -> Mapping[int, Mapping[str, int]]:
    rows = con.execute(hierarchy.sql(_CHANGES)).fetchall()
    names: tuple[str, ...] = ("added", "changed", "removed", "reused")
    return {level: dict(zip(names, numbers, strict=True)) for level, *numbers in rows}


def _fingerprint(settings: CommunitySettings) -> str:
    return fingerprint(COMMUNITIES_VERSION, settings.model_dump(exclude={"levels", "max_drift"}))


def _version(state: str | None) -> str:
    return (state or "").partition(":")[0]


def _is_followed(state: str | None, settings: CommunitySettings) -> bool:
    """Whether communities in this state are repaired when the graph changes."""
    return _version(state) in (ADOPTED, _fingerprint(settings))


def _graph_hash(con: duckdb.DuckDBPyConnection, hierarchy: Hierarchy) -> str:
    entities = rows_hash(hierarchy.entities, "id, title, type, description, degree, frequency")
    relationships = rows_hash(hierarchy.relationships, "id, description, weight, pmi")
    row = con.execute(
        f"SELECT {entities}, {relationships}, (SELECT bool_and(extractor = 'nlp') FROM extractions)"
    ).fetchone()
    return ":".join(str(part) for part in row or ())


@dataclass(frozen=True)
class _LastUpdate:
    modularity: float | None = None
    drift: float | None = None
    allowed_drift: float = 0.0
    """What an adopted hierarchy lacked from the start."""


def _last_update(con: duckdb.DuckDBPyConnection) -> _LastUpdate:
    row = con.execute(
        """SELECT modularity, drift,
                  coalesce((SELECT arg_max(drift, updated_at) FROM community_updates
                            WHERE how <> $repaired), 0)
           FROM community_updates ORDER BY updated_at DESC LIMIT 1""",
        {"repaired": REPAIRED},
    ).fetchone()
    return _LastUpdate(*row) if row else _LastUpdate()


def _log_update(con: duckdb.DuckDBPyConnection, found: _Found) -> None:
    con.execute(
        """INSERT INTO community_updates
           SELECT $at, $how, (SELECT count(*) FROM entities), (SELECT count(*) FROM relationships),
                  (SELECT count(*) FROM communities), $modularity, $drift""",
        {
            "at": datetime.now(UTC),
            "how": found.how,
            "modularity": found.modularity,
            "drift": found.drift,
        },
    )


def _n_levels(con: duckdb.DuckDBPyConnection, hierarchy: Hierarchy) -> int:
    query = hierarchy.sql("SELECT coalesce(max(last_level) + 1, 0) FROM {communities}")
    row = con.execute(query).fetchone()
    return row[0] if row else 0
