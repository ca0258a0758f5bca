"""An index several times as large as one that there is.

    python -m benchmarks.multiplied HOME TARGET [--times 5]
    python -m benchmarks.multiplied HOME TARGET --stages [--times 5] [--memory-gb 2]

Rows come several times, each time with ids hashed anew and the letters of names rotated, in titles
and, where a word begins with a capital, in texts. So the graph has as many parts that nothing
joins, names meet in no two of them, and all other words are as frequent as before.

For questions, only what readers open is made: the file of the release, and its vectors. With
``--stages``, what ingestion makes is multiplied, and every stage after it is run and measured.
"""

from __future__ import annotations

import argparse
import json
import re
import string
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from graphrag_pipeline.cli.app import set_up_memory
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.settings import StorageSettings, load_settings
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.pipeline.stages import PUBLISH, refresh_stages
from graphrag_pipeline.store import vector_store
from graphrag_pipeline.store.index_store import IndexStore
from graphrag_pipeline.store.vector_store import VectorSnapshot, VectorStore
from graphrag_pipeline.store.workspace import Workspace

_TABLES = (
    *("documents", "chunks", "entities", "relationships", "entity_chunks", "relationship_chunks"),
    *("chunk_titles", "chunk_names", "entity_aliases", "blocks", "hierarchy_communities"),
    *("hierarchy_members", "hierarchy_reports"),
)
_IDS = {"id", "human_readable_id"}
_NAMES = {"title", "key", "canonical_title", "source", "target"}
_TEXTS = {"text", "description", "summary", "full_content"}
_COLUMNS = """
SELECT column_name, data_type FROM duckdb_columns()
WHERE database_name = 'target' AND schema_name = 'main' AND table_name = ? ORDER BY column_index
"""
_INGESTED = {
    **dict.fromkeys(("batches", "batch_sources", "batch_stages", "graph_batches"), 1),
    **dict.fromkeys(("documents", "chunks", "extractions", "blocks", "chunk_names"), None),
    **dict.fromkeys(("entity_mentions", "relationship_mentions", "record_links", "claims"), None),
}
"""The tables that a refresh is made from, and how many times each comes (None: as often as all)."""
_TOLD_APART = {"uri", "source", "content_hash"}
_VERSIONS = "SELECT vector_versions::VARCHAR, embedder FROM releases ORDER BY created_at DESC"
_COLUMNS_OF_GIVEN = _COLUMNS.replace("'target'", "'given'")
_COUNTED = ("documents", "chunks", "entities", "relationships", "communities")


def multiply(home: Path, target: Path, times: int) -> None:
    """Write the published release of a home into another, so many times as large."""
    target.mkdir(parents=True)
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{Home(home).published}' AS source (READ_ONLY)")
        con.execute(f"ATTACH '{target / 'published.duckdb'}' AS target")
        con.execute("COPY FROM DATABASE source TO target")
        con.execute("USE target")
        for table in _TABLES:
            columns = con.execute(_COLUMNS, [table]).fetchall()
            for turn in range(1, times):
                values = ", ".join(_anew(name, kind, turn) for name, kind in columns)
                con.execute(f"INSERT INTO {table} SELECT {values} FROM source.{table}")
        (versions, _) = con.execute(_VERSIONS).fetchall()[0]
        snapshot = VectorSnapshot(Home(home).vectors, json.loads(versions))
        made = _vectors(con, snapshot, target, times)
        counts = ", ".join(f"n_{name} = (SELECT count(*) FROM {name})" for name in _COUNTED)
        con.execute(f"UPDATE releases SET vector_versions = ?, {counts}", [json.dumps(made)])


def _anew(name: str, kind: str, turn: int) -> str:
    """Return the SQL that makes a column's value of another turn."""
    if kind == "BIGINT" and name in _IDS:
        return f"{name} + {turn * 10_000_000}"
    if kind != "VARCHAR":
        return name
    if name in _IDS or name.endswith("_id"):
        return f"md5({name} || '{turn}')"
    if name in _NAMES:
        return _rotated(name, turn)
    return _renamed(name, turn) if name in _TEXTS else name


