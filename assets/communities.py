"""Communities: one asset per level of the hierarchy, all made by one clustering."""

from __future__ import annotations

import time
from collections.abc import Iterator

import dagster as dg

from assets.common import INDEX_POOL, OWNERS, check, column_schema, markdown_table, storage
from assets.graph import ENTITIES, RELATIONSHIPS
from graphrag_pipeline import invariants, progress
from graphrag_pipeline.communities import COMMUNITIES_VERSION, update_communities
from graphrag_pipeline.config import CommunitySettings, fingerprint
from resources import IndexResource

GROUP = "communities"
_PREVIEW = """
SELECT title, level, size, n_relationships FROM communities
WHERE level BETWEEN getvariable('first') AND getvariable('last')
ORDER BY size DESC, title LIMIT 12
"""
_COUNTS = """
SELECT count(*), coalesce(max(size), 0), coalesce(median(size), 0)
FROM communities WHERE level BETWEEN ? AND ?
"""
_DEEPEST = 1_000_000


def level_key(level: int) -> dg.AssetKey:
    """Return the key of a level's community asset."""
    return dg.AssetKey(["communities", f"level_{level}"])


def build_communities(settings: CommunitySettings) -> dg.AssetsDefinition:
    """Return the multi-asset of all levels; its last asset holds all deeper levels too."""
    keys = [level_key(level) for level in range(settings.levels)]
    version = fingerprint(COMMUNITIES_VERSION, settings)

    @dg.multi_asset(
        name="communities",
        specs=[_spec(level, settings.levels, version) for level in range(settings.levels)],
        check_specs=[
            dg.AssetCheckSpec("every_entity_covered_once", asset=key, blocking=True)
            for key in keys
        ],
        pool=INDEX_POOL,
    )
    def communities(index: IndexResource) -> Iterator[dg.MaterializeResult]:
        started = time.perf_counter()
        progress.report("communities", 0, 1)
        done = update_communities(index.store, index.settings.communities)
        progress.report("communities", 1, 1)
        facts = {
            "n_levels": done.n_levels,
            "modularity": done.modularity if done.modularity is not None else 0.0,
            "seconds": round(time.perf_counter() - started, 3),
            "unchanged": not done.counts,
            **dict(done.counts),
        }
        for level, key in enumerate(keys):
            last = level if level < settings.levels - 1 else _DEEPEST
            yield _result(index, key, level, last, facts)

    return communities


def _spec(level: int, levels: int, version: str) -> dg.AssetSpec:
    deeper = " and all deeper levels" if level == levels - 1 else ""
    above = [level_key(level - 1)] if level else []
    return dg.AssetSpec(
        level_key(level),
        deps=[ENTITIES, RELATIONSHIPS, *above],
        description=f"Communities of level {level} (C{level}){deeper}, by hierarchical Leiden.",
        kinds={"python", "duckdb"},
        owners=OWNERS,
        group_name=GROUP,
        code_version=version,
        metadata=storage("communities"),
    )


def _result(
    index: IndexResource, key: dg.AssetKey, level: int, last: int, facts: dict[str, object]
) -> dg.MaterializeResult:
    with index.get_connection() as con:
        con.execute("SET VARIABLE first = ?", [level])
        con.execute("SET VARIABLE last = ?", [last])
        count, largest, middle = con.execute(_COUNTS, [level, last]).fetchone() or (0, 0, 0)
        deepest = con.execute("SELECT coalesce(max(last_level), 0) FROM communities").fetchone()
        covered = range(level, min(last, deepest[0] if deepest else 0) + 1)
        uncovered = sum(
            invariants.violations(con, invariants.EVERY_ENTITY_COVERED_ONCE, {"level": each})
            for each in covered
        )
        metadata = {
            **facts,
            "dagster/row_count": count,
            "dagster/column_schema": column_schema(con, "communities"),
            "largest": largest,
            "median_size": float(middle),
            "preview": markdown_table(con, _PREVIEW),
        }
    return dg.MaterializeResult(
        asset_key=key,
        metadata=metadata,
        check_results=[
            check(key, "every_entity_covered_once", uncovered, "entities not covered exactly once")
        ],
    )
