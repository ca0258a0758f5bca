"""The limit of the cache of answers, kept at the end of a run."""

from __future__ import annotations

import logging

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.llm.cache_size import trim_cache
from graphrag_pipeline.store.workspace import Workspace

log = logging.getLogger(__name__)
_GB = 1_000_000_000


def cache_limit(workspace: Workspace) -> int:
    """Return the most bytes that the cache may take (``llm.cache_gb``); 0: no limit."""
    return int(workspace.settings.llm.cache_gb * _GB)


def keep_cache_within(workspace: Workspace, run_began: int) -> None:
    """Drop what was not used for longest where the cache has outgrown ``llm.cache_gb``.

    ``run_began`` is the ledger's position when the run began, which has used what it keeps. What
    goes wrong is logged: the run itself has ended well.
    """
    if not (most := cache_limit(workspace)):
        return
    try:
        dropped = trim_cache(workspace.home, most, since=run_began)
    except StorageError as error:
        log.warning("the cache of answers may be larger than llm.cache_gb: %s", error)
        return
    if dropped:
        counts = ", ".join(f"{number:,} of {kind}" for kind, number in dropped.items())
        log.info("dropped from the cache, which had outgrown llm.cache_gb: %s", counts)
