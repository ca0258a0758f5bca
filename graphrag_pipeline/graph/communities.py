"""The tables of communities: clustered once, then repaired as the graph changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb
import numpy as np
import polars as pl

from graphrag_pipeline.core.settings import CommunitySettings, fingerprint
from graphrag_pipeline.core.text import names_apart
from graphrag_pipeline.extraction.rules.words import usually_lower
from graphrag_pipeline.graph.clustering import (
    Cluster,
    Clusters,
    Graph,
    Ints,
    cluster_graph,
    leiden,
    modularity,
)
from graphrag_pipeline.graph.repair import repair, with_old_ids
from graphrag_pipeline.store.frames import drop_rows, put_rows, value_of
from graphrag_pipeline.store.hashing import hash_of
from graphrag_pipeline.store.hierarchy import GRAPH, Hierarchy
from graphrag_pipeline.store.index_store import (
    IndexStore,
    assign_identifiers,
)

COMMUNITIES_VERSION = "5"
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


@dataclass(frozen=True)
class CommunityChanges:
    """Work done: ``how`` is clustered, repaired or improved, None when nothing had changed.

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
    if not _is_followed(hierarchy.get_state(con, _STATE), settings):
        return False
    return _is_current(con, settings, hierarchy, _graph_hash(con, hierarchy))


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
        graph_hash = _graph_hash(con, hierarchy)
        if _is_current(con, settings, hierarchy, graph_hash):
            n_levels = _n_levels(con, hierarchy)
            return CommunityChanges(None, {}, last.modularity, last.drift, n_levels)
        followed = _is_followed(hierarchy.get_state(con, _STATE), settings)
        old = _stored_clusters(con, hierarchy)
        allowed = last.allowed_drift + settings.max_drift
        entities, graph = _read_graph(con, hierarchy)
    found = cluster(graph, old, settings, allowed if followed else None)
    communities = _communities(entities, graph, found.clusters)
    with store.transaction() as con:
        counts = _store(con, hierarchy, communities, graph, found.clusters)
        hierarchy.set_state(con, _STATE, f"{_fingerprint(settings)}:{graph_hash}")
        if hierarchy.has_history:
            _log_update(con, found)
        n_levels = _n_levels(con, hierarchy)
        return CommunityChanges(found.how, counts, found.modularity, found.drift, n_levels)


def cluster_within(con: duckdb.DuckDBPyConnection, settings: CommunitySettings) -> None:
    """Cluster the graph of an index without communities, within a transaction."""
    entities, graph = _read_graph(con, GRAPH)
    clusters = cluster(graph, Clusters.of([], graph.nodes), settings).clusters
    _store(con, GRAPH, _communities(entities, graph, clusters), graph, clusters)


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
    entities, graph = _read_graph(con, GRAPH)
    adopted = Clusters.of(clusters, graph.nodes)
    communities = _communities(entities, graph, adopted).with_columns(
        pl.col("id").replace_strict(titles, default=pl.col("title")).alias("title")
    )
    _store(con, GRAPH, communities, graph, adopted)
    GRAPH.set_state(con, _STATE, f"{ADOPTED}:{_graph_hash(con, GRAPH)}" if settled else "")
    _log_update(con, _measured(ADOPTED, graph, adopted, settings, _possible(graph, settings)))


@dataclass(frozen=True)
class FoundClusters:
    """The clusters of a graph, how they came to be, and their modularity and drift."""

    how: str
    clusters: Clusters
    modularity: float | None
    drift: float | None


def cluster(
    graph: Graph, old: Clusters, settings: CommunitySettings, allowed_drift: float | None = None
) -> FoundClusters:
    """Return the old clusters of a graph repaired or else improved, or new ones.

    They are new where there are no old ones, both drift too far, or none is allowed to: even then,
    one that has the members of an old one keeps its id.
    """
    if allowed_drift is not None and len(old):
        possible = _possible(graph, settings)
        for how in (REPAIRED, IMPROVED):
            clusters = repair(graph, old, settings, regain=how == IMPROVED)
            found = _measured(how, graph, clusters, settings, possible)
            if (found.drift or 0.0) <= allowed_drift:
                return found
    clusters = with_old_ids(old, cluster_graph(graph, settings), len(graph))
    reached = modularity(graph, clusters.at(0, len(graph)), settings.resolution)
    return FoundClusters(CLUSTERED, clusters, reached, None if reached is None else 0.0)


def _measured(
    how: str,
    graph: Graph,
    clusters: Clusters,
    settings: CommunitySettings,
    possible: float | None,
) -> FoundClusters:
    reached = modularity(graph, clusters.at(0, len(graph)), settings.resolution)
    if reached is None or possible is None:
        return FoundClusters(how, clusters, reached, None)
    drift = max(0.0, 1 - reached / possible) if possible > 0 else 0.0
    return FoundClusters(how, clusters, reached, drift)


