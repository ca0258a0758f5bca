"""The vector tables, verified against the rows that they were made from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import duckdb
import numpy as np

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.llm.configured import calls_place, configured_embedder, model_options
from graphrag_pipeline.llm.offline import vectors_known
from graphrag_pipeline.store.file_sums import changed_files, sums_file
from graphrag_pipeline.store.held_vectors import are_numbers
from graphrag_pipeline.store.vector_store import (
    HALF_DIGEST,
    DamagedVectorsError,
    lance_reason,
    row_digest,
)
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import made_vector_tables
from graphrag_pipeline.structures.structure import VectorTable
from graphrag_pipeline.structures.vector_tables import stale_tables, version_of
from graphrag_pipeline.upkeep.problems import Problem, problem_of_some
from graphrag_pipeline.upkeep.salvaging import damaged_name

VECTORS = "vectors"
UNREADABLE = "vector_files"
CHANGED = "changed_vector_files"

_TEXTS = "SELECT id, sha256(text) FROM ({texts})"
_COLUMNS = ("id", "content_hash", "vector")


@contextlib.contextmanager
def reading_vectors() -> Iterator[None]:
    """Raise StorageError for whatever LanceDB, or the Rust below it, raises about a file."""
    try:
        yield
    except DamagedVectorsError as error:
        raise StorageError(error.reason) from error
    except StorageError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        raise StorageError(lance_reason(error)) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise StorageError(lance_reason(error)) from None


def find_changed_files(workspace: Workspace) -> Iterator[Problem]:
    """Yield the tables of vectors of which a file is not as it was written."""
    home = workspace.home
    try:
        changed = changed_files(home)
    except StorageError:
        where = sums_file(home).relative_to(home).as_posix()
        what = "the hashes of the files of vectors are damaged"
        yield Problem(check=CHANGED, where=where, what=what)
        return
    for table in sorted({Path(name).parts[1] for name in changed}):
        own = [name for name in changed if Path(name).parts[1] == table]
        yield from problem_of_some(
            own,
            check=CHANGED,
            where=f"vectors/{table}",
            what="files that are not as they were written",
        )


def find_wrong_vectors(workspace: Workspace) -> Iterator[Problem]:
    """Yield what is wrong with the vectors of the index as it is.

    Those of a table that has changed since they were made are made by the next run.
    """
    settings = workspace.settings
    embedder = configured_embedder(settings)
    with workspace.store.look() as con:
        made = made_vector_tables(con, settings)
        stale = stale_tables(con, embedder.name, made)
        tables = {
            table.name: (version_of(con, table.name), wanted_hashes(con, table))
            for table in made
            if table not in stale
        }
    dimensions: dict[str, int] = {}
    for name, (version, wanted) in tables.items():
        if wanted or version:
            found = VectorFaults(workspace, name, version, embedder.name)
            yield from found.problems(wanted, "index.duckdb")
            dimensions[name] = found.dimensions
    yield from _unequal_dimensions(workspace, dimensions)


def wanted_hashes(con: duckdb.DuckDBPyConnection, table: VectorTable) -> dict[str, str]:
    """Return the ids of the rows that a vector table should hold, and hashes of their texts."""
    return dict(con.execute(_TEXTS.format(texts=table.texts)).fetchall())


class VectorFaults:
    """Faults of a version of a vector table against the rows it should have."""

    def __init__(self, workspace: Workspace, table: str, version: int, embedder: str) -> None:
        self._vectors = workspace.vectors
        self._table = table
        self._version = version
        self._embedder = embedder
        self.dimensions = 0
        self.ids: dict[str, str] = {}
        self.not_numbers: list[str] = []

    def read(self) -> None:
        """Read the version whole. Raises StorageError where that cannot be."""
        with reading_vectors():
            snapshot = self._vectors.at({self._table: self._version})
            self.dimensions = snapshot.dimensions(self._table)
            if not self._version:
                raise StorageError("it is not there")
            for part in snapshot.scan(self._table, _COLUMNS):
                ids = part["id"].to_pylist()
                self.ids.update(zip(ids, part["content_hash"].to_pylist(), strict=True))
                bad = np.flatnonzero(~are_numbers(part["vector"]))
                self.not_numbers += [ids[place] for place in bad]

    def problems(self, wanted: Mapping[str, str], file: str) -> Iterator[Problem]:
        """Yield what is wrong, given the ids that should be there and the hashes of their texts."""
        where = f"vectors/{self._table}.lance"
        try:
            self.read()
        except StorageError as error:
            what = f"version {self._version} of {file} cannot be read ({error})"
            yield Problem(check=UNREADABLE, where=where, what=what)
            return
        # Only by the half that is of the text: an older program found it by other terms.
        stale = [
            id
            for id, digest in self.ids.items()
            if id in wanted
            and digest[HALF_DIGEST:] != row_digest(wanted[id], self._embedder)[HALF_DIGEST:]
        ]
        for what, ids in (
            (f"rows of {file} without a vector", wanted.keys() - self.ids.keys()),
            (f"vectors of no row of {file}", self.ids.keys() - wanted.keys()),
            (f"vectors of another text than {file} has", stale),
            ("vectors that are not numbers", self.not_numbers),
        ):
            yield from problem_of_some(ids, check=VECTORS, where=where, what=what)


def _unequal_dimensions(workspace: Workspace, dimensions: Mapping[str, int]) -> Iterator[Problem]:
    """Yield the tables whose vectors are not as long as the embedder's, or as those of most."""
    known = [number for number in dimensions.values() if number]
    if not known:
        return
    given = workspace.settings.embeddings
    usual = given.dimensions if given.embedder == "hashing" else max(set(known), key=known.count)
    for table, number in dimensions.items():
        if number and number != usual:
            yield Problem(
                check=UNREADABLE,
                where=f"vectors/{table}.lance",
                what=f"vectors have {number} dimensions in place of {usual}",
            )


def set_aside(workspace: Workspace, table: str) -> str:
    """Move the folder of a damaged table out of the way; return the name it has now."""
    folder = workspace.paths.vectors / f"{table}.lance"
    aside = damaged_name(folder.with_suffix(""))
    if folder.exists():
        folder.rename(aside)
    return aside.name


def embedding_is_free(workspace: Workspace, texts: list[str]) -> bool:
    """Whether vectors of texts can be made without paying: here, or all from the cache."""
    settings = workspace.settings
    if settings.embeddings.embedder != "llm":
        return True
    return all(vectors_known(calls_place(settings), model_options(settings, "embeddings"), texts))
