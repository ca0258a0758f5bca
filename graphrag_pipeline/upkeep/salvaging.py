"""The cache of answers salvaged: every row that can still be read, in a new file."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphrag_pipeline.core.hardening.files import (
    link_or_copy,
    make_private,
    replace_durably,
    told_of_disk,
)
from graphrag_pipeline.core.hardening.temporary import temporary_folder
from graphrag_pipeline.core.text import counted
from graphrag_pipeline.llm.cache import is_as_bought
from graphrag_pipeline.llm.database import open_database

_TABLES = (
    *("responses", "embeddings", "embedding_widths", "llm_calls"),
    *("sent_batches", "sent_requests", "shared_entries"),
)
_BY_KEY = {"shared_entries": ("place || hex(key)", "place{0}, key{0}")}
"""What tells apart the rows of tables whose rows have no numbers, and the order they lie in."""
_BOUGHT = {
    "responses": (
        *("key", "model", "text", "prompt_tokens", "completion_tokens"),
        *("finish_reason", "created_at", "stage"),
    ),
    "embeddings": ("key", "model", "vector", "created_at", "stage"),
}
_ROWS = 500
_BESIDE = ("-wal", "-shm")


def salvage(path: Path, position: int) -> list[str]:
    """Replace a damaged cache by one of its readable rows; say what came of it.

    ``position`` is the least number of the last call: new calls get higher ones. Raises
    StorageError where the new file cannot be written.
    """
    with (
        told_of_disk(f"cannot write {path}"),
        temporary_folder(path.parent, path.name) as folder,
    ):
        beside = folder / "file"
        make_private(beside)
        counts = _copy_readable(path, beside, position)
        if counts is None:
            return []
        aside = put_aside(path, *_BESIDE)
        replace_durably(beside, path)
    kept = ", ".join(f"{number:,} of {table}" for table, number in counts.items() if number)
    return [
        f"salvaged {counted(sum(counts.values()), 'row')} of {path.name} ({kept or 'none'}); the "
        f"damaged file is {aside}"
    ]


def put_aside(path: Path, *logs: str) -> str:
    """Give a damaged file a second name, and return it; nothing where the file is not there.

    What has not been written into it yet, in files of its name with these endings, goes with it.
    """
    if not path.exists():
        return ""
    aside = damaged_name(path)
    link_or_copy(path, aside)
    for ending in logs:
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{ending}").rename(f"{aside}{ending}")
    return aside.name


def damaged_name(path: Path) -> Path:
    """Return a name beside a file's or folder's that no other damaged one has."""
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return aside


def _copy_readable(source: Path, target: Path, position: int) -> dict[str, int] | None:
    """Copy the readable rows; None where the file is no database any more."""
    damaged = sqlite3.connect(source, isolation_level=None)
    with contextlib.closing(damaged), contextlib.closing(open_database(target)) as fresh:
        damaged.text_factory = lambda data: data.decode("utf-8", "replace")
        try:
            names = {name for (name,) in damaged.execute("SELECT name FROM sqlite_master")}
        except sqlite3.Error:
            return None
        counts = {}
        fresh.execute("PRAGMA journal_mode = DELETE")
        fresh.execute("BEGIN")
        for table in _TABLES:
            if table in names:
                counts[table] = _copy_table(damaged, fresh, table)
        last = fresh.execute("SELECT coalesce(max(position), 0) FROM llm_calls").fetchone()[0]
        fresh.execute("DELETE FROM sqlite_sequence WHERE name = 'llm_calls'")
        fresh.execute("INSERT INTO sqlite_sequence VALUES ('llm_calls', ?)", [max(last, position)])
        fresh.execute("COMMIT")
        return counts


def _copy_table(damaged: sqlite3.Connection, fresh: sqlite3.Connection, table: str) -> int:
    known = {row[1] for row in damaged.execute(f"PRAGMA table_info({table})")}
    columns = [row[1] for row in fresh.execute(f"PRAGMA table_info({table})") if row[1] in known]
    named, places = ", ".join(columns), ", ".join("?" * len(columns))
    before = fresh.total_changes
    for rows in _readable_rows(damaged, table, named):
        for row in rows:
            if not is_whole(table, dict(zip(columns, row, strict=True))):
                continue
            with contextlib.suppress(sqlite3.IntegrityError):
                fresh.execute(f"INSERT OR IGNORE INTO {table} ({named}) VALUES ({places})", row)
    return fresh.total_changes - before


def count_changed(con: sqlite3.Connection) -> int:
    """Return the number of entries that are not what was bought."""
    number = 0
    for table, columns in _BOUGHT.items():
        names = [row[1] for row in con.execute(f"PRAGMA table_info({table})")]
        if "digest" not in names:
            continue
        query = f"SELECT digest, {', '.join(columns)} FROM {table} WHERE digest IS NOT NULL"
        number += sum(not is_as_bought(digest, *row) for digest, *row in con.execute(query))
    return number


def is_whole(table: str, row: Mapping[str, object]) -> bool:
    """Whether a row of a table is what was bought, as far as that was noted."""
    columns = _BOUGHT.get(table, ())
    return is_as_bought(row.get("digest"), *(row.get(name) for name in columns))


def _readable_rows(
    damaged: sqlite3.Connection, table: str, columns: str
) -> Iterator[Sequence[tuple[object, ...]]]:
    """Yield the rows from the first on as far as they can be read, then from the last on.

    What is between is looked up one by one, by the numbers that the table's index still knows.
    """
    number, by = _BY_KEY.get(table, ("rowid", "rowid{0}"))
    query = f"SELECT {number}, {columns} FROM {table} ORDER BY {by}"
    seen: set[Any] = set()
    for order in ("", " DESC"):
        if (yield from _until_damage(damaged, query.format(order), seen)):
            return
    by_number = f"SELECT {columns} FROM {table} WHERE rowid = ?"
    for number in sorted(_numbers(damaged, table) - seen):
        with contextlib.suppress(sqlite3.Error):
            yield damaged.execute(by_number, (number,)).fetchall()


def _until_damage(
    damaged: sqlite3.Connection, query: str, seen: set[Any]
) -> Iterator[Sequence[tuple[object, ...]]]:
    """Yield rows until one cannot be read; return whether all could."""
    rows: list[tuple[object, ...]] = []
    try:
        for number, *row in damaged.execute(query):
            if number in seen:
                break
            seen.add(number)
            rows.append(tuple(row))
            if len(rows) == _ROWS:
                yield rows
                rows = []
    except sqlite3.Error:
        yield rows
        return False
    yield rows
    return True


def _numbers(damaged: sqlite3.Connection, table: str) -> set[int]:
    """Return the numbers of rows that can be found, by any index of the table."""
    numbers: set[int] = set()
    with contextlib.suppress(sqlite3.Error):
        for _, index, *_ in damaged.execute(f"PRAGMA index_list({table})").fetchall():
            with contextlib.suppress(sqlite3.Error):
                for (number,) in damaged.execute(f"SELECT rowid FROM {table} INDEXED BY {index}"):
                    numbers.add(number)
    with contextlib.suppress(sqlite3.Error):
        most = damaged.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0] or 0
        numbers |= set(range(1, most + 1))
    return numbers
