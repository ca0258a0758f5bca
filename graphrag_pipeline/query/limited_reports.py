"""Reports for what a limited release shows, in place of those that rest on other documents, too.

They are made of sentences, as all reports are without a model, from the limited graph alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphrag_pipeline.reports.extractive import ExtractiveWriter
from graphrag_pipeline.reports.inputs import level_contexts, read_elements, read_level
from graphrag_pipeline.reports.levels import report_rows
from graphrag_pipeline.store.frames import drop_rows, put_rows
from graphrag_pipeline.store.hierarchy import GRAPH, Hierarchy
from graphrag_pipeline.structures.registry import hierarchies_with_stand_ins

if TYPE_CHECKING:
    import duckdb

    from graphrag_pipeline.core.settings import ReportSettings

WRITER = "stand-in"

_LACKING = """
SELECT id, level FROM {communities} c
ANTI JOIN {reports} r ON r.community_id = c.id WHERE size >= 2
"""
_HAS_REPORTS = "SELECT count(*) > 0 FROM published.hierarchy_reports WHERE hierarchy = ?"


def write_stand_ins(con: duckdb.DuckDBPyConnection, settings: ReportSettings) -> None:
    """Write a report for each community that has none, where its hierarchy has reports."""
    for hierarchy in hierarchies_with_stand_ins():
        if con.execute(_HAS_REPORTS, [hierarchy.name]).fetchone() == (True,):
            write_reports(con, settings, hierarchy)


def write_reports(
    con: duckdb.DuckDBPyConnection, settings: ReportSettings, hierarchy: Hierarchy = GRAPH
) -> None:
    """Write a report for each community that has none.

    The deepest first, for reports stand on those of the communities within.
    """
    writer = ExtractiveWriter(settings)
    lacking = con.sql(hierarchy.sql(_LACKING)).pl()
    if lacking.is_empty():
        return
    put_rows(con, "lacking", lacking)
    elements = read_elements(con, writer, hierarchy)
    for number in sorted(lacking["level"].unique(), reverse=True):
        of_these = f"SELECT id FROM lacking WHERE level = {number:d}"
        level = read_level(con, number, hierarchy, of_these)
        contexts = level_contexts(elements, level, settings.max_context_tokens, writer.version)
        reports = writer.write_from(con, contexts, hierarchy)
        rows = report_rows(contexts, reports, number, WRITER)
        hierarchy.insert(con, "reports", rows.with_columns(outdated=0.0))
    drop_rows(con, "lacking")
