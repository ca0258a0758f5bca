"""The tables of ``index.duckdb``, verified: each look at the file is short, so that a run goes on.

Between two stages of a run, or after one that was stopped, some tables are behind others. What is
made from a table that has changed since is therefore not looked at: it is made anew by the next
run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import duckdb

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.graph.communities import communities_current
from graphrag_pipeline.graph.fold import graph_current, graph_differences, outdate_graph
from graphrag_pipeline.releases.kept_releases import published_release, release_ids
from graphrag_pipeline.releases.older_releases import release_file
from graphrag_pipeline.releases.publishing import config_hash, content_hash, hashed_tables
from graphrag_pipeline.reports.levels import outdated_reports, reports_current
from graphrag_pipeline.reports.model_writer import report_writer
from graphrag_pipeline.store.frames import value_of
from graphrag_pipeline.store.hashing import rows_hash
from graphrag_pipeline.store.hierarchy import GRAPH
from graphrag_pipeline.store.index_store import (
    connect_published,
    get_meta,
    number_different,
)
from graphrag_pipeline.store.migrations import migrations
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import made_structures
from graphrag_pipeline.structures.structure import Step, Structure
from graphrag_pipeline.upkeep.problems import Problem, unreadable
from graphrag_pipeline.upkeep.row_checks import (
    DOCUMENT_CHECKS,
    GRAPH_CHECKS,
    HIERARCHY_CHECKS,
    MENTION_CHECKS,
    REPORT_CHECKS,
    REPORTED_CHECKS,
    Broken,
    broken_chunks,
    broken_rows,
    checks_of,
)

FILE = "index.duckdb"
ROWS = "rows"
"""The check of rows, whose problems are repaired together."""
SAME = "same_as_release"
OTHER_GRAPH = "graph"
"""The check that the graph is the fold of all mentions there are."""

_TABLES = """
SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = ? ORDER BY ALL
"""
_SCHEMA = "SELECT value FROM {0}.meta WHERE key = 'schema_version'"
_NEWEST_HASH = "SELECT content_hash FROM releases ORDER BY created_at DESC LIMIT 1"
_STATES = """
SELECT key, value FROM {0}.meta WHERE key = 'graph_version' OR key = 'resolution_state'
   OR key LIKE '%communities_state' OR key LIKE '%reports_state:%' OR key LIKE 'vectors:%'
