"""Community reports: one asset per level, the deepest written first."""

from __future__ import annotations

import time

import dagster as dg

from assets.common import INDEX_POOL, OWNERS, check, column_schema, markdown_table, storage
from assets.communities import level_key
from graphrag_pipeline import invariants, progress
from graphrag_pipeline.config import ReportSettings, fingerprint
from graphrag_pipeline.extractive import EXTRACTIVE_VERSION
from graphrag_pipeline.reports import REPORTS_VERSION, update_reports
from resources import IndexResource

GROUP = "reports"
_DEEPEST = 1_000_000
_PREVIEW = """
SELECT title, level, rating, coverage, summary FROM community_reports
WHERE level BETWEEN getvariable('first') AND getvariable('last')
ORDER BY rating DESC, title LIMIT 8
"""


def report_key(level: int) -> dg.AssetKey:
    """Return the key of a level's report asset."""
    return dg.AssetKey(["community_reports", f"level_{level}"])


def build_reports(settings: ReportSettings, levels: int) -> list[dg.AssetsDefinition]:
    """Return one asset per level; the last writes all deeper levels too."""
    version = fingerprint(REPORTS_VERSION, EXTRACTIVE_VERSION, settings)
    return [_report_asset(level, levels, version) for level in range(levels)]


def _report_asset(level: int, levels: int, version: str) -> dg.AssetsDefinition:
    is_last = level == levels - 1
    last = _DEEPEST if is_last else level
    below = [] if is_last else [report_key(level + 1)]

    @dg.asset(
        key=report_key(level),
        deps=[level_key(level), *below],
        description=f"Reports on the communities of level {level}"
        + (" and all deeper levels." if is_last else "; they may stand on the level below."),
        group_name=GROUP,
        kinds={"python", "duckdb"},
        owners=OWNERS,
        pool=INDEX_POOL,
        code_version=version,
        metadata=storage("community_reports"),
        check_specs=[
            dg.AssetCheckSpec("every_community_reported", asset=report_key(level), blocking=True)
        ],
    )
    def community_reports(index: IndexResource) -> dg.MaterializeResult:
        started = time.perf_counter()
        progress.report("reports", levels - 1 - level, levels)
        done = update_reports(index.store, index.settings.reports, level, and_deeper=is_last)
        progress.report("reports", levels - level, levels)
        with index.get_connection() as con:
            con.execute("SET VARIABLE first = ?", [level])
            con.execute("SET VARIABLE last = ?", [last])
            missing = invariants.violations(
                con, invariants.EVERY_COMMUNITY_REPORTED, {"first": level, "last": last}
            )
            metadata: dict[str, object] = {
                "dagster/row_count": done.written + done.reused,
                "dagster/column_schema": column_schema(con, "community_reports"),
                "written": done.written,
                "reused": done.reused,
                "removed": done.removed,
                "seconds": round(time.perf_counter() - started, 3),
                "preview": markdown_table(con, _PREVIEW),
            }
        if done.mean_coverage is not None:
            metadata["mean_coverage"] = done.mean_coverage
        return dg.MaterializeResult(
            metadata=metadata,
            check_results=[
                check(
                    report_key(level), "every_community_reported", missing, "communities lack a report"
                )
            ],
        )

    return community_reports
