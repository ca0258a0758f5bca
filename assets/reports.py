"""Community reports: one asset per level, the deepest written first."""

from __future__ import annotations

import dagster as dg

from graphrag_pipeline.assets.common import (
    INDEX_POOL,
    OWNERS,
    check,
    column_schema,
    facts,
    markdown_table,
    stage,
    storage,
    warning,
)
from graphrag_pipeline.assets.communities import level_key, level_range
from graphrag_pipeline.releases import invariants
from graphrag_pipeline.reports.levels import update_reports
from graphrag_pipeline.reports.model_writer import report_writer
from graphrag_pipeline.resources import IndexResource

GROUP = "reports"
REPORTED = "every_community_reported"
WRITTEN = "no_report_failed"
_FACTS = """
SELECT count(*) AS "dagster/row_count", avg(rating) AS mean_rating, avg(coverage) AS mean_coverage,
       sum(n_tokens)::BIGINT AS tokens
FROM community_reports WHERE level BETWEEN $first AND $last
"""
_PREVIEW = """
SELECT r.title, r.rating, c.size AS entities, r.summary
FROM community_reports r JOIN communities c ON c.id = r.community_id
WHERE r.level BETWEEN $first AND $last ORDER BY r.rating DESC, c.size DESC, r.title LIMIT 6
"""
_LONG_CELL = 400
_FAILURES = """
SELECT c.title AS community, c.size AS entities, f.attempts, f.error AS reason
FROM report_failures f JOIN communities c ON c.id = f.community_id
WHERE f.level BETWEEN $first AND $last ORDER BY c.size DESC, c.title LIMIT 10
"""


def report_key(level: int) -> dg.AssetKey:
    """Return the key of a level's report asset."""
    return dg.AssetKey(["community_reports", f"level_{level}"])


def build_reports(levels: int) -> list[dg.AssetsDefinition]:
    """Return one asset per level; the last writes all deeper levels too."""
    return [_report_asset(level, levels) for level in range(levels)]


def _report_asset(level: int, levels: int) -> dg.AssetsDefinition:
    key = report_key(level)
    is_last = level == levels - 1
    below = [] if is_last else [report_key(level + 1)]

    @dg.asset(
        key=key,
        deps=[level_key(level), *below],
        description=f"Reports on the communities of level {level}"
        + (" and all deeper levels." if is_last else "; they may stand on the level below."),
        group_name=GROUP,
        kinds={"python", "duckdb"},
        owners=OWNERS,
        pool=INDEX_POOL,
        metadata=storage("community_reports"),
        check_specs=[
            dg.AssetCheckSpec(
                REPORTED,
                asset=key,
                blocking=True,
                description="Each community of two or more entities has a report, or failed.",
            ),
            dg.AssetCheckSpec(
                WRITTEN, asset=key, description="Warns of reports that the model could not write."
            ),
        ],
    )
    def community_reports(index: IndexResource) -> dg.MaterializeResult:
        with stage("reports", levels - 1 - level, levels) as clock, index.spending() as spent:
            done = update_reports(
                index.store,
                index.settings.reports,
                level,
                and_deeper=is_last,
                writer=report_writer(index.settings),
            )
        held = level_range(level, levels)
        with index.get_connection() as con:
            metadata = {
                **facts(con, _FACTS, held),
                **column_schema(con, "community_reports"),
                "preview": markdown_table(con, _PREVIEW, held, _LONG_CELL),
            }
            if done.failed:
                metadata["failures"] = markdown_table(con, _FAILURES, held, _LONG_CELL)
            missing = invariants.violations(con, invariants.EVERY_COMMUNITY_REPORTED, {**held})
        counts = {
            "written": done.written,
            "reused": done.reused,
            "slightly_outdated": done.outdated,
            "removed": done.removed,
        }
        return dg.MaterializeResult(
            metadata={**metadata, **counts, **spent.metadata, "seconds": clock.seconds},
            check_results=[
                check(key, REPORTED, missing, "communities have no report"),
                warning(key, WRITTEN, done.failed, "reports failed; see report_failures"),
            ],
        )

    return community_reports
