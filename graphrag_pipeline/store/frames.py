"""Rows of Python as tables of DuckDB, without the threads of Arrow.

DuckDB would read a table that is registered with it through Arrow's dataset scanner. That starts
threads, and waits for ever for one that it could not start, as where memory is limited. A stream
it reads by itself, but once only. So rows that are read again are copied into a temporary table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import duckdb

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

_STREAM = "streamed_rows"


def put_rows(con: duckdb.DuckDBPyConnection, name: str, rows: pl.DataFrame | pa.Table) -> None:
    """Copy rows into a temporary table, which lasts no longer than the connection."""
    with streamed(con, _STREAM, rows):
        con.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS FROM {_STREAM}')


def value_of(con: duckdb.DuckDBPyConnection, query: str, values: object = None) -> Any:
    """Return the first value of a query's first row, None where it has none."""
    row = con.execute(query, values).fetchone()
    return row[0] if row else None


@contextlib.contextmanager
def streamed(
    con: duckdb.DuckDBPyConnection, name: str, rows: pl.DataFrame | pa.Table
) -> Iterator[None]:
    """Show rows, without a copy, to one scan of one statement; a second one is an error.

    What fails within is what is raised, even where the connection is of no more use.
    """
    con.register(name, rows.__arrow_c_stream__())
    try:
        yield
    finally:
        with contextlib.suppress(duckdb.Error):
            con.unregister(name)


def drop_rows(con: duckdb.DuckDBPyConnection, *names: str) -> None:
    """Drop what :func:`put_rows` made; after an error this is the end of the transaction's."""
    for name in names:
        with contextlib.suppress(duckdb.Error):
            con.execute(f'DROP TABLE IF EXISTS temp."{name}"')
