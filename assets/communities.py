"""Communities: one asset per level of the hierarchy, all made by one clustering."""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg
import duckdb
from pydantic import Field

from graphrag_pipeline.assets.graph import ENTITIES, RELATIONSHIPS
from graphrag_pipeline.assets.stages import (
    AssetStage,
    Pictures,
    StageOutcome,
    StageTable,
    shown,
)
from graphrag_pipeline.graph.communities import CommunityChanges
from graphrag_pipeline.pages import pictures
from graphrag_pipeline.pipeline.stages import LevelsStage, level_range
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.structures.registry import ask_for_clustering
from graphrag_pipeline.structures.structure import Preview

GROUP = "communities"
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


class CommunitiesConfig(dg.Config):
    """Options of the launchpad."""

    recluster: bool = Field(
        default=False, description="Cluster the whole graph anew instead of repairing it."
    )


def level_key(level: int) -> dg.AssetKey:
    """Return the key of a level's community asset."""
    return dg.AssetKey([GROUP, f"communities_level_{level}"])


def build_communities(stage: LevelsStage) -> AssetStage:
    """Return the stage of all levels."""
    levels = stage.levels

    def tell(index: IndexResource, outcome: CommunityChanges) -> StageOutcome:
        measures = {"modularity": outcome.modularity, "modularity_drift": outcome.drift}
        return StageOutcome(
            {
                "done": outcome.how or "unchanged",
                "levels": outcome.n_levels,
                **{name: round(value, 4) for name, value in measures.items() if value is not None},
            },
            of_table={level_key(n): _counts_of(outcome.counts, n, levels) for n in range(levels)},
        )

    def pictures(con: duckdb.DuckDBPyConnection) -> Pictures:
        return _pictures(con, min(levels, _PICTURED_LEVELS))

    def prepare(index: IndexResource, config: CommunitiesConfig) -> None:
        if config.recluster:
            ask_for_clustering(index.workspace.store)

    return shown(
        stage,
        tell,
        [_table(level, levels) for level in range(levels)],
        prepare=prepare,
        config=CommunitiesConfig,
        spends=False,
        pictures=pictures,
    )


def _table(level: int, levels: int) -> StageTable:
    deeper = " and all deeper levels" if level == levels - 1 else ""
    return StageTable(
        key=level_key(level),
        about=f"Communities of level {level} (C{level}){deeper}, by hierarchical Leiden.",
        group=GROUP,
        made_from=[level_key(level - 1)] if level else [ENTITIES, RELATIONSHIPS],
        table="communities",
        facts=_FACTS,
        previews={"preview": Preview(_PREVIEW)},
        parameters=level_range(level, levels),
    )


def _counts_of(counts: Mapping[int, Mapping[str, int]], level: int, levels: int) -> dict[str, int]:
    """Return what changed at the levels an asset holds; nothing when nothing changed at all."""
    bounds = level_range(level, levels)
    of_levels = [
        counts[level_number]
        for level_number in counts
        if bounds["first"] <= level_number <= bounds["last"]
    ]
    names = {name: 0 for numbers in counts.values() for name in numbers}
    return {name: sum(numbers[name] for numbers in of_levels) for name in names}


def _pictures(con: duckdb.DuckDBPyConnection, levels: int) -> Pictures:
    """Return the pictures of the first ``levels`` levels; what concerns all is on the root's."""
    graph = pictures.read_graph(con)
    of_all = (pictures.sizes_picture(con), pictures.updates_picture(con))
    return {
        level_key(level): (
            pictures.graph_picture(graph, pictures.read_names(con, level)),
            *(of_all if not level else ()),
        )
        for level in range(levels)
    }
