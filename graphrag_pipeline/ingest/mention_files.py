"""Mentions wait in Parquet files, slice by slice, until they are staged in one transaction.

A dense text of 33 MB has three million mentions, each with the sentence it stands in. In files,
memory follows the slice and not the batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb
import polars as pl

from graphrag_pipeline.core.errors import StorageError, first_line
from graphrag_pipeline.core.hardening.files import told_of_disk
from graphrag_pipeline.core.hardening.temporary import sweep, temporary_folder
from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.extraction.mentions import Extraction
from graphrag_pipeline.store.limits import DatabaseLimits

_WAITING = "extracting"
_MEMORY_BYTES = 192_000_000


class MentionFiles:
    """Mentions with the ids of what they mention, in files of a folder that is there.

    ``limits`` are those of the database they will be staged in. Raises StorageError where they
    cannot be written.
    """

    def __init__(self, folder: Path, found: Iterable[Extraction], limits: DatabaseLimits) -> None:
        self._limits = limits
        self._files: dict[str, list[str]] = {"entity_mentions": [], "relationship_mentions": []}
        for number, part in enumerate(found):
            for (table, files), rows in zip(self._files.items(), identify(part), strict=True):
                file = folder / f"{table}-{number}.parquet"
                _write(rows, file)
                files.append(str(file))

    def stage(self, con: duckdb.DuckDBPyConnection, batch: str) -> None:
        """Stage the mentions as a batch's. Call it in a transaction."""
        for table, files in self._files.items():
            if files:
                with self._frugal(con) if len(files) > 1 else contextlib.nullcontext():
                    con.execute(
                        f"""INSERT INTO staging.{table} BY NAME
                            SELECT *, $batch AS batch FROM read_parquet($files)""",
                        {"batch": batch, "files": files},
                    )

    def _frugal(self, con: duckdb.DuckDBPyConnection) -> contextlib.AbstractContextManager[None]:
        """Have DuckDB put what it writes on disk at once; by itself it would fill memory first."""
        return self._limits.narrowed(con, memory_bytes=_MEMORY_BYTES, threads=1)


@contextlib.contextmanager
def mention_files(
    place: Path, found: Iterable[Extraction], limits: DatabaseLimits
) -> Iterator[MentionFiles]:
    """Write what is found into files in a folder of their own, which are gone at the end.

    So are those that killed processes have left there. ``limits`` are those of the database.
    """
    sweep(place, _WAITING)
    with contextlib.ExitStack() as stack:
        with told_of_disk(f"cannot write in {place}"):
            folder = stack.enter_context(temporary_folder(place, _WAITING))
        yield MentionFiles(folder, found, limits)


def _write(rows: pl.DataFrame, file: Path) -> None:
    try:
        rows.write_parquet(file, compression="lz4", statistics=False)
    except (OSError, pl.exceptions.ComputeError) as error:
        reason = first_line(error)
        raise StorageError(f"cannot write {file}: {reason}") from error


def identify(extraction: Extraction) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Replace titles by entity ids: the hash of the normalised title.

    Mentions whose title has nothing left after normalising, and relationships of an entity with
    itself, are left out. A relationship is undirected: its ends are ordered by id.
    """
    titles = pl.concat(
        [
            extraction.entities["title"],
            extraction.relationships["source"],
            extraction.relationships["target"],
        ]
    ).unique()
    keys = [normalize_title(title) for title in titles]
    ids = pl.DataFrame(
        {"title": titles, "entity_id": [make_id("entity", key) if key else None for key in keys]},
        schema={"title": pl.String, "entity_id": pl.String},
    )
    entities = extraction.entities.join(ids, "title").drop_nulls("entity_id")
    relationships = (
        extraction.relationships.join(ids, left_on="source", right_on="title")
        .rename({"entity_id": "left_id"})
        .join(ids, left_on="target", right_on="title")
        .rename({"entity_id": "right_id"})
        .filter(pl.col("left_id") != pl.col("right_id"))
        .with_columns(
            source_id=pl.min_horizontal("left_id", "right_id"),
            target_id=pl.max_horizontal("left_id", "right_id"),
        )
        .drop("source", "target", "left_id", "right_id")
    )
    return entities, relationships
