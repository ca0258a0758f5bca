"""Documents that callers bring: put where the next run finds them, and followed on their way.

A caller's name of a file is never a path: what is kept is a plain name made of it, in a folder that
is called after its content. So nothing takes the place of anything else.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import unicodedata
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.errors import ConfigError, NothingPublishedError
from graphrag_pipeline.core.hardening.files import make_folder, replace_durably
from graphrag_pipeline.core.hardening.temporary import sweep, temporary_folder
from graphrag_pipeline.ingest.reading import supported_suffixes
from graphrag_pipeline.store.batches import Batch, read_manifest
from graphrag_pipeline.store.workspace import Workspace
from graphrag_server.folders import Folders
from graphrag_server.problems import HttpProblem

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings
    from graphrag_server.collections import VisibleCollection

STAGES = ("documents", "chunks", "extractions", "graph", "published")
"""What becomes of a batch, in this order."""
MOST_LISTED = 100
_MOST_BATCHES = 50
_NAME_BYTES = 120
_COMING = "upload"
"""What a file's folder is called after while the file is on its way."""
_HASH = 16

_STAGES_DONE = """
SELECT batch, stage FROM batch_stages SEMI JOIN (SELECT unnest($keys::JSON::VARCHAR[]) AS batch) w
    USING (batch)
UNION ALL
SELECT batch, 'graph' FROM graph_batches
SEMI JOIN (SELECT unnest($keys::JSON::VARCHAR[]) AS batch) w USING (batch)
"""
# An index knows a file as its run was told of it, by a relative path or a whole one: an upload is
# told by the end of it, which is its own.
_REASONS = r"""
SELECT place, reason FROM (SELECT regexp_extract(uri, '[^/]+/[^/]+$') AS place, * FROM quarantine)
SEMI JOIN (SELECT unnest($places::JSON::VARCHAR[]) AS place) w USING (place)
"""
_PUBLISHED_BATCHES = """
SELECT batch FROM graph_batches SEMI JOIN (SELECT unnest($keys::JSON::VARCHAR[]) AS batch) w
    USING (batch)
"""
_PUBLISHED_FILES = r"""
SELECT place, arg_min(id, human_readable_id) AS id, min(source) AS uri, count(*) AS n
FROM (SELECT *, regexp_extract(source, '[^/]+/[^/]+$') AS place FROM documents)
SEMI JOIN (SELECT unnest($places::JSON::VARCHAR[]) AS place) w USING (place) GROUP BY place
"""


@dataclass(frozen=True)
class TakenUpload:
    """A file that was taken, and whether it was not there before."""

    path: Path
    sha256: str
    n_bytes: int
    is_new: bool


def upload_folder(settings: Settings) -> Path | None:
    """Return the folder of uploads; None where the settings name none.

    Raises ConfigError where no run would look into it.
    """
    named = settings.server.uploads
    if not named:
        return None
    folder = Path(named).expanduser().resolve()
    if not folder.is_relative_to(settings.input_path):
        raise ConfigError(
            f"server.uploads = {named!r} is not within input.folder ({settings.input.folder!r}): "
            "no run would find what is uploaded; name a folder there"
        )
    return folder


def clear_up(folder: Path) -> None:
    """Remove what killed servers have left of files that were on their way."""
    sweep(folder, _COMING)


def plain_name(name: str) -> str:
    """Return a name for a file, made of what a caller calls it. Raises a 415 Problem for a kind
    of file that is not read."""
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rsplit("/", 1)[-1]
    stem, _, ending = last.rpartition(".")
    suffix = f".{ending.lower()}"
    if not stem or suffix not in supported_suffixes():
        raise HttpProblem(
            415,
            "files of that kind are not read: send text, Markdown, HTML, PDF, Office, "
            "OpenDocument, EPUB, mail, tables, JSON, notebooks or source code",
        )
    plain = re.sub(r"[^\w]+", "-", stem).strip("-_")
    return (plain.encode()[:_NAME_BYTES].decode(errors="ignore") or "document") + suffix


def kinds() -> list[str]:
    """Return the endings of files that are read."""
    return sorted(supported_suffixes())


async def take(
    pieces: AsyncIterator[bytes], name: str, folder: Path, *, most_mb: float, most_files: int
) -> TakenUpload:
    """Keep a file that comes in pieces; the same bytes under the same name are kept once.

    Raises a 413, 415, 422 or 507 Problem for one that is too large, of no kind that is read, empty,
    or one too many.
    """
    plain = plain_name(name)
    try:
        await asyncio.to_thread(make_folder, folder)
        await asyncio.to_thread(clear_up, folder)
        if await asyncio.to_thread(_n_files, folder) >= most_files:
            raise HttpProblem(
                507, f"the server keeps {most_files} uploads: whoever runs it puts some elsewhere"
            )
        with temporary_folder(folder, _COMING) as outer:
            beside = outer / plain
            sha256, n_bytes = await _write(pieces, beside, most_mb)
            return await asyncio.to_thread(_put, beside, folder, sha256, n_bytes)
    except OSError as error:
        raise HttpProblem(507, f"the file cannot be kept: {error.strerror}") from error


def too_large(most_mb: float) -> HttpProblem:
    """Return the 413 Problem of a file that is too large."""
    return HttpProblem(413, f"an upload has at most {most_mb:g} MB: split the file")


