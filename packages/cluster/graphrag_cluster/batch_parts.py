"""Parts: what the stages of ingestion made of a batch, as files that another machine can take in.

A part is there once its ``part.json`` is, which names the file of each table with its SHA-256. It
says which order it was made for; a part that is made twice is the same part twice.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import duckdb

from graphrag_cluster.objects import MissingObjectError, ObjectStore
from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.ingest.staging import DERIVED

TABLES: Mapping[str, Sequence[str]] = {
    "documents": ("batches", "batch_sources", "quarantine", "staging.documents", "staging.blocks"),
    "chunks": ("staging.chunks",),
    "extractions": tuple(f"staging.{table}" for table in DERIVED),
}
"""The tables that each stage writes, in its order; all have a column ``batch``."""
_FORMAT = 1
_LINES = """
SELECT stage, version, finished_at, seconds FROM batch_stages WHERE batch = ? ORDER BY finished_at
"""


class StageLine(NamedTuple):
    """A stage's line in ``batch_stages``."""

    stage: str
    version: str
    finished_at: str
    seconds: float


class TableFile(NamedTuple):
    """The file of a table: its name in the store, its SHA-256, and how many rows it has."""

    name: str
    sha256: str
    n_rows: int


@dataclass(frozen=True)
class BatchPart:
    """A part that is there: of which batch, by which order, and the files of its tables.

    Tables without rows have no file.
    """

    key: str
    order: str
    lines: Sequence[StageLine]
    files: Mapping[str, TableFile]

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions of the stages that made it."""
        return {line.stage: line.version for line in self.lines}


def find_part(objects: ObjectStore, key: str) -> BatchPart | None:
    """Return the part of a batch, None where none has been made."""
    try:
        raw = json.loads(objects.read(_part_name(key)))
    except MissingObjectError:
        return None
    if raw.pop("format") != _FORMAT:
        raise StorageError(
            f"the part of batch {key} was made by another version of the program: use one version "
            "on all machines"
        )
    lines = [StageLine(*line) for line in raw.pop("lines")]
    files = {table: TableFile(*file) for table, file in raw.pop("files").items()}
    return BatchPart(**raw, lines=lines, files=files)


def ship_part(
    con: duckdb.DuckDBPyConnection, objects: ObjectStore, key: str, order: str, folder: Path
) -> BatchPart:
    """Write what an index has of a batch to the store; ``part.json`` comes last.

    ``folder`` is an empty folder for what lies on this machine meanwhile.
    """
    files = {}
    # Two workers may make it at once, where one was taken for dead.
    made = f"{order}-{uuid.uuid4().hex[:8]}"
    for table in (table for tables in TABLES.values() for table in tables):
        local = folder / f"{table.removeprefix('staging.')}.parquet"
        rows = con.sql(f"SELECT * FROM {table} WHERE batch = $key", params={"key": key})
        rows.write_parquet(str(local), compression="zstd")
        n_rows = _count(con, str(local))
        if n_rows:
            name = f"parts/{key}/{made}/{local.name}"
            files[table] = TableFile(name, objects.upload(local, name), n_rows)
        local.unlink()
    lines = [
        StageLine(stage, version, at.isoformat(), seconds)
        for stage, version, at, seconds in con.execute(_LINES, [key]).fetchall()
    ]
    part = BatchPart(key, order, lines, files)
    objects.write(_part_name(key), json.dumps({"format": _FORMAT, **asdict(part)}).encode())
    return part


def keep_only(objects: ObjectStore, part: BatchPart) -> None:
    """Remove the files of other parts of a batch than the one that was taken in."""
    stay = {_part_name(part.key), *(file.name for file in part.files.values())}
    for name in objects.sizes(f"parts/{part.key}").keys() - stay:
        objects.drop(name)


def fetch_part(objects: ObjectStore, part: BatchPart, stages: Sequence[str], folder: Path) -> None:
    """Download the files of these stages' tables into a folder, each under the table's name.

    Raises MissingObjectError where one is gone, or is not what was written.
    """
    for table in (table for stage in stages for table in TABLES[stage] if table in part.files):
        file = part.files[table]
        objects.download(file.name, folder / f"{table}.parquet", file.sha256)


def put_part(
    con: duckdb.DuckDBPyConnection, part: BatchPart, stages: Sequence[str], folder: Path
) -> None:
    """Put the rows of these stages, fetched into a folder, in place of what there is of the batch.

    Call it in a transaction.
    """
    key = part.key
    for line in part.lines:
        if line.stage not in stages:
            continue
        for table in TABLES[line.stage]:
            con.execute(f"DELETE FROM {table} WHERE batch = ?", [key])
            if table in part.files:
                file = str(folder / f"{table}.parquet")
                con.execute(f"INSERT INTO {table} BY NAME FROM read_parquet(?)", [file])
        con.execute("DELETE FROM batch_stages WHERE batch = ? AND stage = ?", [key, line.stage])
        con.execute(
            "INSERT INTO batch_stages VALUES (?, ?, ?, ?, ?, true)",
            [
                key,
                line.stage,
                line.version,
                datetime.fromisoformat(line.finished_at),
                line.seconds,
            ],
        )


def _count(con: duckdb.DuckDBPyConnection, path: str) -> int:
    row = con.execute("SELECT count(*) FROM read_parquet(?)", [path]).fetchone()
    return row[0] if row else 0


def _part_name(key: str) -> str:
    return f"parts/{key}/part.json"
