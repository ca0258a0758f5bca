"""Communities: one asset per level of the hierarchy, all made by one clustering."""

# No annotations from the future: Dagster reads the class of a config from them.

from collections.abc import Iterator, Mapping, Sequence

import dagster as dg
import duckdb
from pydantic import Field

from graphrag_pipeline.assets.common import (
    INDEX_POOL,
    OWNERS,
    check,
    column_schema,
    facts,
    markdown_table,
    picture,
    stage,
    storage,
)
from graphrag_pipeline.assets.graph import ENTITIES, RELATIONSHIPS
from graphrag_pipeline.graph.communities import update_communities
from graphrag_pipeline.pages import pictures
from graphrag_pipeline.releases import invariants
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.structures.registry import ask_for_clustering

GROUP = "communities"
COVERED = "every_entity_covered_once"
_FACTS = """
SELECT count(*) AS "dagster/row_count", max(size) AS largest, median(size) AS median_size,
       count(*) FILTER (size = 1) AS of_one_entity
FROM communities WHERE level BETWEEN $first AND $last
"""
_PREVIEW = """
SELECT title, level, size AS entities, n_relationships AS relationships FROM communities
WHERE level BETWEEN $first AND $last ORDER BY size DESC, title LIMIT 8
"""
_PICTURED_LEVELS = 2
_DEEPEST = "SELECT coalesce(max(last_level), 0) FROM communities"


class CommunitiesConfig(dg.Config):
    """What the launchpad asks for."""

    recluster: bool = Field(
        default=False, description="Cluster the whole graph anew instead of repairing it."
    )


def level_key(level: int) -> dg.AssetKey:
    """Return the key of a level's community asset."""
    return dg.AssetKey(["communities", f"level_{level}"])


def level_range(level: int, levels: int) -> dict[str, int]:
    """Return the levels an asset holds: the last asset holds all deeper levels too."""
    return {"first": level, "last": level if level < levels - 1 else 1_000_000}


def build_communities(levels: int) -> dg.AssetsDefinition:
    """Return the multi-asset of all levels."""

    @dg.multi_asset(
        name="communities",
        specs=[_spec(level, levels) for level in range(levels)],
        check_specs=[
            dg.AssetCheckSpec(
                COVERED,
                asset=level_key(level),
                blocking=True,
                description="Each entity is in one community at each level of this asset.",
            )
            for level in range(levels)
        ],
        pool=INDEX_POOL,
    )
    def communities(
        index: IndexResource, config: CommunitiesConfig
    ) -> Iterator[dg.MaterializeResult]:
        with stage("communities") as clock:
            if config.recluster:
                ask_for_clustering(index.workspace)
            done = update_communities(index.store, index.settings.communities)
        told = {
            "done": done.how or "unchanged",
            "levels": done.n_levels,
            "seconds": clock.seconds,
        }
        measures = {"modularity": done.modularity, "modularity_drift": done.drift}
        told |= {name: round(value, 4) for name, value in measures.items() if value is not None}
        with index.get_connection() as con:
            counts = [_counts_of(done.counts, level, levels) for level in range(levels)]
            results = [_result(con, level, levels, told | counts[level]) for level in range(levels)]
            shown = _pictures(con, min(levels, _PICTURED_LEVELS))
        for level, result in enumerate(results):
            drawn = [picture(index.home, one) for one in shown.get(level, ())]
            together = {name: value for one in drawn for name, value in one.items()}
            yield result._replace(metadata={**together, **(result.metadata or {})})

    return communities


def _spec(level: int, levels: int) -> dg.AssetSpec:
    deeper = " and all deeper levels" if level == levels - 1 else ""
    made_from = [level_key(level - 1)] if level else [ENTITIES, RELATIONSHIPS]
    return dg.AssetSpec(
        level_key(level),
        deps=made_from,
        description=f"Communities of level {level} (C{level}){deeper}, by hierarchical Leiden.",
        kinds={"python", "duckdb"},
        owners=OWNERS,
        group_name=GROUP,
        metadata=storage("communities"),
    )


def _result(
    con: duckdb.DuckDBPyConnection, level: int, levels: int, told: Mapping[str, object]
) -> dg.MaterializeResult:
    held = level_range(level, levels)
    metadata = {
        **told,
        **facts(con, _FACTS, held),
        **column_schema(con, "communities"),
        "preview": markdown_table(con, _PREVIEW, held),
    }
    what = "entities are not covered exactly once"
    return dg.MaterializeResult(
        asset_key=level_key(level),
        metadata=metadata,
        check_results=[check(level_key(level), COVERED, _uncovered(con, held), what)],
    )


def _counts_of(counts: Mapping[int, Mapping[str, int]], level: int, levels: int) -> dict[str, int]:
    """Return what changed at the levels an asset holds; nothing when nothing changed at all."""
    held = level_range(level, levels)
    of_levels = [counts[one] for one in counts if held["first"] <= one <= held["last"]]
    names = {name: 0 for one in counts.values() for name in one}
    return {name: sum(one[name] for one in of_levels) for name in names}


def _pictures(
    con: duckdb.DuckDBPyConnection, levels: int
) -> Mapping[int, Sequence[pictures.Picture | None]]:
    """Return the pictures of the first ``levels`` levels; what concerns all is on the root's."""
    graph = pictures.read_graph(con)
    of_level = [
        pictures.graph_picture(graph, pictures.read_names(con, level)) for level in range(levels)
    ]
    of_all = (pictures.sizes_picture(con), pictures.updates_picture(con))
    return {level: (one, *(of_all if not level else ())) for level, one in enumerate(of_level)}


def _uncovered(con: duckdb.DuckDBPyConnection, held: Mapping[str, int]) -> int:
    row = con.execute(_DEEPEST).fetchone()
    last = min(held["last"], row[0] if row else 0)
    query = invariants.EVERY_ENTITY_COVERED_ONCE
    return sum(
        invariants.violations(con, query, {"level": level})
        for level in range(held["first"], last + 1)
    )
