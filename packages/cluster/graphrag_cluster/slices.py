"""Slices: pieces of a stage's work that workers make, each a partition in Dagster.

A slice is named after its order: one that is made twice is the same slice twice, and one that was
made before the coordinator was killed is not made again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from graphrag_cluster.embedding_slices import SpreadEmbedder, embed_slice
from graphrag_cluster.objects import MissingObjectError, ObjectStore
from graphrag_cluster.pieces import MakePieces, Piece
from graphrag_cluster.report_slices import SpreadWriter, write_slice
from graphrag_pipeline.core.service_settings import IN_PROCESS
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.reports.model_writer import REPORTS
from graphrag_pipeline.structures.updating import EMBEDDINGS

T = TypeVar("T")
SWEPT_AFTER_SECONDS = 24 * 3600.0
"""A slice of a coordinator that is gone stays so long: who goes on soon need not make it again."""
MakeSlices = Callable[[Sequence[str]], object]
"""Has these slices made by workers, and returns when they are."""


@dataclass(frozen=True)
class SliceKind:
    """Work of a stage that workers may do in slices.

    ``make`` returns, from an order, what was made and how many rows of it; ``spread`` what stands
    in for who does such work on one machine. ``group`` is that of the stage in Dagster.
    """

    name: str
    group: str
    about: str
    is_wanted: Callable[[Settings], bool]
    make: Callable[[Settings, bytes], tuple[bytes, int]]
    spread: Callable[[Any, MakePieces], object]

    def standing_in(self, make: MakePieces) -> Callable[[Any], object]:
        """Return what gives the stand-in for who does such work on one machine."""
        return lambda worker: self.spread(worker, make)

    @property
    def partitions(self) -> str:
        """The name of its partitions in Dagster."""
        return f"{self.name}_slice"

    @property
    def asset(self) -> str:
        """The name of its asset."""
        return f"{self.name}_slices"

    @property
    def job(self) -> str:
        """The name of the job that makes one."""
        return f"make_{self.name}_slice"


KINDS = (
    SliceKind(
        EMBEDDINGS,
        "embeddings",
        "Vectors of a slice of texts, made by a worker; the coordinator takes them.",
        # What an endpoint embeds waits for it.
        lambda settings: settings.embeddings.embedder == "local",
        embed_slice,
        SpreadEmbedder,
    ),
    SliceKind(
        REPORTS,
        "reports",
        "Reports on a slice of a level's communities, by a worker; the coordinator takes them.",
        lambda settings: settings.reports.writer == "llm",
        write_slice,
        SpreadWriter,
    ),
)


def wanted_kinds(settings: Settings) -> list[SliceKind]:
    """Return what is made in slices under these settings: nothing without workers."""
    if settings.workers.launcher == IN_PROCESS:
        return []
    return [kind for kind in KINDS if kind.is_wanted(settings)]


def make_pieces(
    objects: ObjectStore, make_slices: MakeSlices, pieces: Iterable[Piece[T]]
) -> Iterator[T]:
    """Have pieces made by workers, each as a slice, and yield what was made of each.

    Raises MissingObjectError where a worker brought none that can be read, and what ``make_slices``
    raises.
    """
    ordered = [(order_slice(objects, piece.order), piece.read) for piece in pieces]
    left = Counter(key for key, _ in ordered)
    make_slices([key for key in left if not is_made(objects, key)])
    for key, read in ordered:
        yield find_slice(objects, key, read)
        left[key] -= 1
        if not left[key]:
            drop_slice(objects, key)


def order_slice(objects: ObjectStore, order: bytes) -> str:
    """Write down what a worker is to make; return the name of the slice."""
    key = hashlib.sha256(order).hexdigest()[:32]
    objects.write(_order(key), order)
    return key


def make_slice(kind: SliceKind, settings: Settings, objects: ObjectStore, key: str) -> int:
    """Make a slice as it is ordered; return how many rows it has.

    Raises ConfigError where this machine would make another.
    """
    data, n_rows = kind.make(settings, objects.read(_order(key)))
    objects.write(_made(key), data)
    return n_rows


def is_made(objects: ObjectStore, key: str) -> bool:
    """Whether a slice is there."""
    return _made(key) in objects.sizes(f"slices/{key}")


def find_slice(objects: ObjectStore, key: str, read: Callable[[bytes], T]) -> T:
    """Return what was made of a slice. Raises MissingObjectError where it cannot be read."""
    try:
        return read(objects.read(_made(key)))
    except (ValueError, EOFError):
        drop_slice(objects, key)
        raise MissingObjectError(
            f"what a worker made of slice {key} is damaged: run again, and it is made again"
        ) from None


def drop_slice(objects: ObjectStore, key: str) -> None:
    """Forget a slice."""
    for name in (_order(key), _made(key)):
        objects.drop(name)


def sweep_slices(objects: ObjectStore) -> None:
    """Forget slices of which nothing was written for a day. No coordinator may be waiting for one.

    Raises StorageError where the store cannot be reached.
    """
    ages = objects.ages("slices")
    youngest: dict[str, float] = {}
    for name, seconds in ages.items():
        folder = name.rpartition("/")[0]
        youngest[folder] = min(seconds, youngest.get(folder, seconds))
    for name in ages:
        if youngest[name.rpartition("/")[0]] > SWEPT_AFTER_SECONDS:
            objects.drop(name)


def _order(key: str) -> str:
    return f"slices/{key}/order"


def _made(key: str) -> str:
    return f"slices/{key}/made"
