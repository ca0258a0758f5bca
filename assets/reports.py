"""Community reports: one asset per level, the deepest written first."""

from __future__ import annotations

import dagster as dg

from graphrag_pipeline.assets.communities import level_key
from graphrag_pipeline.assets.stages import (
    AssetStage,
    StageOutcome,
    StageTable,
    shown,
)
from graphrag_pipeline.pipeline.stages import ReportStage, level_range
from graphrag_pipeline.releases import invariants
from graphrag_pipeline.reports.levels import LevelReports
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.structures.structure import Check, Preview

GROUP = "reports"
_FACTS = """
SELECT count(*) AS "dagster/row_count", avg(rating) AS mean_rating, avg(coverage) AS mean_coverage,
       sum(n_tokens)::BIGINT AS tokens,
       sum(len([f FOR f IN findings IF NOT contains(f.summary || f.explanation, '[Data:')]))
           FILTER (writer NOT IN ('extractive', 'import'))
           / nullif(sum(len(findings)) FILTER (writer NOT IN ('extractive', 'import')), 0)
           AS findings_without_a_reference
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
    return dg.AssetKey([GROUP, f"reports_level_{level}"])


def build_reports(stage: ReportStage) -> AssetStage:
    """Return the stage of a level; the last writes all deeper levels too."""
    level, levels = stage.level, stage.levels
    is_last = level == levels - 1
    reach = " and all deeper levels." if is_last else "; they may draw on the level below."

    def tell(index: IndexResource, outcome: LevelReports) -> StageOutcome:
        counts = {
            "written": outcome.written,
            "reused": outcome.reused,
            "slightly_outdated": outcome.outdated,
            "removed": outcome.removed,
        }
        return StageOutcome(counts, outcome.failed)

    return shown(
        stage,
        tell,
        [
            StageTable(
                key=report_key(level),
                about=f"Reports on the communities of level {level}{reach}",
                group=GROUP,
                made_from=[level_key(level), *([] if is_last else [report_key(level + 1)])],
                table="community_reports",
                facts=_FACTS,
                previews={
                    "preview": Preview(_PREVIEW, _LONG_CELL),
                    "failures": Preview(_FAILURES, _LONG_CELL, if_any=True),
                },
                parameters=level_range(level, levels),
                checks=[
                    Check(
                        "every_report_rests_on_something",
                        "Warns of reports that mention none of their community's relationships.",
                        invariants.REPORTS_ON_NOTHING,
                        "reports cover none of their community's relationships",
                        warns=True,
                    ),
                    Check(
                        "no_report_failed",
                        "Warns of reports that the model could not write.",
                        "",
                        "reports failed; see report_failures",
                        warns=True,
                    ),
                ],
            )
        ],
    )
