"""Room on the disk for a run, checked before anything is paid."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.store.batches import BatchLog
from graphrag_pipeline.store.sources import SourceChange

log = logging.getLogger("graphrag_pipeline")

_OF_TABLES = 43.0
"""Bytes that a byte of new plain text takes at the peak: tables twice, as they are published."""
_OF_DIMENSION = 0.029
"""Bytes that it takes for each dimension of its vectors."""
_OF_STRUCTURE = 8.0
"""Bytes that it takes for each hierarchy or other structure besides."""
_USUAL_OF_MODELS, _USUAL_OF_LOCAL = 1536, 384
_EMPTY_BYTES = 30_000_000
"""What an index of a few documents takes, and the least that is left for everything else."""


@dataclass(frozen=True)
class Space:
    """Room on the disk of the home folder, needed and free, in bytes."""

    needed: int
    """About what it takes at its peak."""
    least: int
    """What it takes in any case: to publish, the whole index is copied first."""
    free: int
    """What the disk has for this user; a quota may allow less."""


def space_for(settings: Settings, changes: Iterable[SourceChange]) -> Space:
    """Return what a run that takes in these changes needs of the disk, and what it has."""
    home = Home(settings.home_path)
    index, published = (_size(home.index), _size(home.published))
    added = sum(change.n_bytes for change in changes)
    growth = int(_growth(settings) * added)
    needed = index + max(published, index // 2) + growth + _EMPTY_BYTES
    return Space(needed=needed, least=index, free=free_bytes(home.folder))


def _growth(settings: Settings) -> float:
    """Return about how many bytes a byte of new plain text takes; of HTML it is half of that.

    Measured on podcasts, a third and all of them (62 and 46 by default, 88 with vectors of 1,536
    dimensions, 100 with five structures), and on technical documentation (30, HTML for the most
    part).
    """
    given, also = settings.embeddings, settings.hierarchies
    dimensions = {
        "local": _USUAL_OF_LOCAL,
        # What was paid for is in the cache, too.
        "llm": 2 * (settings.llm_for("embeddings").embedding_dimensions or _USUAL_OF_MODELS),
    }.get(given.embedder, given.dimensions)
    structures = [given.facts, given.synonyms, also.raptor, also.attributed, also.hirag]
    return _OF_TABLES + _OF_DIMENSION * dimensions + _OF_STRUCTURE * sum(structures)


def check_space(settings: Settings, changes: Iterable[SourceChange]) -> None:
    """Raise StorageError where the disk has surely no room for a run; warn where it may have none.

    With ``batches.check_space`` off, neither.
    """
    if not settings.batches.check_space:
        return
    space = space_for(settings, changes)
    numbers = f"the run needs about {megabytes(space.needed)}, has {megabytes(space.free)}"
    if space.free < space.least:
        raise StorageError(
            f"no room in {settings.home_path}: {numbers}, and the index is copied to publish it "
            f"({megabytes(space.least)}); free some disk space, or keep fewer releases "
            "(releases.keep), and run again"
        )
    if space.free < space.needed:
        log.warning("little room in %s: %s", settings.home_path, numbers)


def changes_of(log: BatchLog, batches: Iterable[str]) -> list[SourceChange]:
    """Return the changes that are listed in batches."""
    return [change for key in batches for change in log.get(key).changes]


def free_bytes(folder: Path) -> int:
    """Return what is free on the disk of a folder, whether the folder is there already or not."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(there).free


def megabytes(n_bytes: int) -> str:
    """Return a number of bytes in words.

    >>> megabytes(12_300_000), megabytes(4_560_000_000)
    ('12 MB', '4.6 GB')
    """
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.0f} MB"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
