"""Guard against documents that would leave the index because nothing reads their files any more."""

from __future__ import annotations

from pathlib import Path

import duckdb

from graphrag_pipeline.core.doors import PartError
from graphrag_pipeline.core.errors import RemovalError, StorageError
from graphrag_pipeline.core.settings import BatchSettings
from graphrag_pipeline.ingest.reading.formats import format_of
from graphrag_pipeline.store.batches import BatchLog, may_go
from graphrag_pipeline.store.index_store import connect_published
from graphrag_pipeline.store.snapshots import SITES
from graphrag_pipeline.store.sources import ending_of, is_import

_INDEXED = "SELECT DISTINCT source FROM documents"


def require_readers(log: BatchLog, settings: BatchSettings, published: Path) -> None:
    """Raise RemovalError where more documents would go than may without being asked.

    The package that brought their format may be gone, or one that it needs. As many may go as files
    from a folder (``batches.max_removed_share``). Only where an ending has no reader, it is looked
    up which of these files are published, if that can be read.
    """
    endings = {ending for of_batch in log.endings().values() for ending in of_batch or ()}
    reasons = {ending: why for ending in endings if ending and (why := _why_unread(ending))}
    if not reasons:
        return
    files = {
        uri
        for uri, source in log.sources().items()
        if source.root != SITES and not is_import(source)
    }
    indexed = _indexed(published)
    lost = sorted(uri for uri in files & indexed if ending_of(uri) in reasons)
    if not lost or (len(lost) < len(files) and may_go(len(lost), len(files), settings)):
        return
    whys = "; ".join(sorted({reasons[ending_of(uri)] for uri in lost}))
    raise RemovalError(
        f"{len(lost)} of the {len(files)} files indexed, such as {lost[0]}, can no longer be "
        f"read: {whys}. To take them out of the index, use --remove-all, in Python remove_all=True"
    )


def _indexed(published: Path) -> set[str]:
    """Return the files of the published documents; whoever writes to the index is not waited for.

    Empty where that cannot be read: the run that follows publishes a sound release.
    """
    if not published.is_file():
        return set()
    try:
        with connect_published(published) as con:
            return {source for (source,) in con.execute(_INDEXED).fetchall()}
    except (StorageError, duckdb.Error):
        return set()


def _why_unread(ending: str) -> str:
    try:
        return "" if format_of(ending) else f"install the package that reads {ending.lower()}"
    except PartError as error:
        return str(error)
