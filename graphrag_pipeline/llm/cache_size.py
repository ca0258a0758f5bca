"""Size of the cache of answers, and how it is reduced: least recently used first.

The ledger is beside it and is never dropped: what was spent stays known.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from graphrag_pipeline.llm.cache import today
from graphrag_pipeline.llm.database import USED_ON, CallTables, Place, reading, tables_at
from graphrag_pipeline.llm.ledger import day_since

_SHARE_LEFT = 0.9
_DROPPED_AT_ONCE = 500
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
    with reading(place) as cache:
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
    with reading(place) as cache:
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
    with reading(place) as cache:
        if cache is not None:
            cache.vacuum()


def entries(cache: CallTables) -> str:
    """Return the SQL of all entries of a cache: what they are, when they were used, their bytes."""
    return f"""(
SELECT 'responses' AS kind, key, model, stage,
       CASE WHEN made_for IS NOT NULL THEN 1 WHEN stage IS NOT NULL THEN 0 END AS of_index,
       {USED_ON} AS used_on, created_at, {cache.text_bytes} + 150 AS n_bytes FROM responses
UNION ALL
SELECT 'embeddings', key, model, stage, NULL, {USED_ON}, created_at, length(vector) + 150
FROM embeddings
) AS entries"""


def _by_purpose(cache: CallTables) -> str:
    return f"""
SELECT kind, model, stage, of_index, count(*), sum(n_bytes), min(used_on), max(used_on)
FROM {entries(cache)} GROUP BY kind, model, stage, of_index
ORDER BY kind DESC, sum(n_bytes) DESC, model, stage, of_index
"""


def _oldest(cache: CallTables) -> str:
    return f"""
SELECT kind, key FROM (
    SELECT kind, key, sum(n_bytes) OVER (
        ORDER BY used_on, created_at, key ROWS UNBOUNDED PRECEDING
    ) - n_bytes AS n_before
    FROM {entries(cache)} WHERE used_on < $1
) AS by_use WHERE n_before < $2 ORDER BY n_before
"""


def _drop_oldest(cache: CallTables, most_bytes: int, first_kept: int) -> Counter[str]:
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


def _date(day: int) -> date:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)).date()