async def _write(pieces: AsyncIterator[bytes], path: Path, most_mb: float) -> tuple[str, int]:
    digest, n_bytes = hashlib.sha256(), 0
    with path.open("xb") as file:
        async for piece in pieces:
            n_bytes += len(piece)
            if n_bytes > most_mb * 1e6:
                raise too_large(most_mb)
            digest.update(piece)
            await asyncio.to_thread(file.write, piece)
    if not n_bytes:
        raise HttpProblem(422, "the file is empty: send its bytes as the body")
    return digest.hexdigest(), n_bytes


def _put(beside: Path, folder: Path, sha256: str, n_bytes: int) -> TakenUpload:
    path = folder / sha256[:_HASH] / beside.name
    is_new = not path.exists()
    if is_new:
        make_folder(path.parent)
        replace_durably(beside, path)
    return TakenUpload(path, sha256, n_bytes, is_new)


def _n_files(folder: Path) -> int:
    return sum(1 for _ in _files(folder))


def _files(folder: Path) -> Iterable[os.DirEntry[str]]:
    """Yield the files that were taken."""
    for place in os.scandir(folder):
        if re.fullmatch(rf"[0-9a-f]{{{_HASH}}}", place.name) and place.is_dir():
            yield from (file for file in os.scandir(place) if file.is_file(follow_symlinks=False))


def uploads(holder: VisibleCollection, folder: Path) -> list[dict[str, Any]]:
    """Return the newest uploads, and how far each has come: a batch, its stages, the release."""
    if not folder.is_dir():
        return []
    found = [(file.stat(), file) for file in _files(folder)]
    newest = sorted(found, key=lambda pair: pair[0].st_mtime_ns, reverse=True)[:MOST_LISTED]
    places = [_place(file.path) for _, file in newest]
    batches = _newest_batches(holder.home)
    batch_of = {
        _place(change.uri): batch.key
        for batch in reversed(batches)
        for change in batch.changes
        if change.action != "remove"
    }
    done = _done(holder, batches)
    folders = Folders.around(holder, [str(holder.settings.input_path), str(folder)])
    reasons = folders.without(dict(_of_index(holder, _REASONS, places=places)))
    published = _published(holder, _PUBLISHED_FILES, places=places)
    documents = {row["place"]: row for row in published}
    listed = []
    for (about, file), place in zip(newest, places, strict=True):
        batch = batch_of.get(place)
        stages = [*STAGES] if place in documents else done.get(batch or "", [])
        listed.append(
            {
                "name": file.name,
                "n_bytes": about.st_size,
                "taken_at": datetime.fromtimestamp(about.st_mtime, UTC),
                "batch": batch,
                "stages": stages,
                "status": _status(batch, stages, reasons.get(place)),
                "reason": reasons.get(place),
                "document_id": documents.get(place, {}).get("id"),
                "uri": documents.get(place, {}).get("uri"),
                "n_documents": documents.get(place, {}).get("n", 0),
            }
        )
    return listed


def recent_batches(holder: VisibleCollection) -> list[dict[str, Any]]:
    """Return the newest batches: what each brings, and which stages have done it."""
    batches = _newest_batches(holder.home)
    done = _done(holder, batches)
    return [
        {
            "key": batch.key,
            "created_at": batch.created_at,
            "counts": batch.counts,
            "stages": done[batch.key],
            "is_published": "published" in done[batch.key],
        }
        for batch in batches
    ]


def _status(batch: str | None, stages: Sequence[str], reason: str | None) -> str:
    if reason is not None:
        return "quarantined"
    if "published" in stages:
        return "published"
    return "waiting" if batch is None else "indexing"


def _newest_batches(home: Path) -> list[Batch]:
    """Return the last batches, the newest first; each is a manifest of its own."""
    manifests = sorted((home / "batches").glob("*.json"), reverse=True)
    return [read_manifest(path) for path in manifests[:_MOST_BATCHES]]


def _done(holder: VisibleCollection, batches: Sequence[Batch]) -> dict[str, list[str]]:
    """Return by batch which stages have done it, in their order."""
    keys = [batch.key for batch in batches]
    pairs = {(row[0], row[1]) for row in _of_index(holder, _STAGES_DONE, keys=keys)}
    published = {row["batch"] for row in _published(holder, _PUBLISHED_BATCHES, keys=keys)}
    pairs |= {(key, "published") for key in published}
    return {key: [stage for stage in STAGES if (key, stage) in pairs] for key in keys}


def _place(path: str) -> str:
    """Return what tells an upload from all others: its folder and its name."""
    return "/".join(path.replace(os.sep, "/").rsplit("/", 2)[-2:])


def _of_index(
    holder: VisibleCollection, sql: str, **values: Sequence[str]
) -> list[tuple[Any, ...]]:
    """Return rows of the index that is being made, which nothing here can change."""
    workspace = Workspace(holder.settings)
    if not workspace.exists:
        return []
    given = {name: json.dumps(value) for name, value in values.items()}
    with workspace.store.look() as con:
        return con.execute(sql, given).fetchall()


def _published(
    holder: VisibleCollection, sql: str, **values: Sequence[str]
) -> list[dict[str, Any]]:
    """Return rows of the release that answers; none where nothing is published."""
    try:
        return holder.use(lambda engine: engine.index.rows(sql, **values))
    except NothingPublishedError:
        return []
