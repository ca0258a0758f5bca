"""Orders: what a worker must know of a batch, and the files that it is to read."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.ingest.stages import stage_versions
from graphrag_pipeline.store.batches import Batch
from graphrag_pipeline.store.objects import ObjectStore
from graphrag_pipeline.store.opening import open_source
from graphrag_pipeline.store.sources import Source, SourceChange
from graphrag_pipeline.store.workspace import Workspace

_FORMAT = 1


@dataclass(frozen=True)
class Order:
    """What is ordered: a batch, under these versions of its stages.

    ``sources`` are those of its files that no later batch has taken over, ``firsts`` the first name
    of the document of each, ``names`` what the files that are to be read are called. ``id`` tells
    an order from an earlier one of the same batch.
    """

    id: str
    batch: Batch
    versions: Mapping[str, str]
    sources: Mapping[str, Source]
    firsts: Mapping[str, str]
    names: Mapping[str, str] = field(default_factory=dict)

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
    order = replace(order, names={c.uri: log.path_of(c.uri).name for c in order.readable})
    _send_files(workspace, objects, order)
    objects.write(_order_name(key), _written(order))
    return order


def find_order(objects: ObjectStore, key: str) -> Order:
    """Return the order of a batch. Raises StorageError where there is none that can be read."""
    return _read(objects.read(_order_name(key)))


def file_name(key: str, sha256: str) -> str:
    """Return where a file of a batch that waits lies."""
    return f"files/{key}/{sha256}"


def drop_order(objects: ObjectStore, key: str) -> None:
    """Forget the order of a batch, and the files that were sent with it."""
    for name in objects.sizes(f"files/{key}"):
        objects.drop(name)
    objects.drop(_order_name(key))


def _send_files(workspace: Workspace, objects: ObjectStore, order: Order) -> None:
    if not workspace.settings.workers.send_files:
        return
    key, log = order.batch.key, workspace.batches
    there = objects.sizes(f"files/{key}")
    for change in order.readable:
        if change.sha256 is None or file_name(key, change.sha256) in there:
            continue
        data = bytes_of(
            log.path_of(change.uri), log.bounds_of(order.sources[change.uri].root), change.sha256
        )
        if data is not None:
            objects.write(file_name(key, change.sha256), data)


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
