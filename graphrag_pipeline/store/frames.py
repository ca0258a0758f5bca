"""Rows of Python as tables of DuckDB, without the threads of Arrow.

DuckDB would read a table that is registered with it through Arrow's dataset scanner. That starts
threads, and waits for ever for one that it could not start, as where memory is limited. A stream
it reads by itself, but once only. So rows that are read again are copied into a temporary table.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

_STREAM = "streamed_rows"


def put_rows(con: duckdb.DuckDBPyConnection, name: str, rows: pl.DataFrame | pa.Table) -> None:
    """Copy rows into a temporary table, which lasts no longer than the connection."""
    stream_rows(con, _STREAM, rows)
    try:
        con.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS FROM {_STREAM}')
    finally:
        con.unregister(_STREAM)


def stream_rows(con: duckdb.DuckDBPyConnection, name: str, rows: pl.DataFrame | pa.Table) -> None:
    """Show rows, without a copy, to one scan of one statement; a second one is an error.

    ``con.unregister`` takes them away.
    """
    con.register(name, rows.__arrow_c_stream__())


def drop_rows(con: duckdb.DuckDBPyConnection, *names: str) -> None:
    """Drop what :func:`put_rows` made; after an error this is the end of the transaction's."""
    for name in names:
        with contextlib.suppress(duckdb.Error):
            con.execute(f'DROP TABLE IF EXISTS temp."{name}"')