ORDER BY ALL
"""
_INGESTED_LATER = """
SELECT count(*) FROM {0}.batch_stages own JOIN {1}.batch_stages other USING (batch, stage)
WHERE own.finished_at > other.finished_at
"""
_STAGED = "SELECT count(*) FROM batch_stages WHERE staged"
# These may be more in an index than in its release, or are of the file itself.
_NOT_COMPARED = frozenset(
    {"meta", "llm_calls", "releases", "identifiers", "description_summaries"}
    | {"hirag_basis", "model_quality", "stage_seconds", "written_from"}
)
_Opened = Callable[[], AbstractContextManager[duckdb.DuckDBPyConnection]]
_Look = Callable[[duckdb.DuckDBPyConnection, Settings], Iterator[Broken]]


def scan(con: duckdb.DuckDBPyConnection) -> None:
    """Read every row of every table of ``published``; DuckDB compares the sum of each block.

    Raises duckdb.Error for what cannot be read.
    """
    for schema, table in con.execute(_TABLES, ["published"]).fetchall():
        con.execute(f'SELECT bit_xor(hash(t)) FROM published."{schema}"."{table}" t').fetchall()


def fault_of(path: Path, opened: _Opened | None = None) -> str:
    """Return why a database cannot be read to its end, once it is opened; nothing where it can."""
    try:
        with opened() if opened else connect_published(path) as con:
            scan(con)
    except (StorageError, duckdb.Error) as error:
        return unreadable(path, error)
    return ""


def find_unreadable(workspace: Workspace) -> Iterator[Problem]:
    """Yield what is wrong with the file as a whole."""
    home, path = workspace.home, workspace.paths.index
    if not path.is_file():
        if release_ids(home) or workspace.batches.folder.is_dir():
            yield Problem(check="index_file", where=FILE, what="the file is not there")
        return
    if fault := fault_of(path, workspace.store.look):
        yield Problem(check="index_file", where=FILE, what=fault)


def find_newer_schema(workspace: Workspace) -> Iterator[Problem]:
    """Yield the schema of the index where a newer program has made it."""
    newest = migrations()[-1][0]
    version = schema_of(workspace)
    if version is None or version > newest:
        yield Problem(
            check="schema_version",
            where=f"{FILE}, meta",
            what=f"the schema is of version {version or 'none'}, and this program's is {newest}",
            remedy="use the newest of the programs that were used, or a newer one",
            can_repair=False,
        )


def schema_of(workspace: Workspace) -> int | None:
    """Return the version of the schema of the index; None where it names none."""
    with workspace.store.look() as con:
        version = get_meta(con, "schema_version") or ""
    return int(version) if version.isdecimal() else None


def is_older(workspace: Workspace) -> bool:
    """Whether an older program made the index, so that the next run brings it up to date."""
    version = schema_of(workspace)
    return version is not None and version < migrations()[-1][0]


def find_broken_rows(workspace: Workspace) -> Iterator[Problem]:
    """Yield the rows of the index that are against what must hold of them."""
    looks: Sequence[_Look] = (
        lambda con, _: broken_rows(con, (*DOCUMENT_CHECKS, *MENTION_CHECKS, *GRAPH_CHECKS)),
        lambda con, _: broken_chunks(con),
        _in_communities,
        _in_structures,
    )
    for look in looks:
        with workspace.store.look() as con:
            found = list(look(con, workspace.settings))
        for broken in found:
            yield broken.problem(ROWS, FILE)


def find_other_graph(workspace: Workspace) -> Iterator[Problem]:
    """Yield tables of the graph that are not those of a fold of all mentions there are.

    A graph that the next run folds again is not looked at.
    """
    options, encoding = workspace.settings.graph, workspace.settings.chunks.encoding
    with workspace.store.look() as con:
        is_late = value_of(con, _STAGED) > 0
        if is_late or not graph_current(con, options, encoding):
            return
        differences = graph_differences(con, options, encoding)
    for table, number in differences.items():
        broken = Broken(table, "rows are not those that the mentions make", number)
        yield broken.problem(OTHER_GRAPH, FILE)


def fold_anew_if_needed(workspace: Workspace, problems: Sequence[Problem]) -> bool:
    """Let the next run fold the whole graph anew if it is not the fold of all its mentions.

    Returns whether it will.
    """
    is_needed = any(problem.check == OTHER_GRAPH for problem in problems)
    if is_needed:
        with workspace.store.transaction() as con:
            outdate_graph(con)
    return is_needed


def find_other_than_release(workspace: Workspace) -> Iterator[Problem]:
    """Yield tables whose rows are not those of the release that was made of them.

    Where a stage of a run has been done since that release, nothing can be said.
    """
    path = release_of_index(workspace)
    if path is None:
        return
    try:
        with workspace.store.look(release=path) as con:
            if not is_of_this_schema(con, "release") or not is_unchanged(con):
                return
            proven = _proven_tables(con)
            found = [
                Broken(table, "rows are not those of the release that was made of them", number)
                for table in compared_tables(con)
                if table not in proven and (number := _number_different(con, table))
            ]
    except (StorageError, duckdb.Error):
        # A release that cannot be read is told of as that; the index was read before.
        return
    for broken in found:
        yield broken.problem(SAME, FILE)


def _proven_tables(con: duckdb.DuckDBPyConnection) -> Sequence[str]:
    """Return the tables of the index that are as published: the release is wrong.

    To make them anew would give the release other rows than older ones are told from.
    """
    (published,) = con.execute(_NEWEST_HASH).fetchone() or (None,)
    return hashed_tables(con) if published == content_hash(con) else ()


def release_of_index(workspace: Workspace) -> Path | None:
    """Return the file of the newest release, where it is kept and the settings are those it has."""
    home = workspace.home
    with workspace.store.look() as con:
        row = con.execute(
            "SELECT id, config_hash FROM releases ORDER BY created_at DESC LIMIT 1"
        ).fetchone()
    if row is None or row[1] != config_hash(workspace.settings) or row[0] not in release_ids(home):
        return None
    path = release_file(home, row[0])
    return path if path.stem == row[0] or published_release(home) == row[0] else None


def is_of_this_schema(con: duckdb.DuckDBPyConnection, database: str) -> bool:
    """Whether a release that is attached has the tables of this program."""
    return value_of(con, _SCHEMA.format(database)) == str(migrations()[-1][0])


def compared_tables(con: duckdb.DuckDBPyConnection, index: str = "published") -> list[str]:
    """Return the tables that the database ``index`` and its ``release`` both have rows of."""
    own, others = (
        {table for schema, table in con.execute(_TABLES, [name]).fetchall() if schema == "main"}
        for name in (index, "release")
    )
    return sorted((own & others) - _NOT_COMPARED)


def is_unchanged(con: duckdb.DuckDBPyConnection, index: str = "published") -> bool:
    """Whether no stage has been done since the database ``release`` was made of ``index``."""
    databases = (f'"{index}"', "release")
    states = [con.execute(_STATES.format(name)).fetchall() for name in databases]
    ledgers = [
        con.execute(f"SELECT batch FROM {name}.graph_batches ORDER BY batch").fetchall()
        for name in databases
    ]
    # A batch that is read again, but says the same as before, is ingested without a new release.
    ingested_later = value_of(con, _INGESTED_LATER.format(*databases))
    return (
        states[0] == states[1]
        and ledgers[0] == ledgers[1]
        and not ingested_later
        and not value_of(con, _STAGED)
        and not value_of(con, "SELECT count(*) FROM release.hierarchy_failures")
    )


def _number_different(con: duckdb.DuckDBPyConnection, table: str) -> int:
    quoted = f'"{table}"'
    own, other = f"published.main.{quoted}", f"release.main.{quoted}"
    hashes = con.execute(f"SELECT {rows_hash(own)}, {rows_hash(other)}").fetchone() or (0, 0)
    if hashes[0] == hashes[1]:
        return 0
    return max(1, number_different(con, own, other))


def _in_communities(con: duckdb.DuckDBPyConnection, settings: Settings) -> Iterator[Broken]:
    """Yield what is broken in communities and reports that are not behind the graph."""
    if not communities_current(con, settings.communities):
        return
    yield from broken_rows(con, checks_of(GRAPH, HIERARCHY_CHECKS))
    writer = report_writer(settings)
    if not reports_current(con, settings.reports, writer):
        return
    yield from broken_rows(con, checks_of(GRAPH, REPORT_CHECKS))
    failed = {id for (id,) in con.execute("SELECT community_id FROM report_failures").fetchall()}
    outdated = outdated_reports(con, settings.reports, writer).keys() - failed
    if outdated:
        what = "reports whose context is not that of their hash"
        yield Broken("hierarchy_reports", what, len(outdated), min(outdated))


def _in_structures(con: duckdb.DuckDBPyConnection, settings: Settings) -> Iterator[Broken]:
    """Yield what is broken in the structures that are asked for and not behind the graph."""
    for structure in made_structures(con, settings):
        current = [step for step in structure.steps if step.is_current(con, settings)]
        is_clustered = structure.is_clustered(con, settings)
        yield from structure_violations(con, structure, current, is_clustered=is_clustered)


def structure_violations(
    con: duckdb.DuckDBPyConnection,
    structure: Structure,
    steps: Sequence[Step],
    *,
    is_clustered: bool,
) -> Iterator[Broken]:
    """Yield what is against the checks that steps of a structure bring, and of its hierarchy."""
    for step in steps:
        for check in (check for check in step.checks if check.broken):
            row = con.execute(check.broken, check.parameters or None).fetchone()
            if row and row[0]:
                yield Broken(step.table, check.what, row[0])
    if structure.hierarchy is None or not is_clustered:
        return
    yield from broken_rows(con, checks_of(structure.hierarchy, HIERARCHY_CHECKS))
    if len(steps) == len(structure.steps):
        yield from broken_rows(con, checks_of(structure.hierarchy, REPORTED_CHECKS))
