"""Size of the cache of answers, and how it is reduced: least recently used first.

The ledger is beside it and is never dropped: what was spent stays known.
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
from typing import Any

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.llm.cache import USED_ON, today
from graphrag_pipeline.llm.database import (
    Cache,
    Place,
    Rows,
    named,
    open_database,
    storage_error,
    tables_at,
)
from graphrag_pipeline.llm.ledger import day_since

_SHARE_LEFT = 0.9
_DROPPED_AT_ONCE = 500
_PAGES_AT_ONCE = 500
_INCREMENTAL = 2
_KINDS = {"responses": "chat", "embeddings": "embeddings"}
_CALLS = "SELECT count(*) FROM llm_calls"


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
    """The size of cache and ledger, in bytes; ``free_bytes`` of them hold nothing.

    ``path`` is their file, or says where machines share them.
    """

    path: Path | str
    file_bytes: int
    free_bytes: int
    calls: int
    entries: Sequence[Entries]


def measure_cache(place: Place) -> CacheSize:
    """Return how large the cache is and what is in it. Raises StorageError."""
    where = tables_at(place)
    path = where if isinstance(where, Path) else str(where)
    with _opened(place) as cache:
        if cache is None:
            return CacheSize(path=path, file_bytes=0, free_bytes=0, calls=0, entries=[])
        return CacheSize(
            path=path,
            file_bytes=cache.file_bytes(),
            free_bytes=cache.free_bytes(),
            calls=cache.read(_CALLS)[0][0],
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
                for kind, model, stage, of_index, entries, n_bytes, oldest, newest in cache.read(
                    _by_purpose(cache)
                )
            ],
        )


def trim_cache(place: Place, most_bytes: int, *, since: int | None = None) -> Mapping[str, int]:
    """Drop what was not used for longest where the cache takes more; return how many of each kind.

    It then takes 90 % of ``most_bytes``, unless what may not be dropped takes more: what was used
    today, yesterday, or by the run that began at ``since``, a position of the ledger. The space is
    given back if the file can do so without being written anew.
    Raises StorageError; what was not dropped by then is there.
    """
    with _opened(place) as cache:
        if cache is None or cache.used_bytes() <= most_bytes:
            return {}
        first_kept = today() - 1
        if since is not None:
            first_kept = min(first_kept, day_since(cache.read, since))
        dropped = _drop_oldest(cache, int(most_bytes * _SHARE_LEFT), first_kept)
        cache.give_back()
    return {_KINDS[table]: number for table, number in dropped.items()}


def vacuum_cache(place: Place) -> None:
    """Give the free space of the file back to the disk.

    A file of an older program is written anew for that, once: it needs as much room again, beside
    it and among the temporary files. Raises StorageError, and nothing is lost, where there is none.
    """
    with _opened(place) as cache:
        if cache is not None:
            cache.vacuum()


def entries(cache: Cache) -> str:
    """Return the SQL of all entries of a cache: what they are, when they were used, their bytes."""
    return f"""(
SELECT 'responses' AS kind, key, model, stage,
       CASE WHEN made_for IS NOT NULL THEN 1 WHEN stage IS NOT NULL THEN 0 END AS of_index,
       {USED_ON} AS used_on, created_at, {cache.text_bytes} + 150 AS n_bytes FROM responses
UNION ALL
SELECT 'embeddings', key, model, stage, NULL, {USED_ON}, created_at, length(vector) + 150
FROM embeddings
) AS entries"""


def _by_purpose(cache: Cache) -> str:
    return f"""
SELECT kind, model, stage, of_index, count(*), sum(n_bytes), min(used_on), max(used_on)
FROM {entries(cache)} GROUP BY kind, model, stage, of_index
ORDER BY kind DESC, sum(n_bytes) DESC, model, stage, of_index
"""


def _oldest(cache: Cache) -> str:
    return f"""
