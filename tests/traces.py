"""Where a word stands in a home folder: in the bytes of its files, and in what these decode to."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import lancedb

_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be")


def traces(home: Path, word: str, scratch: Path) -> set[str]:
    """Return the places that hold a word; see :func:`traces_of`."""
    return traces_of(home, [word], scratch)[word]


def traces_of(home: Path, words: Collection[str], scratch: Path) -> dict[str, set[str]]:
    """Return the places that hold words, whatever their case; DuckDB files are read as copies.

    A place is a file, relative to the home, with ``:table`` for what it decodes to. What a format
    compresses, bytes do not show: so each table is read, of LanceDB each version. Everything is
    read once, a file of several names too.
    """
    places: dict[str, set[str]] = {word: set() for word in words}
    inside: dict[int, list[tuple[str, set[str]]]] = {}
    for path in sorted(path for path in home.rglob("*") if path.is_file()):
        name, inode = path.relative_to(home).as_posix(), path.stat().st_ino
        if inode not in inside:
            inside[inode] = list(_contents(path, words, scratch))
        for table, matches in [("", _in_text(name, words)), *inside[inode]]:
            for word in matches:
                places[word].add(f"{name}{table}")
    for folder in home.glob("vectors/*.lance"):
        for version, matches in _in_lance(folder, words):
            for word in matches:
                places[word].add(f"vectors/{folder.name}:{version}")
    return places


def stores(places: set[str]) -> set[str]:
    """Return the kinds of stores of some places: the first part of a path, and its ending."""
    return {place.partition(":")[0].partition("/")[0] for place in places}


def _contents(path: Path, words: Collection[str], scratch: Path) -> Iterator[tuple[str, set[str]]]:
    """Yield the words in a file's bytes, then those in each table that it decodes to."""
    yield "", _in_bytes(path.read_bytes(), words)
    if path.suffix in (".duckdb", ".changes"):
        yield from _in_duckdb(path, words, scratch)
    elif path.suffix in (".sqlite", ".db"):
        yield from _in_sqlite(path, words)


def _in_text(text: str, words: Collection[str]) -> set[str]:
    lower = text.lower()
    return {word for word in words if word.lower() in lower}


def _in_bytes(data: bytes, words: Collection[str]) -> set[str]:
    lower = data.lower()
    return {
        word
        for word in words
        if any(word.lower().encode(encoding) in lower for encoding in _ENCODINGS)
    }


def _in_duckdb(path: Path, words: Collection[str], scratch: Path) -> Iterator[tuple[str, set[str]]]:
    copy = scratch / "copy.duckdb"
    shutil.copyfile(path, copy)
    if (wal := Path(f"{path}.wal")).exists():
        shutil.copyfile(wal, f"{copy}.wal")
    with duckdb.connect(str(copy)) as con:
        tables = con.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal"
        ).fetchall()
        for schema, table in tables:
            rows = con.execute(f'SELECT lower(t::VARCHAR) FROM "{schema}"."{table}" t').fetchall()
            yield f":{schema}.{table}", _in_text("\n".join(row for (row,) in rows), words)
    copy.unlink()
    Path(f"{copy}.wal").unlink(missing_ok=True)


def _in_sqlite(path: Path, words: Collection[str]) -> Iterator[tuple[str, set[str]]]:
    with closing(sqlite3.connect(path)) as con:
        names = con.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in names:
            rows = con.execute(f'SELECT * FROM "{table}"').fetchall()
            yield f":{table}", _in_text(repr(rows), words)


def _in_lance(folder: Path, words: Collection[str]) -> Iterator[tuple[int, set[str]]]:
    table = lancedb.connect(str(folder.parent)).open_table(folder.stem)
    for version in [each["version"] for each in table.list_versions()]:
        table.checkout(version)
        rows = table.search().to_arrow().drop_columns(["vector"]).to_pylist()
        yield version, _in_text(repr(rows), words)
