"""The files of a backup, verified before they are packed: damage is not to get into an archive."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.releases.kept_releases import changes_files
from graphrag_pipeline.store.array_file import is_whole
from graphrag_pipeline.store.batches import read_manifest
from graphrag_pipeline.store.file_sums import read_sums
from graphrag_pipeline.upkeep.home_files import brought, faults
from graphrag_pipeline.upkeep.index_tables import fault_of
from graphrag_pipeline.upkeep.other_files import sqlite_fault
from graphrag_pipeline.upkeep.release_files import release_paths
from graphrag_pipeline.upkeep.salvaging import count_changed


def check_whole(folder: Path, hashes: Mapping[str, str]) -> None:
    """Raise StorageError, in one line, if a file below ``folder`` is not as it was written.

    ``hashes`` are the SHA-256 of all of them, by their paths.
    """
    damage = next(_damage(folder, hashes), None)
    if damage is not None:
        raise StorageError(f"nothing was backed up: {damage}; run graphrag-pipeline check")


def _damage(folder: Path, hashes: Mapping[str, str]) -> Iterator[str]:
    yield from _of_databases(folder)
    for name, fault, _ in faults(folder, brought()) if brought() else ():
        yield f"{name}: {fault}"
    for name, written in read_sums(folder).items():
        if hashes.get(name, written) != written:
            yield f"{name} is not as it was written"
    for path in sorted((folder / "batches").glob("*.json")):
        read_manifest(path)
    for path in sorted(Home(folder).releases.glob("*.arrays")):
        if not is_whole(path):
            yield f"{path.relative_to(folder)}: its bytes are damaged"
    calls = Home(folder).calls
    if calls.is_file():
        if fault := sqlite_fault(calls):
            yield f"{calls.name} is damaged ({fault})"
        with contextlib.closing(sqlite3.connect(calls)) as con:
            if number := count_changed(con):
                yield f"{calls.name}: {number:,} entries are not what was bought"


def _of_databases(folder: Path) -> Iterator[str]:
    home = Home(folder)
    others = [path for path in (home.evaluation, home.marts) if path.is_file()]
    older = changes_files(folder).values()
    for path in [home.index, *release_paths(folder).values(), *older, *others]:
        if fault := fault_of(path):
            yield f"{path.relative_to(folder)}: {fault}"