def _possible(graph: Graph, settings: CommunitySettings) -> float | None:
    """Return the modularity of a fresh clustering, None without relationships."""
    if not len(graph.source):
        return None
    return leiden(graph, settings.resolution, settings.seed)[0]


_PLACES = "SELECT id, row_number() OVER (ORDER BY id) - 1 AS place FROM {entities}"
_ENTITIES = """
SELECT id, title, degree, frequency, nullif(type, 'DATE') <> 'CONCEPT' AS named FROM {entities}
ORDER BY id
"""
# Edges found by rule are weighted by how much more often than chance their ends meet: always
# positive, so that no edge is lost. A model's and an imported index's weights are taken as given,
# but for a 0, which would lose one too.
_EDGES = f"""
WITH places AS MATERIALIZED ({_PLACES})
SELECT s.place AS source, t.place AS target,
       CASE WHEN (SELECT bool_and(extractor = 'nlp') FROM extractions)
            THEN weight * (1 + pmi) / 2 + 1e-9 ELSE greatest(weight, 1e-9) END::DOUBLE AS weight
FROM {{relationships}} JOIN places s ON s.id = source_id JOIN places t ON t.id = target_id
ORDER BY source, target
"""
_STORED = "SELECT id, level, parent_id FROM {communities} ORDER BY id"
# Where an entity is no more, its place is -1.
_STORED_MEMBERS = f"""
WITH places AS MATERIALIZED ({_PLACES}),
stored AS (SELECT id, level, row_number() OVER (ORDER BY id) - 1 AS number FROM {{communities}})
SELECT number, coalesce(p.place, -1) AS place FROM {{members}} m
JOIN stored c ON c.id = m.community_id AND c.level = m.level
LEFT JOIN places p ON p.id = m.entity_id ORDER BY ALL
"""
_WANTED_MEMBERS = """
SELECT c.id AS community_id, n.id AS entity_id,
       unnest(range(c.level, c.last_level + 1))::INTEGER AS level
FROM new_members m JOIN new_communities c ON c.number = m.number JOIN new_nodes n USING (place)
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


def _read_graph(con: duckdb.DuckDBPyConnection, hierarchy: Hierarchy) -> tuple[pl.DataFrame, Graph]:
    entities = con.sql(hierarchy.sql(_ENTITIES)).pl()
    edges = con.sql(hierarchy.sql(_EDGES)).pl()
    source, target, weight = (edges[name].to_numpy() for name in ("source", "target", "weight"))
    return entities, Graph(entities["id"], source, target, weight)


def _stored_clusters(con: duckdb.DuckDBPyConnection, hierarchy: Hierarchy) -> Clusters:
    stored = con.sql(hierarchy.sql(_STORED)).pl()
    members = con.sql(hierarchy.sql(_STORED_MEMBERS)).pl()
    place = {id: number for number, id in enumerate(stored["id"])}
    sizes = np.bincount(members["number"].to_numpy(), minlength=len(stored))
    return Clusters(
        stored["id"].to_list(),
        stored["level"].cast(pl.Int64).to_numpy(),
        np.array([place.get(id, -1) for id in stored["parent_id"]], dtype=np.int64),
        np.append(0, np.cumsum(sizes)),
        members["place"].to_numpy(),
    )


def _communities(entities: pl.DataFrame, graph: Graph, clusters: Clusters) -> pl.DataFrame:
    """Return the rows of ``COMMUNITIES``, by the place of their cluster."""
    n_relationships = np.zeros(len(clusters), dtype=np.int64)
    titles: dict[int, str] = {}
    names = _names(entities)
    for level in range(int(clusters.level.max(initial=-1)) + 1):
        label = clusters.at(level, len(graph))
        within = graph.within(label)
        n_relationships += np.bincount(label[within.source], minlength=len(clusters))
        titles |= _titles(names, label, within)
    return pl.DataFrame(
        {
            "id": clusters.ids,
            "level": clusters.level,
            "last_level": clusters.last_level,
            "parent_id": [clusters.ids[above] if above >= 0 else None for above in clusters.parent],
            "title": [titles.get(place, "") for place in range(len(clusters))],
            "size": clusters.sizes,
            "n_relationships": n_relationships,
        },
        schema=COMMUNITIES,
    )


def _names(entities: pl.DataFrame) -> pl.DataFrame:
    """Return what each entity's title is as a name, in the same order.

    Names count for more than concepts, those of a single word least, and dates for nothing; a name
    that is a word of every day counts for less; what reads as code or number comes last.
    """
    title = pl.col("title")
    return entities.select(
        "title",
        "degree",
        "frequency",
        rank=title.rank("dense"),
        plain=~title.str.contains(_NO_NAME) & (title.str.len_chars() <= _LONGEST_NAME),
        weight=pl.when(pl.col("named").is_null())
        .then(0)
        .when(pl.col("named") & ~title.str.contains(_IN_SMALL_LETTERS))
        .then(
            pl.when(title.str.contains(_SHOUTED))
            .then(_SHOUTED_WEIGHT)
            .when(_is_everyday(title))
            .then(_TERM_WEIGHT)
            .otherwise(_NAME_WEIGHT)
        )
        .when(title.str.contains(" "))
        .then(_TERM_WEIGHT)
        .otherwise(_WORD_WEIGHT),
    )


def _titles(names: pl.DataFrame, label: Ints, within: Graph) -> dict[int, str]:
    """Return the names most characteristic of each community of a level, by its place.

    A name counts by its relationships within the community times the share of all its
    relationships that these are: what is connected with everything everywhere says nothing of a
    community. What hardly any text says counts for less. A name that another of the title holds is
    left out.
    """
    nodes = np.flatnonzero(label >= 0)
    inside = np.bincount(np.concatenate([within.source, within.target]), minlength=len(label))
    ranked = (
        names[nodes]
        .with_columns(community=label[nodes], inside=inside[nodes])
        .with_columns(
            own=pl.col("weight")
            * pl.col("frequency").log1p()
            * pl.col("inside") ** 2
            / (pl.max_horizontal("degree", "inside") + 1)
        )
        .sort(
            ["community", "plain", "own", "weight", "degree", "frequency", "rank"],
            descending=[False, True, True, True, True, True, False],
        )
        .group_by("community", maintain_order=True)
        .agg(pl.col("title").head(_TITLE_CANDIDATES))
    )
    return {
        community: ", ".join(names_apart(chosen, _TITLE_ENTITIES))
        for community, chosen in ranked.iter_rows()
    }


def _is_everyday(title: pl.Expr) -> pl.Expr:
    """Whether a title is one word, and people mostly write that in lower case."""
    return title.map_batches(
        lambda titles: pl.Series(
            [" " not in title and usually_lower(title.casefold()) for title in titles],
            dtype=pl.Boolean,
        ),
        return_dtype=pl.Boolean,
    )


def _store(
    con: duckdb.DuckDBPyConnection,
    hierarchy: Hierarchy,
    communities: pl.DataFrame,
    graph: Graph,
    clusters: Clusters,
) -> Mapping[int, Mapping[str, int]]:
    number = np.arange(len(clusters))
    places = np.arange(len(graph))
    put_rows(con, "new_communities", communities.with_columns(number=number))
    put_rows(
        con, "new_members", pl.DataFrame({"number": clusters.owner, "place": clusters.members})
    )
    put_rows(con, "new_nodes", pl.DataFrame({"place": places, "id": graph.nodes}))
    assign_identifiers(
        con, "community", "SELECT id FROM new_communities ORDER BY level, size DESC, id"
    )
    con.execute(
        f"""CREATE OR REPLACE TEMP TABLE wanted_communities AS
            SELECT c.id, i.human_readable_id, c.level, c.last_level, c.parent_id, c.title, c.size,
                   c.n_relationships
            FROM new_communities c JOIN identifiers i ON i.kind = 'community' AND i.id = c.id;
            CREATE OR REPLACE TEMP TABLE wanted_members AS {_WANTED_MEMBERS}"""
    )
    counts = _changes(con, hierarchy)
    hierarchy.replace(con, "communities", "wanted_communities")
    hierarchy.replace(con, "members", "wanted_members")
    drop_rows(con, "new_communities", "new_members", "new_nodes", "wanted_members")
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


def _is_current(
    con: duckdb.DuckDBPyConnection,
    settings: CommunitySettings,
    hierarchy: Hierarchy,
    graph_hash: str,
) -> bool:
    state = hierarchy.get_state(con, _STATE)
    return _is_followed(state, settings) and state == f"{_version(state)}:{graph_hash}"


def _is_followed(state: str | None, settings: CommunitySettings) -> bool:
    """Whether communities in this state are repaired when the graph changes."""
    return _version(state) in (ADOPTED, _fingerprint(settings))


def _graph_hash(con: duckdb.DuckDBPyConnection, hierarchy: Hierarchy) -> str:
    entities = "id, title, type, description, degree, frequency"
    by_rule = con.execute("SELECT bool_and(extractor = 'nlp') FROM extractions").fetchone()
    parts = [
        hash_of(con, hierarchy.entities, entities),
        hash_of(con, hierarchy.relationships, "id, description, weight, pmi"),
        *(by_rule or ()),
    ]
    return ":".join(map(str, parts))


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


def _log_update(con: duckdb.DuckDBPyConnection, found: FoundClusters) -> None:
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
    return value_of(con, query)
