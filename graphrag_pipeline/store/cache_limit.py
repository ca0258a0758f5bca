"""The limit of the cache of answers, kept at the end of a run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.cache_size import CacheSize, measure_cache, trim_cache, vacuum_cache
from graphrag_pipeline.llm.configured import calls_place
from graphrag_pipeline.llm.paid_answers import shared_place

log = logging.getLogger(__name__)
_GB = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class CacheUse:
    """Size of the cache now; where it was vacuumed, what it took before and what was dropped.

    Sizes are in bytes; a limit of 0 is none. ``dropped`` counts entries by kind. ``shared`` is the
    folder whose answers are used and added to, beside these.
    """

    size: CacheSize
    limit_bytes: int
    bytes_before: int | None = None
    dropped: Mapping[str, int] | None = None
    shared: str = ""


def measure_use(settings: Settings) -> CacheUse:
    """Return what the cache takes, by stage and purpose. Raises StorageError."""
    place = calls_place(settings)
    return CacheUse(
        size=measure_cache(place),
        limit_bytes=cache_limit(settings),
        shared=str(shared_place(place, settings.llm.shared_cache) or ""),
    )


def vacuum(settings: Settings) -> CacheUse:
    """Drop what is above the limit, used least recently, and give free space back to the disk.

    Raises StorageError, and nothing is lost, where there is no room to do so.
    """
    place, limit = calls_place(settings), cache_limit(settings)
    before = measure_cache(place).file_bytes
    dropped = trim_cache(place, limit) if limit else {}
    vacuum_cache(place)
    return replace(measure_use(settings), bytes_before=before, dropped=dropped)


def cache_limit(settings: Settings) -> int:
    """Return the most bytes that the cache may take (``llm.cache_gb``); 0: no limit."""
    return int(settings.llm.cache_gb * _GB)


def keep_cache_within(settings: Settings, run_began: int) -> None:
    """Drop what was not used for longest where the cache has outgrown ``llm.cache_gb``.

    ``run_began`` is the ledger's position when the run began, which has used what it keeps. What
    goes wrong is logged: the run itself has ended well.
    """
    if not (most := cache_limit(settings)):
        return
    try:
        dropped = trim_cache(calls_place(settings), most, since=run_began)
    except StorageError as error:
        log.warning("the cache of answers may be larger than llm.cache_gb: %s", error)
        return
    if dropped:
        counts = ", ".join(f"{number:,} of {kind}" for kind, number in dropped.items())
        log.info("dropped from the cache, which had outgrown llm.cache_gb: %s", counts)
