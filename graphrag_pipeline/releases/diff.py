"""Differences between two releases: what entered, what left, and what changed, table by table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from graphrag_pipeline.core import showing
from graphrag_pipeline.core.errors import InputError, NothingPublishedError, StorageError
from graphrag_pipeline.releases.kept_releases import (
    find_release,
    nothing_published,
    published_release,
    release_before,
)
from graphrag_pipeline.releases.older_releases import release_file
from graphrag_pipeline.store.index_store import connect_published
from graphrag_pipeline.store.limits import DatabaseLimits

CHANGES = ("entered", "left", "changed", "renamed")


@dataclass(frozen=True)
class TableDiff:
    """Differences of one table: numbers of rows, and the names of the most important ones."""

    before: int
    after: int
    entered: int
    left: int
    changed: int
    renamed: int
    """Documents whose text is the same, under another name."""
    first: Mapping[str, Sequence[str]]
    """Names of what entered, left, changed and was renamed, the most important first."""


@dataclass(frozen=True)
class ReleaseDiff:
    """Differences of release ``after`` from release ``before``, by table."""

    before: str
    after: str
    tables: Mapping[str, TableDiff]

    __repr__ = showing.brief


@dataclass(frozen=True)
class _Compared:
    table: str
    key: str
    name: str
    importance: str
    state: str
    """Columns that make a row another one. Not among them is what any distant change moves."""
    content: str = "NULL"
    """What stays of a row that only has another name."""


_COMPARED = (
    _Compared("documents", "id", "uri", "n_chars", "uri, title, content_hash", "hash(text)"),
    _Compared("entities", "id", "title", "degree", "title, type, description, frequency, degree"),
    _Compared(
        "relationships",
        "id",
        "source || ' - ' || target",
        "weight",
        "source, target, description, weight",
    ),
    _Compared(
        "communities", "id", "title", "size", "title, last_level, parent_id, n_relationships"
    ),
    _Compared(
        "community_reports", "community_id", "title", "rating", "title, full_content, rating"
    ),
)
_SIDE = """
SELECT {key} AS key, {name} AS name, {importance} AS importance, hash({state}) AS state,
       {content} AS content
FROM {release}.{table}
"""
_DIFFERENT = """
SELECT CASE WHEN b.key IS NULL THEN 'entered' WHEN a.key IS NULL THEN 'left'
            WHEN a.content = b.content AND a.name <> b.name THEN 'renamed' ELSE 'changed' END
           AS change,
       CASE WHEN change = 'renamed' THEN b.name || ' -> ' || a.name
            ELSE coalesce(a.name, b.name) END AS name,
       coalesce(a.importance, b.importance) AS importance
FROM ({before}) b FULL JOIN ({after}) a ON a.key = b.key
WHERE a.state IS DISTINCT FROM b.state
"""
_CHANGED = """
SELECT change, count(*), list(name ORDER BY importance DESC, name)[:$most]
FROM ({different}) GROUP BY change
"""


def diff_releases(
    home: Path,
    before: str | None = None,
    after: str | None = None,
    *,
    most: int = 10,
    limits: DatabaseLimits | None = None,
) -> ReleaseDiff:
    """Compare two releases that are kept, each named by its id or the beginning of it.

    ``after`` defaults to the published release, ``before`` to the one before that. ``most`` names
    are given of each change; ``limits`` are those of a run that compares. Both files are opened
    read-only; nothing waits for them.

    Raises InputError for an unknown release or when there is none before, NothingPublishedError
    when there is none at all, StorageError when a file cannot be read.
    """
    later = find_release(home, after) if after else published_release(home)
    if later is None:
        raise NothingPublishedError(nothing_published(home))
    earlier = find_release(home, before) if before else release_before(home, later)
    if earlier is None:
        raise InputError(f"no release is kept from before {later}: there is nothing to compare")
    if earlier == later:
        raise InputError(f"release {later} is named twice: name two releases to compare")
    files = release_file(home, later), release_file(home, earlier)
    con = connect_published(files[0], limits=limits, earlier=files[1])
    try:
        tables = {c.table: _compare(con, c, most) for c in _COMPARED}
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise StorageError(f"cannot compare {earlier} with {later}: {reason}") from error
    finally:
        con.close()
    return ReleaseDiff(earlier, later, tables)


def _compare(con: duckdb.DuckDBPyConnection, compared: _Compared, most: int) -> TableDiff:
    sides = {
        side: _SIDE.format(release=release, **vars(compared))
        for side, release in (("before", "earlier"), ("after", "published"))
    }
    query = _CHANGED.format(different=_DIFFERENT.format(**sides))
    differences = {
        change: (number, names)
        for change, number, names in con.execute(query, {"most": most}).fetchall()
    }
    return TableDiff(
        before=_count(con, f"earlier.{compared.table}"),
        after=_count(con, f"published.{compared.table}"),
        **{change: differences.get(change, (0, []))[0] for change in CHANGES},
        first={change: differences.get(change, (0, []))[1] for change in CHANGES},
    )


def _count(con: duckdb.DuckDBPyConnection, table: str) -> int:
    row = con.execute(f"SELECT count(*) FROM {table}").fetchone()
    return row[0] if row else 0