def multiply_ingested(home: Path, target: Path, times: int) -> None:
    """Write what ingestion made of a home into another, so many times; no stage after it is done.

    As for a run that ended there, the batches are taken in: their documents and mentions are part
    of the index, and there is no graph.
    """
    target.mkdir(parents=True)
    with IndexStore(Home(target).index).transaction() as con:
        con.execute(f"ATTACH '{Home(home).index}' AS given (READ_ONLY)")
        for table, most in _INGESTED.items():
            columns = con.execute(_COLUMNS_OF_GIVEN, [table]).fetchall()
            names = ", ".join(name for name, _ in columns)
            for turn in range(most or times):
                values = ", ".join(_ingested(table, name, kind, turn) for name, kind in columns)
                con.execute(f"INSERT INTO {table} ({names}) SELECT {values} FROM given.{table}")


def _ingested(table: str, name: str, kind: str, turn: int) -> str:
    """Return the SQL that makes a column's value of another turn, of what ingestion made."""
    if not turn or name == "batch":
        return name
    if table == "documents" and name in _TOLD_APART:
        return f"{name} || '{turn}'"
    return _anew(name, kind, turn)


def run_stages(home: Path, memory_gb: float) -> None:
    """Run every stage after ingestion; print CPU seconds and peak memory of each."""
    set_up_memory()
    storage = StorageSettings(memory_gb=memory_gb)
    workspace = Workspace(load_settings(home=str(home)).model_copy(update={"storage": storage}))
    with workspace.turn():
        for stage in (*refresh_stages(workspace.settings), PUBLISH):
            before = time.process_time()
            _forget_peak()
            stage.run(workspace)
            spent = time.process_time() - before
            print(f"{stage.name:<28} {spent:8.1f} CPU s {_peak_mb():8,.0f} MB at most", flush=True)


def _forget_peak() -> None:
    """Let the most memory that this process has had count from now on (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def _peak_mb() -> float:
    """Return the most memory that this process has had since, resident, in MiB."""
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(peak) / 1024


def _rotated(value: str, turn: int) -> str:
    letters = (string.ascii_lowercase, string.ascii_uppercase)
    after = "".join(part[5 * turn :] + part[: 5 * turn] for part in letters)
    return f"translate({value}, '{''.join(letters)}', '{after}')"


def _renamed(value: str, turn: int) -> str:
    """Rotate the letters of the words that begin with a capital."""
    word = f"CASE WHEN word BETWEEN 'A' AND '[' THEN {_rotated('word', turn)} ELSE word END"
    return f"array_to_string(list_transform(string_split({value}, ' '), lambda word: {word}), ' ')"


def _vectors(
    con: duckdb.DuckDBPyConnection, snapshot: VectorSnapshot, target: Path, times: int
) -> dict[str, int]:
    """Write the vector tables; return their versions."""
    store = VectorStore(target / "vectors")
    embedder = configured_embedder(load_settings(home=target))
    # Where vectors know words only, none of the methods looks for relationships by vector.
    vector_store.VECTOR_INDEX_ROWS = 10**9
    names = ("id", "text", "level", "batch", "content_hash")
    for table in snapshot.versions:
        batches = list(snapshot.scan(table, names))
        con.from_arrow(_together(batches)).create_view("given", replace=True)
        parts = ["SELECT * FROM given"]
        for turn in range(1, times):
            text = _renamed("text", turn)
            parts.append(
                f"SELECT md5(id || '{turn}'), {text}, level, batch, md5(content_hash || '{turn}') "
                "FROM given"
            )
        rows = con.sql(" UNION ALL ".join(parts)).to_arrow_table()
        store.sync(table, rows, embedder)
    return store.tag("multiplied")


def _together(batches: Sequence[Any]) -> Any:
    import pyarrow as pa

    return pa.Table.from_batches(batches)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the index."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("home", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--stages", action="store_true", help="for a run of every stage")
    parser.add_argument("--memory-gb", type=float, default=2.0, help="of that run")
    options = parser.parse_args(arguments)
    if options.stages:
        multiply_ingested(options.home, options.target, options.times)
        run_stages(options.target, options.memory_gb)
    else:
        multiply(options.home, options.target, options.times)


if __name__ == "__main__":
    main()
