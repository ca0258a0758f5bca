"""The files that documents were read from, as they lie on the disk, for who may have them.

A file is given only as it was indexed: what has changed since is another, which nobody has looked
at yet. It is found by what the index says of it and never by what a caller says, and it must lie
in the folder that was indexed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from graphrag_pipeline.query.citations import Pages
from graphrag_pipeline.store.snapshots import is_address
from graphrag_pipeline.store.source_files import open_source
from graphrag_pipeline.store.workspace import Workspace
from graphrag_server.problems import HttpProblem, one

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

PDF = "application/pdf"
_BLOCK = 256 * 1024
_SHOWN = "SELECT id, uri <> source AS is_record FROM documents WHERE id = $id"
_SOURCE = """
SELECT s.uri, s.sha256, s.n_bytes, b.root
FROM published.documents d JOIN published.batch_sources s ON s.uri = d.source
JOIN published.batches b ON b.batch = s.batch
WHERE d.id = $id AND s.sha256 IS NOT NULL ORDER BY s.batch DESC LIMIT 1
"""
_NEVER = "the original files of this collection are not given out (server.originals)"
_RECORDS = "its file holds other documents too: it is given to who may see all of them"
_NO_FILE = "it was not read from a file of a folder"
_GONE = "its file no longer lies where it was indexed"
_CHANGED = "its file has changed since it was indexed: the next run reads it again"


@dataclass(frozen=True)
class Original:
    """The open file of a document, of which nothing was read but to compare its hash.

    ``stamp`` is what it looked like then; ``n_bytes`` its size.
    """

    file: BinaryIO
    name: str
    n_bytes: int
    stamp: tuple[int, int]

    @property
    def media_type(self) -> str:
        """PDF, which browsers show in a place apart; anything else is bytes to be saved."""
        return PDF if self.name.lower().endswith(".pdf") else "application/octet-stream"

    def pieces(self) -> Iterator[bytes]:
        """Yield its bytes, and close it. Raises OSError where it has changed meanwhile."""
        with self.file as file:
            while piece := file.read(_BLOCK):
                if _stamp(file) != self.stamp:
                    raise OSError("the file changed while it was sent")
                yield piece


def original_of(index: Release, id: str) -> Original:
    """Return the file that a document was read from, compared with what was indexed.

    Raises a 404 Problem that says why where there is none, 403 where the caller may not have it.
    """
    source = _source_of(index, id)
    original = _opened(index, source)
    digest = hashlib.sha256()
    while block := original.file.read(_BLOCK):
        digest.update(block)
    if digest.hexdigest() != source["sha256"] or _stamp(original.file) != original.stamp:
        original.file.close()
        raise HttpProblem(404, _CHANGED)
    original.file.seek(0)
    return original


def facts_of(index: Release, id: str, start: int | None) -> dict[str, Any]:
    """Return name, type and size of a document's file, and the page that a character is on.

    ``page`` is None where it is not known. Where :func:`original_of` would give no file, so far as
    sizes tell, all are None, and ``problem`` says why. Raises a 404 Problem for no such document.
    """
    one(index.rows(_SHOWN, id=id), "document")
    facts: dict[str, Any] = {"name": None, "media_type": None, "n_bytes": None, "page": None}
    try:
        original = _opened(index, _source_of(index, id))
    except HttpProblem as problem:
        return {**facts, "problem": problem.detail, "release": index.facts.id}
    with original.file:
        facts |= {"name": original.name, "media_type": original.media_type}
        facts["n_bytes"] = original.n_bytes
        if start is not None:
            facts["page"] = Pages(index, [id]).page_of(id, start)
    return {**facts, "problem": None, "release": index.facts.id}


def _source_of(index: Release, id: str) -> dict[str, Any]:
    """Return what is known of a document's file. Raises a Problem where it is not to be given."""
    if not index.settings.server.originals:
        raise HttpProblem(403, _NEVER)
    shown = one(index.rows(_SHOWN, id=id), "document")
    if shown["is_record"] and index.labels is not None:
        raise HttpProblem(403, _RECORDS)
    rows = index.rows(_SOURCE, id=id)
    if not rows or rows[0]["root"].startswith("import:") or is_address(rows[0]["uri"]):
        raise HttpProblem(404, _NO_FILE)
    return rows[0]


def _opened(index: Release, source: dict[str, Any]) -> Original:
    files = Workspace(index.settings).batches
    path = files.path_of(source["uri"])
    try:
        file = open_source(path, files.bounds_of(source["root"]))
    except (OSError, ValueError):
        raise HttpProblem(404, _GONE) from None
    n_bytes = os.fstat(file.fileno()).st_size
    if n_bytes != source["n_bytes"]:
        file.close()
        raise HttpProblem(404, _CHANGED)
    return Original(file, PurePosixPath(source["uri"]).name, n_bytes, _stamp(file))


def _stamp(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns
