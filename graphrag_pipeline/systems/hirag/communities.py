"""Communities of the graph of all layers and the reports on them, by the code for those of one.

:data:`LAYERED` says which graph that is; what clusters, repairs and reports on a graph takes it as
an argument.
"""

from __future__ import annotations

import duckdb

from graphrag_pipeline.core.settings import (
    ReportSettings,
    Settings,
    fingerprint,
)
from graphrag_pipeline.graph.communities import (
    COMMUNITIES_VERSION,
    communities_current,
)
from graphrag_pipeline.reports.levels import (
    REPORTS_VERSION,
    LevelReports,
    reports_current,
    update_reports,
)
from graphrag_pipeline.reports.model_writer import report_writer
from graphrag_pipeline.store.hierarchy import Hierarchy
from graphrag_pipeline.store.index_store import IndexStore

LAYERED = Hierarchy(
    "hirag",
    ("hirag_communities", "hirag_community_members", "hirag_community_reports"),
    entities="""(
SELECT e.* REPLACE (degree + coalesce(n, 0) AS degree) FROM entities e LEFT JOIN (
    SELECT source_id AS id, count(*) AS n FROM hirag_relationships GROUP BY ALL) USING (id)
UNION ALL BY NAME
SELECT id, human_readable_id, title, type, description, size AS frequency, degree, n_tokens
FROM hirag_entities)""",
    relationships="""(
FROM relationships UNION ALL BY NAME
SELECT * EXCLUDE (layer), 1.0 AS pmi FROM hirag_relationships)""",
)
"""The graph of all layers, with its communities and reports."""


def update_hirag_reports(store: IndexStore, settings: Settings) -> LevelReports:
    """Bring the reports on these communities up to date, every level, the deepest first.

    Unlike those on the graph alone, none is let fall behind a little.
    """
    exact, writer = _exact(settings.reports), report_writer(settings)
    return update_reports(store, exact, 0, and_deeper=True, writer=writer, hierarchy=LAYERED)


def hirag_communities_current(con: duckdb.DuckDBPyConnection, settings: Settings) -> bool:
    """Whether communities and reports are those of the graph of all layers as it is."""
    return hirag_clustered(con, settings) and reports_current(
        con, _exact(settings.reports), report_writer(settings), LAYERED
    )


def hirag_clustered(con: duckdb.DuckDBPyConnection, settings: Settings) -> bool:
    """Whether communities are those of the graph of all layers as it is, whatever their reports."""
    return communities_current(con, settings.communities, LAYERED)


def communities_version(settings: Settings) -> str:
    """Return what decides communities and reports besides the graph of all layers."""
    versions = (COMMUNITIES_VERSION, REPORTS_VERSION, report_writer(settings).version)
    return fingerprint(*versions, settings.communities, settings.reports)


def _exact(settings: ReportSettings) -> ReportSettings:
    return settings.model_copy(update={"max_outdated": 0.0})
