"""Communities of the graph of all layers and the reports on them, by the code for those of one.

:func:`layered` puts tables of this graph before those of the index by the same names, so that all
that clusters, repairs and reports on a graph does so here too, one query like the other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import duckdb

from graphrag_pipeline.core.settings import ReportSettings, Settings, fingerprint
from graphrag_pipeline.graph.communities import (
    COMMUNITIES_VERSION,
    CommunityChanges,
    communities_current,
    update_communities,
)
from graphrag_pipeline.reports.extractive import ExtractiveWriter
from graphrag_pipeline.reports.levels import (
    REPORTS_VERSION,
    LevelReports,
    reports_current,
    update_reports,
)
from graphrag_pipeline.reports.model_writer import report_writer
from graphrag_pipeline.store.index_store import IndexStore, replace_links
from graphrag_pipeline.store.workspace import Workspace

_PREFIX = "hirag:"
_KEYS = {
    "communities": ("id",),
    "community_members": ("community_id", "entity_id", "level"),
    "community_reports": ("id",),
}
_VIEWS = """
CREATE TEMP VIEW entities AS
SELECT e.* REPLACE (degree + coalesce(n, 0) AS degree) FROM {index}.main.entities e LEFT JOIN (
    SELECT source_id AS id, count(*) AS n FROM {index}.main.hirag_relationships GROUP BY ALL
) USING (id)
UNION ALL BY NAME
SELECT id, human_readable_id, title, type, description, size AS frequency, degree, n_tokens
FROM {index}.main.hirag_entities;
CREATE TEMP VIEW relationships AS
FROM {index}.main.relationships UNION ALL BY NAME
SELECT * EXCLUDE (layer), 1.0 AS pmi FROM {index}.main.hirag_relationships;
CREATE TEMP TABLE communities AS FROM {index}.main.hirag_communities;
CREATE TEMP TABLE community_members AS FROM {index}.main.hirag_community_members;
CREATE TEMP TABLE community_reports AS FROM {index}.main.hirag_community_reports;
ALTER TABLE community_reports ALTER outdated SET DEFAULT 0;
CREATE TEMP TABLE report_failures AS FROM {index}.staging.hirag_report_failures;
CREATE TEMP TABLE report_elements AS FROM {index}.main.report_elements LIMIT 0;
CREATE TEMP TABLE community_updates AS FROM {index}.main.community_updates LIMIT 0;
CREATE TEMP TABLE meta AS
SELECT substr(key, length($prefix) + 1) AS key, value FROM {index}.main.meta
WHERE starts_with(key, $prefix);
CREATE TEMP TABLE lost_before AS FROM {index}.staging.lost_evidence;
"""
_KEEP = """
DELETE FROM {index}.staging.hirag_report_failures;
INSERT INTO {index}.staging.hirag_report_failures FROM report_failures;
DELETE FROM {index}.main.meta WHERE starts_with(key, $prefix);
INSERT INTO {index}.main.meta SELECT $prefix || key, value FROM meta;
INSERT INTO {index}.staging.lost_evidence
FROM lost_before ANTI JOIN {index}.staging.lost_evidence USING (element_id);
"""
_DROP = """
DROP VIEW temp.entities; DROP VIEW temp.relationships; DROP TABLE temp.communities;
DROP TABLE temp.community_members; DROP TABLE temp.community_reports;
DROP TABLE temp.report_failures; DROP TABLE temp.report_elements;
DROP TABLE temp.community_updates; DROP TABLE temp.meta; DROP TABLE temp.lost_before;
"""


class LayeredStore(IndexStore):
    """The index as its graph of all layers: what is written goes to the tables of that."""

    @contextlib.contextmanager
    def read(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection for reading."""
        with super().read() as con, layered(con):
            yield con

    @contextlib.contextmanager
    def transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection inside one transaction: all of it is kept, or none."""
        with super().transaction() as con, layered(con):
            yield con
            index = _name(con)
            for table, key in _KEYS.items():
                replace_links(con, f"{index}.main.hirag_{table}", table, key)
            _run(con, _KEEP)


@contextlib.contextmanager
def layered(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Let unqualified names mean the graph of all layers, its communities and reports."""
    _run(con, _VIEWS)
    yield
    con.execute(_DROP)


def update_hirag_communities(workspace: Workspace) -> CommunityChanges:
    """Bring the communities of the graph of all layers up to date, as those of the graph alone."""
    store = LayeredStore(workspace.store.path)
    return update_communities(store, workspace.settings.communities)


def update_hirag_reports(workspace: Workspace) -> LevelReports:
    """Bring the reports on these communities up to date, every level, the deepest first.

    Unlike those on the graph alone, none is let fall behind a little.
    """
    store, settings = LayeredStore(workspace.store.path), workspace.settings
    given, writer = _exact(settings.reports), report_writer(settings)
    return update_reports(store, given, 0, and_deeper=True, writer=writer)


def hirag_communities_current(con: duckdb.DuckDBPyConnection, settings: Settings) -> bool:
    """Whether communities and reports are those of the graph of all layers as it is."""
    with layered(con):
        return communities_current(con, settings.communities) and reports_current(
            con, _exact(settings.reports), report_writer(settings)
        )


def communities_version(settings: Settings) -> str:
    """Return what decides communities and reports besides the graph of all layers."""
    writer = report_writer(settings) or ExtractiveWriter(settings.reports)
    versions = (COMMUNITIES_VERSION, REPORTS_VERSION, writer.version)
    return fingerprint(*versions, settings.communities, settings.reports)


def forget_communities(con: duckdb.DuckDBPyConnection) -> None:
    """Let the next update cluster the graph of all layers anew."""
    con.execute("UPDATE meta SET value = '' WHERE key = ?", [f"{_PREFIX}communities_state"])


def _exact(settings: ReportSettings) -> ReportSettings:
    return settings.model_copy(update={"max_outdated": 0.0})


def _name(con: duckdb.DuckDBPyConnection) -> str:
    row = con.execute("SELECT current_database()").fetchone()
    assert row is not None
    return '"{}"'.format(str(row[0]).replace('"', '""'))


def _run(con: duckdb.DuckDBPyConnection, script: str) -> None:
    for statement in con.extract_statements(script.replace("{index}", _name(con))):
        uses = "$prefix" in statement.query
        con.execute(statement, {"prefix": _PREFIX} if uses else {})
