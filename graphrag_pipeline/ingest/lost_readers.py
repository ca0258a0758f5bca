"""Guard against documents that would leave the index because nothing reads their files any more."""

from __future__ import annotations

from pathlib import Path

import duckdb

from graphrag_pipeline.core.doors import PartError
from graphrag_pipeline.core.errors import RemovalError, StorageError
from graphrag_pipeline.ingest.reading.formats import format_of
from graphrag_pipeline.store.index_store import connect_published
from graphrag_pipeline.store.snapshots import SITES
from graphrag_pipeline.store.sources import is_import
from graphrag_pipeline.store.workspace import Workspace

_FEW = 9
_ENDINGS = r"""
SELECT DISTINCT lower(regexp_extract(source, '\.[^./]+$')) FROM documents ORDER BY ALL
"""
_WITH_ENDING = r"""
SELECT DISTINCT source FROM documents
WHERE list_contains($endings, lower(regexp_extract(source, '\.[^./]+$')))
"""


def require_readers(workspace: Workspace) -> None:
    """Raise RemovalError where more documents would go than may without being asked.

    The package that brought their format may be gone, or one that it needs. A few are let go, as
    many as files may be gone from a folder (``batches.max_removed_share``). What is published is
    looked at, where it can be read.
    """
    reasons, rows = _unread(workspace.paths.published)
    if not rows:
        return
    files = {
        uri
        for uri, source in workspace.batches.sources().items()
        if source.root != SITES and not is_import(source)
    }
    lost = sorted(uri for uri in rows if uri in files)
    most = workspace.settings.batches.max_removed_share
    if len(lost) <= (max(most * len(files), _FEW) if most else 0) and len(lost) < len(files):
        return
    whys = "; ".join(reasons[e] for e in sorted({Path(uri).suffix.lower() for uri in lost}))
    if lost:
        raise RemovalError(
            f"{len(lost)} of the {len(files)} files indexed, such as {lost[0]}, can no longer be "
            f"read: {whys}. To take them out of the index, use --remove-all, in Python "
            "remove_all=True"
        )


def _unread(published: Path) -> tuple[dict[str, str], list[str]]:
    """Return why files with some endings cannot be read, by ending, and these files."""
    if not published.is_file():
        return {}, []
    try:
        # Whoever writes to the index now need not be waited for.
        with connect_published(published) as con:
            endings = [ending for (ending,) in con.execute(_ENDINGS).fetchall() if ending]
            reasons = {ending: why for ending in endings if (why := _why_unread(ending))}
            if not reasons:
                return {}, []
            rows = con.execute(_WITH_ENDING, {"endings": [*reasons]}).fetchall()
    except (StorageError, duckdb.Error):
        # The run that follows publishes a sound release, and is not to be stopped.
        return {}, []
    return reasons, [uri for (uri,) in rows]


def _why_unread(ending: str) -> str:
    try:
        return "" if format_of(ending) else f"install the package that reads {ending}"
    except PartError as error:
        return str(error)
