"""Differences between two releases, table by table: what entered, what left and what changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import duckdb

from graphrag_pipeline.core import showing
from graphrag_pipeline.store.index_store import connect_published, told_of_files
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


def compare_files(
    before: Path, after: Path, *, most: int, limits: DatabaseLimits | None = None
) -> Mapping[str, TableDiff]:
    """Return how each table of the file of a release differs from that of an earlier one.

    ``most`` names are given of each change; ``limits`` are those of a run that compares. Raises
    StorageError where a file cannot be read.
    """
    with (
        connect_published(after, limits=limits, earlier=before) as con,
        told_of_files(f"cannot compare {before} with {after}"),
    ):
        return compare(con, "earlier", "published", most=most)


def compare(
    con: duckdb.DuckDBPyConnection, before: str, after: str, *, most: int
) -> Mapping[str, TableDiff]:
    """Return what :func:`compare_files` does, of two databases that are attached."""
    sides = [(release, c.table) for c in _COMPARED for release in (before, after)]
    counted = (f"SELECT count(*) AS n FROM {release}.{table}" for release, table in sides)
    counts = [n for (n,) in con.execute(" UNION ALL ".join(counted)).fetchall()]
    diffs: dict[str, TableDiff] = {}
    for compared, n_before, n_after in zip(_COMPARED, counts[::2], counts[1::2], strict=True):
        differences = _differences(con, compared, before, after, most)
        diffs[compared.table] = TableDiff(
            before=n_before,
            after=n_after,
            **{change: differences.get(change, (0, []))[0] for change in CHANGES},
            first={change: differences.get(change, (0, []))[1] for change in CHANGES},
        )
    return diffs


def as_json(tables: Mapping[str, TableDiff]) -> str:
    """Return differences of tables as text, which :func:`of_json` reads."""
    return json.dumps({name: asdict(table) for name, table in tables.items()})


def of_json(text: str, most: int) -> Mapping[str, TableDiff]:
    """Return what :func:`as_json` was given, with the first ``most`` names of each change."""
    return {name: _cut(TableDiff(**table), most) for name, table in json.loads(text).items()}


def _cut(table: TableDiff, most: int) -> TableDiff:
    first = {change: names[:most] for change, names in table.first.items()}
    return replace(table, first=first)


def _differences(
    con: duckdb.DuckDBPyConnection, compared: _Compared, before: str, after: str, most: int
) -> dict[str, tuple[int, list[str]]]:
    """Return how many rows changed in each way, and the names of the first of them."""
    sides = {
        side: _SIDE.format(release=release, **vars(compared))
        for side, release in (("before", before), ("after", after))
    }
    query = _CHANGED.format(different=_DIFFERENT.format(**sides))
    rows = con.execute(query, {"most": most}).fetchall()
    return {change: (number, names) for change, number, names in rows}
