"""How large the cache of answers is, and how it is made smaller: least recently used first.

The ledger is in the same file and is never dropped: what was spent stays known.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.llm.cache import USED_ON, today
from graphrag_pipeline.llm.database import open_database, storage_error
from graphrag_pipeline.llm.ledger import day_since

_SHARE_LEFT = 0.9
_DROPPED_AT_ONCE = 500
_PAGES_AT_ONCE = 500
_INCREMENTAL = 2
_KINDS = {"responses": "chat", "embeddings": "embeddings"}
_ENTRIES = f"""
SELECT 'responses' AS kind, key, model, stage,
       CASE WHEN made_for IS NOT NULL THEN 1 WHEN stage IS NOT NULL THEN 0 END AS of_index,
       {USED_ON} AS used_on, created_at, length(CAST(text AS BLOB)) + 150 AS n_bytes FROM responses
UNION ALL
SELECT 'embeddings', key, model, stage, NULL, {USED_ON}, created_at, length(vector) + 150
FROM embeddings
"""
_BY_PURPOSE = f"""
SELECT kind, model, stage, of_index, count(*), sum(n_bytes), min(used_on), max(used_on)
FROM ({_ENTRIES}) GROUP BY kind, model, stage, of_index
ORDER BY kind DESC, sum(n_bytes) DESC, model, stage, of_index
"""
_OLDEST = f"""
SELECT kind, key FROM (
    SELECT kind, key, sum(n_bytes) OVER (
        ORDER BY used_on, created_at, key ROWS UNBOUNDED PRECEDING
    ) - n_bytes AS n_before
    FROM ({_ENTRIES}) WHERE used_on < ?
) WHERE n_before < ? ORDER BY n_before
"""


@dataclass(frozen=True, kw_only=True)
class Entries:
    """The answers (``chat``) or vectors (``embeddings``) that a stage has bought of a model.

    ``stage`` is None for those of an older program, which did not note it. ``of_index`` says of
    answers whether rows of the index were made from them; the others answered questions, or served
    an evaluation. It is None for vectors, and where it was not noted. ``n_bytes`` is about what
    they take; ``oldest_use`` and ``newest_use`` are days (UTC) on which one of them was last used.
    """

    kind: str
    model: str
    stage: str | None
    of_index: bool | None
    entries: int
    n_bytes: int
    oldest_use: date
    newest_use: date


@dataclass(frozen=True, kw_only=True)
class CacheSize:
    """What the file of cache and ledger takes, in bytes; ``free_bytes`` of them hold nothing."""

    path: Path
    file_bytes: int
    free_bytes: int
    calls: int
    entries: Sequence[Entries]


def measure_cache(home: Path) -> CacheSize:
    """Return how large the cache is and what is in it. Raises StorageError."""
    path = Home(home).calls
    if not path.is_file():
        return CacheSize(path=path, file_bytes=0, free_bytes=0, calls=0, entries=[])
    with _opened(path) as con:
        return CacheSize(
            path=path,
            file_bytes=path.stat().st_size,
            free_bytes=_pragma(con, "freelist_count") * _pragma(con, "page_size"),
            calls=con.execute("SELECT count(*) FROM llm_calls").fetchone()[0],
            entries=[
                Entries(
                    kind=_KINDS[kind],
                    model=model,
                    stage=stage,
                    of_index=None if of_index is None else bool(of_index),
                    entries=entries,
                    n_bytes=n_bytes,
                    oldest_use=_date(oldest),
                    newest_use=_date(newest),
                )
                for kind, model, stage, of_index, entries, n_bytes, oldest, newest in con.execute(
                    _BY_PURPOSE
                )
            ],
        )


def trim_cache(home: Path, most_bytes: int, *, since: int | None = None) -> Mapping[str, int]:
    """Drop what was not used for longest where the cache takes more; return how many of each kind.

    It then takes 90 % of ``most_bytes``, unless what may not be dropped takes more: what was used
    today, yesterday, or by the run that began at ``since``, a position of the ledger. The space is
    given back if the file can do so without being written anew. Raises StorageError; what was not
    dropped by then is there.
    """
    path = Home(home).calls
    if not path.is_file():
        return {}
    with _opened(path) as con:
        if _used_bytes(con) <= most_bytes:
            return {}
        first_kept = today() - 1 if since is None else min(today() - 1, day_since(con, since))
        dropped = _drop_oldest(con, int(most_bytes * _SHARE_LEFT), first_kept)
        _give_back(con)
    return {_KINDS[table]: number for table, number in dropped.items()}


def vacuum_cache(home: Path) -> None:
    """Give the free space of the file back to the disk.

    A file of an older program is written anew for that, once: it needs as much room again, beside
    it and among the temporary files. Raises StorageError, and nothing is lost, where there is none.
    """
    path = Home(home).calls
    if not path.is_file():
        return
    with _opened(path) as con:
        if _pragma(con, "auto_vacuum") == _INCREMENTAL:
            _give_back(con)
        else:
            _write_anew(con, path)


def _write_anew(con: sqlite3.Connection, path: Path) -> None:
    needed = _used_bytes(con)
    what = f"{path} cannot be written anew, which needs {needed / 1e6:,.0f} MB"
    if needed > shutil.disk_usage(path.parent).free:
        raise StorageError(f"{what} beside it: free the disk and run again; nothing was lost")
    try:
        con.execute("PRAGMA auto_vacuum = INCREMENTAL")
        con.execute("VACUUM")
        con.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.Error as error:
        raise StorageError(
            f"{what} beside it and as much in the folder of temporary files ({error}): free the "
            "disk, or name a folder with room in SQLITE_TMPDIR, and run again; nothing was lost"
        ) from None


def _drop_oldest(con: sqlite3.Connection, most_bytes: int, first_kept: int) -> Counter[str]:
    dropped = Counter[str]()
    while (excess := _used_bytes(con) - most_bytes) > 0:
        oldest = con.execute(_OLDEST, (first_kept, excess)).fetchall()
        if not oldest:
            break
        for start in range(0, len(oldest), _DROPPED_AT_ONCE):
            dropped += _drop(con, oldest[start : start + _DROPPED_AT_ONCE], first_kept)
            if _used_bytes(con) <= most_bytes:
                break
    return dropped


def _drop(
    con: sqlite3.Connection, entries: Sequence[tuple[str, bytes]], first_kept: int
) -> Counter[str]:
    """Drop entries in one short transaction, but none that somebody has used meanwhile."""
    dropped = Counter[str]()
    con.execute("BEGIN IMMEDIATE")
    for table, of_table in itertools.groupby(sorted(entries), key=lambda entry: entry[0]):
        sql = f"DELETE FROM {table} WHERE key = ? AND {USED_ON} < ?"
        dropped[table] = con.executemany(sql, [(key, first_kept) for _, key in of_table]).rowcount
    con.execute("COMMIT")
    return dropped


def _give_back(con: sqlite3.Connection) -> None:
    """Cut free pages off the file, some at a time.

    Others may write in between, and the log of changes takes no more of a disk that may be full.
    """
    if _pragma(con, "auto_vacuum") == _INCREMENTAL:
        free = _pragma(con, "freelist_count")
        for _ in range(0, free, _PAGES_AT_ONCE):
            # A statement that `execute` runs stops after its first page.
            con.executescript(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})")
            con.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    con.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _used_bytes(con: sqlite3.Connection) -> int:
    pages = _pragma(con, "page_count") - _pragma(con, "freelist_count")
    return pages * _pragma(con, "page_size")


def _pragma(con: sqlite3.Connection, name: str) -> int:
    return con.execute(f"PRAGMA {name}").fetchone()[0]


def _date(day: int) -> date:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)).date()


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(open_database(path)) as con:
        try:
            yield con
        except sqlite3.Error as error:
            raise storage_error(path, error) from None
