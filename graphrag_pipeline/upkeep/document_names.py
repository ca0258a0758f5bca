"""Documents by whatever name a person has for them, also those that the index has lost."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from graphrag_pipeline.core.errors import InputError, StorageError
from graphrag_pipeline.releases.older_releases import each_release
from graphrag_pipeline.store.batches import Batch
from graphrag_pipeline.store.index_store import connect_published
from graphrag_pipeline.store.scanning import scan_folder
from graphrag_pipeline.store.snapshots import SITES
from graphrag_pipeline.store.sources import Source, SourceChange, is_import
from graphrag_pipeline.store.workspace import Workspace

_SOURCES = """
SELECT id, source FROM documents UNION SELECT uri, source FROM documents UNION
SELECT uri, uri FROM batch_sources
"""
_MOST_NAMED = 5


def named_sources(
    workspace: Workspace, names: Sequence[str], *, may_be_unknown: bool = False
) -> list[str]:
    """Return the uris of the files that hold the documents of these names.

    A name is a path, that of a folder too, a uri, or the id of a document: of the index, of a
    release that is kept, or of a manifest. Raises InputError for one that nothing knows, unless it
    ``may_be_unknown``.
    """
    sources_of = _known_names(workspace)
    uris: set[str] = set()
    for name in names:
        matches = _matches(workspace, name, sources_of)
        if not matches and not may_be_unknown:
            raise InputError(
                f"{workspace.home} never held a document {name}: graphrag-pipeline sql 'SELECT "
                "id, uri FROM documents' lists the documents"
            )
        uris |= matches
    return sorted(uris)


def _matches(workspace: Workspace, name: str, sources_of: Mapping[str, set[str]]) -> set[str]:
    forms = {name, workspace.batches.root_name(Path(name))}
    exact = {uri for form in forms for uri in sources_of.get(form, ())}
    if exact:
        return exact
    within = tuple(f"{form.rstrip('/')}/" for form in forms if form.strip("/."))
    everything = set().union(*sources_of.values())
    return {uri for uri in everything if uri.startswith(within)} if within else set()


def _known_names(workspace: Workspace) -> dict[str, set[str]]:
    """Return the uris of files by each name that is known for what they hold or held."""
    known: dict[str, set[str]] = {}
    for change in _changes(workspace.batches.batches()):
        for uri in {change.uri, change.origin or change.uri}:
            known.setdefault(uri, set()).add(uri)
    for name, source in _rows(workspace):
        known.setdefault(name, set()).add(source)
    return known


def _changes(batches: Sequence[Batch]) -> Iterator[SourceChange]:
    return (change for batch in batches for change in batch.changes)


def _rows(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """Yield names of documents, with their files, of the index and all releases."""
    if workspace.exists:
        with workspace.store.read() as con:
            yield from con.execute(_SOURCES).fetchall()
    for path in filter(None, (each.path for each in each_release(workspace.home))):
        rows: list[tuple[str, str]] = []
        with contextlib.suppress(StorageError), connect_published(path) as con:
            rows = con.execute(_SOURCES).fetchall()
        yield from rows


def check_gone(workspace: Workspace, uris: Sequence[str]) -> None:
    """Raise InputError, saying what to do, where a next run would bring some file back.

    That is where it lies in its folder and is not ignored; and where its content, or the name that
    ids are made from, belongs to a file that stays.
    """
    sources = workspace.batches.sources()
    if still_there := _in_their_folders(workspace, uris, sources):
        raise InputError(
            f"{_some(still_there)} would come back with the next run: delete the file, or have "
            "it ignored (.graphragignore), and then forget it"
        )
    staying = {uri: source for uri, source in sources.items() if uri not in uris}
    hashes = {
        change.sha256
        for change in _changes(workspace.batches.batches())
        if change.uri in uris and change.sha256
    }
    for uri, source in sorted(staying.items()):
        if source.sha256 in hashes:
            raise InputError(f"{uri} has the same content: delete and forget it too")
        if source.identity in uris:
            raise InputError(
                f"{uri} was called {source.identity} when it was first indexed, and its ids are "
                "made from that name: delete and forget it too"
            )


def _in_their_folders(
    workspace: Workspace, uris: Sequence[str], sources: Mapping[str, Source]
) -> list[str]:
    """Return those of the files that a scan of their folders shows."""
    roots = {batch.root for batch in workspace.batches.batches() if not is_import(batch.root)}
    shown: set[str] = set()
    for root in sorted(roots):
        shown |= _shown(workspace, root)
    shown -= {uri for uri, source in sources.items() if is_import(source.root)}
    return [uri for uri in uris if uri in shown]


def _shown(workspace: Workspace, root: str) -> set[str]:
    """Return the uris of the files that a scan of a folder shows."""
    log = workspace.batches
    if root == SITES:
        return {uri for uri, source in log.sources().items() if source.root == SITES} & {
            uri for uri in log.sources() if log.path_of(uri).exists()
        }
    folder = workspace.home.resolve().parent / root
    if not folder.is_dir():
        return set()
    prefix = "" if root == "." else f"{root}/"
    return {f"{prefix}{path}" for path in scan_folder(folder, workspace.home, log.selection).files}


def _some(uris: Sequence[str]) -> str:
    more = len(uris) - _MOST_NAMED
    return ", ".join(uris[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
