"""Making a part: the stages of ingestion of one batch, on an empty index of the worker's own."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from graphrag_cluster.batch_parts import BatchPart, fetch_part, find_part, put_part, ship_part
from graphrag_cluster.objects import MissingObjectError, ObjectStore
from graphrag_cluster.orders import Order, bytes_of, find_order, unpack_sent
from graphrag_pipeline.core.errors import ConfigError, InputError, StorageError
from graphrag_pipeline.core.hardening.files import make_folder
from graphrag_pipeline.core.hardening.temporary import temporary_folder
from graphrag_pipeline.core.home import make_home
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.ingest.stages import (
    INGESTION,
    STAGES,
    stage_versions,
)
from graphrag_pipeline.pipeline.stages import ingest
from graphrag_pipeline.store.batches import Batch, BatchLog
from graphrag_pipeline.store.sources import Source, SourceChange
from graphrag_pipeline.store.workspace import Workspace


class OrderedBatch(BatchLog):
    """The manifests as one order tells of them: a single batch, and where its files lie here."""

    def __init__(self, home: Path, order: Order, folder: Path) -> None:
        super().__init__(home)
        self._order = order
        self._places = {
            change.uri: folder / str(number) / order.names[change.uri]
            for number, change in enumerate(order.readable)
        }

    def batches(self) -> list[Batch]:
        """Return the one batch."""
        return [self._order.batch]

    def get(self, key: str) -> Batch:
        """Return the batch. Raises InputError for another."""
        if key != self._order.batch.key:
            raise InputError(f"batch {key!r} was not ordered here")
        return self._order.batch

    def sources(self) -> dict[str, Source]:
        """Return those of the batch's sources that no later batch has taken over."""
        return dict(self._order.sources)

    def first_names(self) -> Mapping[str, str]:
        """Return, for the uri of each of them, the first name of its document."""
        return self._order.firsts

    def path_of(self, uri: str) -> Path:
        """Return where a file that is to be read lies, or is to lie."""
        return self._places[uri]

    def bounds_of(self, root: str) -> Path | None:
        """Return None: these files are copies, and no links."""
        return None


class PartWorkspace(Workspace):
    """An index of one batch, in a folder of the worker's home that is gone when the part is there.

    Raises ConfigError where this machine would make another part than is ordered.
    """

    keeps_calls = False

    def __init__(self, settings: Settings, order: Order) -> None:
        place = settings.home_path / "parts" / order.batch.key
        super().__init__(settings.model_copy(update={"home": str(place / "home")}))
        self.order = order
        self.place = place
        self.is_shipped = False
        self._own = Workspace(settings)
        _check_versions(stage_versions(settings, order.batch), order.versions)

    @cached_property
    def batches(self) -> BatchLog:
        """The order's batch."""
        return OrderedBatch(self.home, self.order, self.place / "files")

    def coordinating(self) -> contextlib.AbstractContextManager[object]:
        """Coordinate nothing: who makes a part needs no lease."""
        return contextlib.nullcontext()

    def hand_over(self) -> None:
        """Write the part to the store."""
        ship(self, ObjectStore(self.settings.storage.url))

    def fetch_files(self, objects: ObjectStore) -> None:
        """Copy the files that are to be read: from where this machine sees them, or as sent.

        Raises StorageError, and nothing is quarantined, where one is not to be had as it was when
        the batch was cut.
        """
        missing = [change for change in self.order.readable if not self._copy_seen(change)]
        paths = {change.uri: self.batches.path_of(change.uri) for change in missing}
        files = {paths[change.uri]: change.sha256 for change in missing if change.sha256}
        sent = unpack_sent(objects, self.order, files, self.place)
        if unseen := [uri for uri, path in paths.items() if path not in sent]:
            more = f" and {len(unseen) - 1} more" if len(unseen) > 1 else ""
            raise StorageError(
                f"this worker does not see {unseen[0]}{more}, or not as it was when the batch was "
                "cut: let it see the folder of the documents, or set workers.send_files"
            )

    def _copy_seen(self, change: SourceChange) -> bool:
        """Copy a file that this machine sees; one that is too large to be read is only as large."""
        target = self.batches.path_of(change.uri)
        target.parent.mkdir(parents=True, exist_ok=True)
        if change.sha256 is None:
            if change.n_bytes > self.settings.input.max_file_bytes:
                with target.open("wb") as file:
                    file.truncate(change.n_bytes)
            return True
        data = bytes_of(self._own.batches.path_of(change.uri), None, change.sha256)
        if data is not None:
            target.write_bytes(data)
        return data is not None


@contextlib.contextmanager
def making_part(settings: Settings, objects: ObjectStore, key: str) -> Iterator[PartWorkspace]:
    """Yield what the stages work on to make the part that is ordered of a batch.

    What an earlier part of the batch has of documents and chunks under the same versions is taken
    from it. What was made before this process was killed is still there. Raises StorageError
    where nothing is ordered, or a file is not to be had, and ConfigError where this machine would
    make another part.
    """
    workspace = PartWorkspace(settings, find_order(objects, key))
    make_home(settings)
    make_folder(workspace.place)
    with workspace.turn():
        done = _resume(workspace, objects)
        if "documents" not in done:
            workspace.fetch_files(objects)
        yield workspace
    if workspace.is_shipped:
        shutil.rmtree(workspace.place, ignore_errors=True)


def ship(workspace: PartWorkspace, objects: ObjectStore) -> BatchPart:
    """Write the part to the store."""
    order = workspace.order
    with temporary_folder(workspace.place, "ship") as folder, workspace.store.read() as con:
        part = ship_part(con, objects, order.batch.key, order.id, folder)
    workspace.is_shipped = True
    return part


def make_part(settings: Settings, objects: ObjectStore, key: str) -> BatchPart:
    """Make the part that is ordered of a batch, and write it to the store."""
    with making_part(settings, objects, key) as workspace:
        for stage in INGESTION:
            ingest(workspace, stage, key)
        return ship(workspace, objects)


def _resume(workspace: PartWorkspace, objects: ObjectStore) -> Sequence[str]:
    """Take documents and chunks from an earlier part, as far as they are as ordered.

    Returns the stages that are done.
    """
    key, wanted = workspace.order.batch.key, workspace.order.versions
    with workspace.store.read() as con:
        lines = con.execute("SELECT stage, version FROM batch_stages").fetchall()
    done = [stage for stage, version in lines if wanted[stage] == version]
    if done:
        return done
    part = find_part(objects, key)
    stages = [s for s in STAGES[:-1] if part and part.versions.get(s) == wanted[s]]
    if part is None or not stages:
        return []
    try:
        with temporary_folder(workspace.place, "earlier") as folder:
            fetch_part(objects, part, stages, folder)
            with workspace.store.transaction() as con:
                put_part(con, part, stages, folder)
    except MissingObjectError:
        return []
    return stages


def _check_versions(own: Mapping[str, Any], ordered: Mapping[str, Any]) -> None:
    differing = [stage for stage in STAGES if own[stage] != ordered[stage]]
    if differing:
        raise ConfigError(
            f"this worker would make other {differing[0]} than the coordinator: give both the same "
            "version of the program, the same settings and the same libraries (extras, tesseract)"
        )
