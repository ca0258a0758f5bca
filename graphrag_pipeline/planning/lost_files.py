"""Guard against documents that would leave the index because their files can be read no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Set
from functools import cache, partial
from pathlib import Path

import duckdb

from graphrag_pipeline.core.doors import PartError
from graphrag_pipeline.core.errors import RemovalError, StorageError
from graphrag_pipeline.core.settings import BatchSettings
from graphrag_pipeline.ingest.reading.formats import format_of
from graphrag_pipeline.ingest.stages import IMPORTED, batch_versions
from graphrag_pipeline.store.batches import BatchLog, may_go
from graphrag_pipeline.store.index_store import connect_published
from graphrag_pipeline.store.snapshots import SITES
from graphrag_pipeline.store.sources import Source, ending_of, is_import
from graphrag_pipeline.store.workspace import Workspace

_INDEXED = "SELECT DISTINCT source FROM documents"
_READ = "SELECT batch, version FROM batch_stages WHERE stage = 'documents'"
_REMOVE = "To take them out of the index, use --remove-all, in Python remove_all=True"


def require_files(workspace: Workspace, folder: Path) -> None:
    """Raise RemovalError where more documents would go than may without being asked.

    The package that brought their format may be gone, or one that it needs; and where files are
    read again, the disk of a folder other than this one, which is looked into next. As many may go
    as files from a folder (``batches.max_removed_share``). Only where something is amiss, it is
    looked up which of these files are published, if that can be read.
    """
    log = workspace.batches
    published = cache(lambda: _indexed(workspace.paths.published))
    ask = partial(_ask, published, workspace.settings.batches)
    files = {
        uri: source
        for uri, source in log.sources().items()
        if source.root != SITES and not is_import(source.root)
    }
    reasons = _why_unread(log)
    unread = {uri for uri in files if ending_of(uri) in reasons}
    whys = "; ".join(sorted({reasons[ending_of(uri)] for uri in unread}))
    ask(unread, len(files), "indexed", f"can no longer be read: {whys}.")
    here = log.root_name(folder)
    elsewhere = {uri: source.root for uri, source in files.items() if source.root != here}
    missing = _missing(workspace, {uri: files[uri] for uri in elsewhere})
    n_files = Counter(elsewhere.values())
    for root in sorted({elsewhere[uri] for uri in missing}):
        lost = {uri for uri in missing if elsewhere[uri] == root}
        which = f"indexed from {log.folder_of(root)}"
        why = "are to be read again and are gone: is its disk mounted?"
        ask(lost, n_files[root], which, why)


def _ask(
    published: Callable[[], Set[str]],
    limits: BatchSettings,
    lost: Set[str],
    of: int,
    which: str,
    why: str,
) -> None:
    gone = sorted(published() & lost) if lost else []
    number = len(gone)
    if gone and (number == of or not may_go(number, of, limits)):
        raise RemovalError(
            f"{number} of the {of} files {which}, such as {gone[0]}, {why} {_REMOVE}"
        )


def _missing(workspace: Workspace, files: Mapping[str, Source]) -> list[str]:
    """Return those files that the next run reads again, and that are not there."""
    if not files or not workspace.exists:
        return []
    endings, version_of = workspace.batches.endings(), batch_versions(workspace.settings)
    with workspace.store.read() as con:
        rows = con.execute(_READ).fetchall()
    again = {
        batch
        for batch, version in rows
        if batch in endings and version not in (version_of(endings[batch])["documents"], IMPORTED)
    }
    path_of = workspace.batches.path_of
    return [
        uri for uri, source in files.items() if source.batch in again and not path_of(uri).exists()
    ]


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


def _why_unread(log: BatchLog) -> dict[str, str]:
    """Return the endings of indexed files that nothing reads, each with the reason."""
    endings = {ending for of_batch in log.endings().values() for ending in of_batch or ()}
    return {ending: why for ending in endings if ending and (why := _without_reader(ending))}


def _without_reader(ending: str) -> str:
    try:
        return "" if format_of(ending) else f"install the package that reads {ending.lower()}"
    except PartError as error:
        return str(error)
