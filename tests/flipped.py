"""Single bytes of a home's files, flipped one after the other, and what becomes of each."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import duckdb
import numpy as np

from graphrag_pipeline.llm.cache import CachedResponse, put_embeddings, put_response
from graphrag_pipeline.llm.database import CallDatabase
from graphrag_pipeline.query.published_arrays import carry_arrays
from graphrag_pipeline.releases.kept_releases import file_of, release_ids
from graphrag_pipeline.store.index_store import OtherStore
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.upkeep.checking import VERIFICATIONS, find_by
from graphrag_pipeline.upkeep.problems import Problem

_HEADERS = 3 * 4096
"""Bytes of a DuckDB file before its first block; of two headers one is in use."""

_SCHEMA_BYTES = 4096
"""The first page of a SQLite file: its header and the text of its schema, of which is no hash."""

KINDS: dict[str, Callable[[Path], Iterable[Path]]] = {
    "index": lambda home: [home / "index.duckdb"],
    "published": lambda home: [home / "published.duckdb"],
    "older release": lambda home: [file_of(home, min(release_ids(home)))],
    "vectors": lambda home: _below(home / "vectors", "data"),
    "versions of vectors": lambda home: _below(home / "vectors", "_versions"),
    "answers": lambda home: [home / "llm_cache.sqlite"],
    "manifests": lambda home: sorted((home / "batches").glob("*.json")),
    "arrays": lambda home: sorted((home / "releases").glob("*.arrays")),
    "sums": lambda home: [home / "releases" / "vectors.sums"],
    "marts": lambda home: [home / "marts.duckdb"],
    "evaluation": lambda home: [home / "evaluation.duckdb"],
    "history": lambda home: [home / "dagster" / "history" / "runs.db"],
}
"""The files of each kind that a home keeps."""


def _below(folder: Path, name: str) -> list[Path]:
    paths = sorted(folder.glob(f"*.lance/{name}/*"))
    return [path for path in paths if not path.name.endswith("hint.json")]


def fill(workspace: Workspace) -> None:
    """Give an index something of every kind of file."""
    home = workspace.home
    database = CallDatabase(home / "llm_cache.sqlite")
    answer = CachedResponse("An answer that was paid for. " * 9, 90, 30, "stop")
    vector = np.linspace(0, 1, 64, dtype=np.float32)
    keys = [hashlib.sha256(b"%d" % n).digest() for n in range(20)]
    asyncio.run(
        database.write(
            [put_response(key, "m", answer, "extractions") for key in keys]
            + [put_embeddings("e", dict.fromkeys(keys, vector), "search")]
        )
    )
    database.close()
    with contextlib.closing(sqlite3.connect(home / "llm_cache.sqlite")) as con:
        con.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with OtherStore(home / "evaluation.duckdb").transaction() as con:
        con.execute("CREATE TABLE noted AS SELECT range AS n, md5(range::VARCHAR) FROM range(999)")
    with duckdb.connect(str(home / "marts.duckdb")) as con:
        con.execute("CREATE TABLE mart AS SELECT range AS n, md5(range::VARCHAR) FROM range(999)")
    history = home / "dagster" / "history"
    history.mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(history / "runs.db")) as con:
        con.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, body TEXT)")
        con.executemany(
            "INSERT INTO runs (body) VALUES (?)", [(f"run {n} " * 9,) for n in range(99)]
        )
        con.commit()
    carry_arrays(home, workspace.settings)


def flips(home: Path, kind: str, number: int, seed: int = 0) -> Iterator[tuple[Path, int, int]]:
    """Yield files of a kind, a place in a used block of each, and the bits to flip there."""
    chance = random.Random(f"{kind} {seed}")
    files = [path for path in KINDS[kind](home) if path.stat().st_size]
    places = {path: used_places(path) for path in files}
    for _ in range(number):
        path = chance.choice(files)
        yield path, chance.choice(places[path]), 1 << chance.randrange(8)


def used_places(path: Path) -> list[int]:
    """Return the places of bytes in blocks that hold something."""
    data = np.frombuffer(path.read_bytes(), np.uint8)
    used = data != 0
    if path.suffix == ".duckdb":
        used &= _used_blocks(path, len(data))
    elif path.suffix in (".sqlite", ".db"):
        used[:_SCHEMA_BYTES] = False
    return np.flatnonzero(used).tolist()


def _used_blocks(path: Path, size: int) -> np.ndarray:
    """Return for each byte of a DuckDB file whether it is in a block that is in use."""
    used = np.zeros(size, bool)
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{path}' AS db (READ_ONLY)")
        con.execute("USE db")
        (block,) = con.execute(
            "SELECT block_size FROM pragma_database_size() WHERE database_name = 'db'"
        ).fetchone() or (0,)
        ids = {
            row[0] for row in con.execute("SELECT block_id FROM pragma_metadata_info()").fetchall()
        }
        for schema, table in con.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'db'"
        ).fetchall():
            rows = con.execute(
                "SELECT block_id, additional_block_ids FROM "
                f"pragma_storage_info('db.{schema}.{table}') WHERE persistent"
            ).fetchall()
            ids |= {id for one, more in rows for id in (one, *(more or ())) if id is not None}
    for id in ids:
        if id >= 0:
            used[_HEADERS + id * block : _HEADERS + (id + 1) * block] = True
    return used


@contextlib.contextmanager
def flipped(path: Path, place: int, bits: int) -> Iterator[None]:
    """Flip bits of a byte of a file, and flip them back at the end, with all else as it was."""
    mode, whole = path.stat().st_mode, path.read_bytes()
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.seek(place)
        file.write(bytes([whole[place] ^ bits]))
    try:
        yield
    finally:
        if path.exists():
            path.chmod(0o644)
            path.write_bytes(whole)
            path.chmod(mode)
        for beside in ("-wal", "-shm", "-journal"):
            Path(f"{path}{beside}").unlink(missing_ok=True)


def noticed(workspace: Workspace) -> list[Problem]:
    """Return what the first verification finds that finds something."""
    for verification in VERIFICATIONS:
        if problems := list(find_by(workspace, verification, ())):
            return problems
    return []


def trials(
    workspace: Workspace, kinds: Iterable[str], number: int, seed: int = 0
) -> tuple[dict[str, Counter[str]], list[str]]:
    """Flip ``number`` bytes of each kind; return what came of it by kind, and the exceptions.

    A flip counts as ``harmless`` where a file reads as before.
    """
    outcomes: dict[str, Counter[str]] = {}
    strange: list[str] = []
    for kind in kinds:
        counts = outcomes[kind] = Counter()
        for path, place, bits in flips(workspace.home, kind, number, seed):
            before = content_of(path)
            where = f"{path.relative_to(workspace.home)} at {place} by {bits}"
            with flipped(path, place, bits):
                try:
                    problems = noticed(workspace)
                except Exception as error:
                    counts["traceback"] += 1
                    strange.append(f"{kind}: {where}: {type(error).__name__}: {error}")
                    continue
                if any("\n" in problem.line for problem in problems):
                    counts["more than a line"] += 1
                elif problems:
                    counts["repairable" if problems[0].can_repair else "told"] += 1
                elif content_of(path) == before:
                    counts["harmless"] += 1
                else:
                    counts["missed"] += 1
                    strange.append(f"{kind}: missed {where}")
    return outcomes, strange


def content_of(path: Path) -> object:
    """Return what a database, or a file of JSON, says; of any other file the bytes.

    On which day an answer was used last is left out: it says only which one a limit drops first.
    """
    if path.suffix in (".sqlite", ".db"):
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path)) as con:
            if path.suffix == ".sqlite":
                con.execute("UPDATE responses SET used_on = 0")
                con.execute("UPDATE embeddings SET used_on = 0")
            return list(con.iterdump())
        return None
    if path.suffix == ".json":
        with contextlib.suppress(ValueError):
            return json.loads(path.read_bytes())
        return None
    return path.read_bytes() if path.suffix != ".duckdb" else None


def table_of(outcomes: dict[str, Counter[str]]) -> str:
    """Return a table of what came of the flips, by kind."""
    columns = ("repairable", "told", "harmless", "missed", "traceback", "more than a line")
    lines = ["kind | flips | " + " | ".join(columns)]
    for kind, counts in outcomes.items():
        numbers = " | ".join(str(counts[column]) for column in columns)
        lines.append(f"{kind} | {counts.total()} | {numbers}")
    return "\n".join(lines)
