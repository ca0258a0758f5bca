"""Orders: what a worker must know of a batch, and the files that it is to read."""

from __future__ import annotations

import hashlib
import json
import uuid
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from graphrag_cluster.objects import MissingObjectError, ObjectStore
from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.hardening.temporary import temporary_folder
from graphrag_pipeline.ingest.stages import stage_versions
from graphrag_pipeline.store.batches import Batch
from graphrag_pipeline.store.source_files import open_source
from graphrag_pipeline.store.sources import Source, SourceChange
from graphrag_pipeline.store.workspace import Workspace

_FORMAT = 2


@dataclass(frozen=True)
class Order:
    """An order: a batch, under these versions of its stages.

    ``sources`` are those of its files that no later batch has taken over, ``firsts`` the first name
    of the document of each, ``names`` what the files that are to be read are called, ``archive``
    what holds those that were sent. ``id`` tells an order from an earlier one of the same batch.
    """

    id: str
    batch: Batch
    versions: Mapping[str, str]
    sources: Mapping[str, Source]
    firsts: Mapping[str, str]
    names: Mapping[str, str] = field(default_factory=dict)
    archive: str = ""

    @property
    def readable(self) -> Iterator[SourceChange]:
        """The changes whose files are to be read."""
        for change in self.batch.changes:
            source = self.sources.get(change.uri)
            if source and source.batch == self.batch.key and self.firsts[change.uri] == change.uri:
                yield change


def place_order(workspace: Workspace, objects: ObjectStore, key: str) -> Order:
    """Write down what a worker must know of a batch, and send the files that it is to read.

    A file that has changed since the batch was cut is not sent: the next cut tells of it. Raises
    StorageError where the store cannot be written.
    """
    log = workspace.batches
    batch, sources, firsts = log.get(key), log.sources(), log.first_names()
    uris = [change.uri for change in batch.changes if change.uri in sources]
    order = Order(
        id=uuid.uuid4().hex,
        batch=batch,
        versions=stage_versions(workspace.settings, batch),
        sources={uri: sources[uri] for uri in uris},
        firsts={uri: firsts[uri] for uri in uris},
    )
    order = replace(
        order,
        names={c.uri: log.path_of(c.uri).name for c in order.readable},
        archive=_send_files(workspace, objects, order),
    )
    objects.write(_order_name(key), _written(order))
    return order


def find_order(objects: ObjectStore, key: str) -> Order:
    """Return the order of a batch. Raises StorageError where there is none that can be read."""
    return _read(objects.read(_order_name(key)))


def drop_order(objects: ObjectStore, key: str) -> None:
    """Forget the order of a batch, and the files that were sent with it."""
    for name in objects.sizes(f"files/{key}"):
        objects.drop(name)
    objects.drop(_order_name(key))


def unpack_sent(
    objects: ObjectStore, order: Order, files: Mapping[Path, str], place: Path
) -> set[Path]:
    """Write files that were sent, of these SHA-256, to their paths; return which could be had.

    ``place`` is a folder on this machine for what lies there meanwhile.
    """
    unpacked: set[Path] = set()
    if not order.archive or not files:
        return unpacked
    with temporary_folder(place, "sent") as folder:
        local = folder / "sent.zip"
        try:
            objects.download(order.archive, local)
            with zipfile.ZipFile(local) as archive:
                names = set(archive.namelist())
                for path, sha256 in files.items():
                    data = archive.read(sha256) if sha256 in names else b""
                    if hashlib.sha256(data).hexdigest() == sha256:
                        path.write_bytes(data)
                        unpacked.add(path)
        except (MissingObjectError, zipfile.BadZipFile):
            pass
    return unpacked


def _send_files(workspace: Workspace, objects: ObjectStore, order: Order) -> str:
    """Send the files of a batch as one archive, unless it is there; return its name."""
    key, log = order.batch.key, workspace.batches
    wanted = {c.sha256: c.uri for c in order.readable if c.sha256 is not None}
    if not workspace.settings.workers.send_files or not wanted:
        return ""
    name = _archive_name(key, wanted)
    if name in objects.sizes(f"files/{key}"):
        return name
    with temporary_folder(workspace.home, "sent") as folder:
        local = folder / "sent.zip"
        with zipfile.ZipFile(local, "w") as archive:
            for sha256, uri in wanted.items():
                bounds = log.bounds_of(order.sources[uri].root)
                data = bytes_of(log.path_of(uri), bounds, sha256)
                if data is not None:
                    archive.writestr(sha256, data)
            name = _archive_name(key, archive.namelist())
        objects.upload(local, name)
    return name


def _archive_name(key: str, hashes: Iterable[str]) -> str:
    of_all = hashlib.sha256("".join(sorted(hashes)).encode()).hexdigest()
    return f"files/{key}/{of_all}.zip"


def bytes_of(path: Path, bounds: Path | None, sha256: str) -> bytes | None:
    """Return what is in a file, None where it cannot be read or is another than it was."""
    try:
        with open_source(path, bounds) as file:
            data = file.read()
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == sha256 else None


def _order_name(key: str) -> str:
    return f"orders/{key}.json"


def _written(order: Order) -> bytes:
    given = asdict(order)
    given["batch"]["created_at"] = order.batch.created_at.isoformat()
    return json.dumps({"format": _FORMAT, **given}).encode()


def _read(data: bytes) -> Order:
    raw: dict[str, Any] = json.loads(data)
    if raw.pop("format") != _FORMAT:
        raise StorageError("the order is of another version of the program: update this worker")
    batch = raw.pop("batch")
    changes = tuple(SourceChange(**change) for change in batch.pop("changes"))
    batch["created_at"] = datetime.fromisoformat(batch["created_at"])
    sources = {uri: Source(**source) for uri, source in raw.pop("sources").items()}
    return Order(batch=Batch(changes=changes, **batch), sources=sources, **raw)