SELECT kind, key FROM (
    SELECT kind, key, sum(n_bytes) OVER (
        ORDER BY used_on, created_at, key ROWS UNBOUNDED PRECEDING
    ) - n_bytes AS n_before
    FROM {entries(cache)} WHERE used_on < $1
) AS by_use WHERE n_before < $2 ORDER BY n_before
"""


def _drop_oldest(cache: Cache, most_bytes: int, first_kept: int) -> Counter[str]:
    dropped = Counter[str]()
    while (excess := cache.used_bytes() - most_bytes) > 0:
        oldest = cache.read(_oldest(cache), (first_kept, excess))
        if not oldest:
            break
        for start in range(0, len(oldest), _DROPPED_AT_ONCE):
            some = sorted(oldest[start : start + _DROPPED_AT_ONCE])
            for table, of_table in itertools.groupby(some, key=lambda entry: entry[0]):
                keys = [key for _, key in of_table]
                dropped[table] += cache.drop(table, keys, first_kept)
            if cache.used_bytes() <= most_bytes:
                break
    return dropped


class _FileCache:
    """The cache in a SQLite file."""

    text_bytes = "length(CAST(text AS BLOB))"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._con = open_database(path)
        self.close = self._con.close

    def read(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        return self._con.execute(sql, named(values)).fetchall()

    def file_bytes(self) -> int:
        return self._path.stat().st_size

    def free_bytes(self) -> int:
        return self._pragma("freelist_count") * self._pragma("page_size")

    def used_bytes(self) -> int:
        pages = self._pragma("page_count") - self._pragma("freelist_count")
        return pages * self._pragma("page_size")

    def drop(self, table: str, keys: Sequence[bytes], first_kept: int) -> int:
        """Drop entries in one short transaction, but none that somebody has used meanwhile."""
        self._con.execute("BEGIN IMMEDIATE")
        sql = f"DELETE FROM {table} WHERE key = ? AND {USED_ON} < ?"
        dropped = self._con.executemany(sql, [(key, first_kept) for key in keys]).rowcount
        self._con.execute("COMMIT")
        return dropped

    def give_back(self) -> None:
        """Cut free pages off the file, some at a time.

        Others may write in between, and the log of changes takes no more of a disk that may be
        full.
        """
        if self._pragma("auto_vacuum") == _INCREMENTAL:
            free = self._pragma("freelist_count")
            for _ in range(0, free, _PAGES_AT_ONCE):
                # A statement that `execute` runs stops after its first page.
                self._con.executescript(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})")
                self._con.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        self._con.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def vacuum(self) -> None:
        if self._pragma("auto_vacuum") == _INCREMENTAL:
            self.give_back()
            return
        needed = self.used_bytes()
        what = f"{self._path} cannot be written anew, which needs {needed / 1e6:,.0f} MB"
        if needed > shutil.disk_usage(self._path.parent).free:
            raise StorageError(f"{what} beside it: free the disk and run again; nothing was lost")
        try:
            self._con.execute("PRAGMA auto_vacuum = INCREMENTAL")
            self._con.execute("VACUUM")
            self._con.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            raise StorageError(
                f"{what} beside it and as much in the folder of temporary files ({error}): free "
                "the disk, or name a folder with room in SQLITE_TMPDIR, and run again; nothing was "
                "lost"
            ) from None

    def _pragma(self, name: str) -> int:
        return self._con.execute(f"PRAGMA {name}").fetchone()[0]


def _date(day: int) -> date:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)).date()


@contextlib.contextmanager
def _opened(place: Place) -> Iterator[Cache | None]:
    """Yield the cache of a place, None where there is none yet."""
    at = tables_at(place)
    if not isinstance(at, Path):
        with contextlib.closing(at.cache()) as cache:
            yield cache
    elif not at.is_file():
        yield None
    else:
        with contextlib.closing(_FileCache(at)) as cache:
            try:
                yield cache
            except sqlite3.Error as error:
                raise storage_error(at, error) from None
