"""A hash of rows in any order, the same in every version of DuckDB."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb

from graphrag_pipeline.store.frames import value_of
from graphrag_pipeline.store.hash_memory import memory_of

_MOST_REMEMBERED = 1_000
_remembered: dict[tuple[str, str], str] = {}


def hash_of(
    con: duckdb.DuckDBPyConnection, relation: str, columns: str = "*", *, parts: int = 1
) -> str:
    """Return what :func:`rows_hash` selects, of rows with an ``id`` in so many parts.

    MD5 takes five times as long as DuckDB's own hash, which is another in another version. By the
    latter this process remembers what it has hashed, and the index what others have (see
    :func:`~graphrag_pipeline.store.hash_memory.remembering_hashes`): the same rows are hashed once.
    """
    key, memory = f"{columns} FROM {relation}", memory_of(con)
    quick_before, hash_before = memory.before.get(key, ("", "")) if memory else ("", "")
    if memory and memory.is_unwritten and hash_before:
        return hash_before
    rows = f"(SELECT {columns} FROM {relation}) hashed"
    quick = str(value_of(con, f"SELECT concat_ws(':', count(*), sum(hash(hashed))) FROM {rows}"))
    if quick == quick_before:
        _remembered[key, quick] = hash_before
    if (key, quick) not in _remembered:
        if len(_remembered) >= _MOST_REMEMBERED:
            _remembered.clear()
        _remembered[key, quick] = _added(
            str(value_of(con, f"SELECT {rows_hash(_part(relation, part, parts), columns)}"))
            for part in range(parts)
        )
    if memory:
        memory.now[key] = (quick, _remembered[key, quick])
    return _remembered[key, quick]


def _part(relation: str, part: int, parts: int) -> str:
    if parts == 1:
        return relation
    return f"(FROM {relation} WHERE hash(id) % {parts} = {part})"


def _added(hashes: Iterable[str]) -> str:
    """Return the hash of all rows, of those of parts of them: of no rows it is their number."""
    count, total = 0, ""
    for each in hashes:
        number, _, value = each.partition(":")
        count += int(number)
        total = str(int(total or 0) + int(value)) if value else total
    return f"{count}:{total}" if total else f"{count}"


def rows_hash(relation: str, columns: str = "*") -> str:
    """Return a scalar subquery: the number of rows of a relation, and a hash of them as a multiset.

    The hash is a sum of each row's MD5, so that order does not matter and equal rows do not cancel
    out. ``relation`` and ``columns`` are the project's own SQL.
    """
    return (
        f"(SELECT concat_ws(':', count(*), sum({row_md5('hashed')}))"
        f" FROM (SELECT {columns} FROM {relation}) hashed)"
    )


def row_md5(row: str) -> str:
    """Return an expression: 64 bits of the MD5 of a row, which a relation's name stands for.

    DuckDB's own ``md5_number_lower`` goes by way of a text of 128 digits, in four times the time.
    """
    return f"(md5_number(to_json({row})::VARCHAR) >> 64)::UBIGINT"
