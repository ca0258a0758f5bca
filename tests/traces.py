"""Where a word stands in a home folder: in the bytes of its files, and in what these decode to."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import lancedb

_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be")


def traces(home: Path, word: str, scratch: Path) -> set[str]:
    """Return the places that hold a word, whatever its case; DuckDB files are read as copies.

    A place is a file, relative to the home, with ``:table`` for what it decodes to. What a format
    compresses, bytes do not show: so each table is read, of LanceDB each version.
    """
    word = word.lower()
    found = set()
    for path in sorted(path for path in home.rglob("*") if path.is_file()):
        name = path.relative_to(home).as_posix()
        if word in name.lower() or _in_bytes(path.read_bytes(), word):
            found.add(name)
        if path.suffix == ".duckdb":
            found |= {f"{name}:{table}" for table in _in_duckdb(path, word, scratch)}
        elif path.suffix in (".sqlite", ".db"):
            found |= {f"{name}:{table}" for table in _in_sqlite(path, word)}
    for folder in home.glob("vectors/*.lance"):
        versions = _in_lance(folder, word)
        found |= {f"vectors/{folder.name}:{version}" for version in versions}
    return found


def stores(places: set[str]) -> set[str]:
    """Return the kinds of stores of some places: the first part of a path, and its ending."""
    return {place.partition(":")[0].partition("/")[0] for place in places}


def _in_bytes(data: bytes, word: str) -> bool:
    lower = data.lower()
    return any(word.encode(encoding) in lower for encoding in _ENCODINGS)


def _in_duckdb(path: Path, word: str, scratch: Path) -> Iterator[str]:
    copy = scratch / "copy.duckdb"
    shutil.copyfile(path, copy)
    if (wal := Path(f"{path}.wal")).exists():
        shutil.copyfile(wal, f"{copy}.wal")
    with duckdb.connect(str(copy)) as con:
        tables = con.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal"
        ).fetchall()
        for schema, table in tables:
            rows = f'SELECT 1 FROM "{schema}"."{table}" t WHERE contains(lower(t::VARCHAR), ?)'
            if con.execute(f"{rows} LIMIT 1", [word]).fetchone():
                yield f"{schema}.{table}"
    copy.unlink()
    Path(f"{copy}.wal").unlink(missing_ok=True)


def _in_sqlite(path: Path, word: str) -> Iterator[str]:
    with closing(sqlite3.connect(path)) as con:
        names = con.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in names:
            for row in con.execute(f'SELECT * FROM "{table}"'):
                if word in repr(row).lower():
                    yield table
                    break


def _in_lance(folder: Path, word: str) -> Iterator[int]:
    table = lancedb.connect(str(folder.parent)).open_table(folder.stem)
    for version in [each["version"] for each in table.list_versions()]:
        table.checkout(version)
        rows = table.search().to_arrow().drop_columns(["vector"]).to_pylist()
        if word in repr(rows).lower():
            yield version
