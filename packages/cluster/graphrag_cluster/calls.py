"""Paid answers and the ledger in Postgres, where the machines of an index share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from graphrag_cluster.holders import WorkerHolder
from graphrag_cluster.postgres import Postgres, Session
from graphrag_pipeline.llm.cache_size import entries
from graphrag_pipeline.llm.database import (
    USED_ON,
    CallDatabase,
    CallTables,
    Rows,
    SharedCalls,
    Write,
)
from graphrag_pipeline.llm.flights import FlightHolder


@dataclass(frozen=True)
class PostgresCalls(SharedCalls):
    """The calls of an index, in its tables in Postgres."""

    postgres: Postgres

    def __str__(self) -> str:
        return str(self.postgres)

    def tables(self) -> CallTables:
        """Return the tables, over connections of their own."""
        return _PostgresTables(self.postgres)

    def holder(self, database: CallDatabase) -> FlightHolder:
        """Return a client among the workers of the index."""
        return WorkerHolder(database)


class _PostgresTables(CallTables):
    """The tables in Postgres, which several workers write to; what is used is about the rows'.

    They commit one after the other: so calls are numbered in the order in which they can be seen,
    and who has read up to a number has missed none below it.
    """

    text_bytes = "pg_column_size(text)"

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        self._reader = Session(postgres)

    @cached_property
    def _second(self) -> Session:
        return Session(self._postgres)

    def read(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        return self._reader.rows(sql, values)

    def commit(self, jobs: Sequence[Sequence[Write]]) -> list[Rows]:
        try:
            return self._second.run(lambda con: [_done(con, writes) for writes in jobs], alone=True)
        except (ValueError, OverflowError) as error:
            raise self._postgres.error(error) from None

    def forget(self, writes: Sequence[Write]) -> None:
        self.commit([writes])
        self._second.vacuum()

    def file_bytes(self) -> int:
        ((n_bytes,),) = self.read(
            "SELECT CAST(coalesce(sum(pg_total_relation_size(c.oid)), 0) AS BIGINT)"
            " FROM pg_class c WHERE c.relkind = 'r'"
            " AND c.relnamespace = CAST(current_schema() AS regnamespace)"
        )
        return n_bytes

    def free_bytes(self) -> int:
        """Return 0: what Postgres could give back is not known before it is."""
        return 0

    def used_bytes(self) -> int:
        sql = f"SELECT CAST(coalesce(sum(n_bytes), 0) AS BIGINT) FROM {entries(self)}"
        return self.read(sql)[0][0]

    def drop(self, table: str, keys: Sequence[bytes], first_kept: int) -> int:
        """Drop entries in one short transaction, but none that somebody has used meanwhile."""
        sql = f"DELETE FROM {table} WHERE key = ANY($1) AND {USED_ON} < $2 RETURNING key"
        return len(self._second.rows(sql, (keys, first_kept)))

    def give_back(self) -> None:
        """Leave the space to what comes: Postgres cleans up by itself."""

    def vacuum(self) -> None:
        self._second.vacuum()

    def close(self) -> None:
        self._reader.close()
        if "_second" in self.__dict__:
            self._second.close()


def _done(con: Any, writes: Sequence[Write]) -> Rows:
    """Do writes in Postgres, and return what the last one returns."""
    rows: Rows = []
    for sql, values in writes:
        some = [tuple(map(_without_nul, each)) for each in values]
        cursor = con.cursor()
        if len(some) == 1:
            cursor.execute(sql.encode(), some[0])
        else:
            cursor.executemany(sql.encode(), some)
        rows = cursor.fetchall() if len(some) == 1 and cursor.description else []
    return rows


def _without_nul(value: object) -> object:
    """Return a value that Postgres can hold: its texts have no NUL."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value
