"""Postgres: what the workers of a shared index may change only one at a time.

Each index has a schema of its own, named after a hash of its url, with the tables of
``postgres.sql``. SQL names the values it is given ``$1``, ``$2`` and so on, as SQLite takes them,
too.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import threading
import time
from collections.abc import Callable, Generator, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_pipeline.core.environment import POSTGRES, Secret
from graphrag_pipeline.core.errors import ConfigError, StorageError
from graphrag_pipeline.core.settings import Settings

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")

LOST_SECONDS = 30.0
"""A connection that is lost is made again for so long."""
_ANSWER_SECONDS = 40.0
_STATEMENT_MS = 30_000
_WAIT_SECONDS = 0.25
_VERSION = 3
_MIGRATIONS: dict[int, Sequence[str]] = {
    1: (
        "ALTER TABLE responses ADD COLUMN digest BYTEA",
        "ALTER TABLE embeddings ADD COLUMN digest BYTEA",
    ),
    2: ("ALTER TABLE llm_calls ADD COLUMN cached_tokens INTEGER",),
}
_HAS_TABLES = """
SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = 'schema_version')
"""
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY tablename"
_ALONE = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
_CONNECTING = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "application_name": "graphrag-pipeline",
}


class Postgres:
    """The tables of one index: where they are, and how they are reached."""

    def __init__(self, address: Secret, url: str) -> None:
        self._address = address
        self.url = url
        self.schema = f"graphrag_{hashlib.sha256(url.encode()).hexdigest()[:16]}"

    @classmethod
    def of(cls, settings: Settings) -> Postgres:
        """Return the tables of the index with these settings, which have a ``storage.url``."""
        if not settings.postgres:
            raise ConfigError(
                f"storage.url = {settings.storage.url!r} needs Postgres: set storage.postgres, or "
                f"{POSTGRES} in the environment or in .env"
            )
        return cls(settings.postgres, settings.storage.url)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Postgres):
            return False
        return (self._address, self.url) == (other._address, other.url)

    def __hash__(self) -> int:
        return hash((self._address, self.url))

    def __str__(self) -> str:
        """Return where it is, without user and password."""
        values = self._values()
        host = str(values.get("hostaddr") or values.get("host") or "localhost")
        port = values.get("port") or 5432
        return f"Postgres at {host}:{port}"

    def __repr__(self) -> str:
        return f"Postgres(***, {self.url!r})"

    def connect(self) -> psycopg.Connection:
        """Return a connection that finds the tables of the index; they are made or migrated.

        Each statement is a transaction of its own where none is begun. Raises StorageError.
        """
        import psycopg

        try:
            return self._open()
        except psycopg.Error as error:
            raise self.error(error) from None

    def _open(self, *, is_patient: bool = False) -> psycopg.Connection:
        """Return a connection; one that is patient waits for each statement, however long."""
        import psycopg

        given = self._values()
        given = {**_CONNECTING, **{k: v for k, v in given.items() if v is not None}}
        connection = psycopg.Connection if is_patient else _connection_class()
        con = connection.connect(**given, autocommit=True, cursor_factory=psycopg.RawCursor)
        try:
            con.execute(
                "SELECT set_config('search_path', $1, false),"
                " set_config('statement_timeout', $2, false),"
                " set_config('idle_in_transaction_session_timeout', $3, false)",
                (
                    self.schema,
                    "0" if is_patient else str(_STATEMENT_MS),
                    str(_STATEMENT_MS // 3),
                ),
            )
            if self._version(con) != _VERSION:
                self._migrate(con)
        except BaseException:
            con.close()
            raise
        return con

    def error(self, error: Exception) -> StorageError:
        """Return what is said of an error of Postgres, in one line and without any password."""
        lines = str(error).strip().splitlines() or [type(error).__name__]
        reason = lines[0].rpartition(": ")[2].strip()
        password = self._values().get("password")
        if password:
            reason = reason.replace(str(password), "***")
        return StorageError(
            f"cannot use {self}: {reason}; see that it runs, and run again: what was kept is there"
        )

    def _values(self) -> dict[str, Any]:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        try:
            values = dict(conninfo_to_dict(self._address.reveal()))
        except psycopg.Error:
            values = {"port": "none"}
        # A password with @, : or / that was not written as %40 would be shown as host or port.
        ports = str(values.get("port") or "5432").split(",")
        if "@" in str(values.get("host")) or not all(port.isdigit() for port in ports):
            raise ConfigError(
                f"{POSTGRES} or storage.postgres is not an address (not shown): write "
                "postgresql://user:password@host:5432/database, with @ in a password as %40"
            )
        return values

    def _version(self, con: psycopg.Connection) -> int:
        # A name that was looked up in vain stays unknown within a transaction; rows do not.
        ((known,),) = con.execute(_HAS_TABLES, (self.schema,)).fetchall()
        return con.execute("SELECT version FROM schema_version").fetchall()[0][0] if known else 0

    def _migrate(self, con: psycopg.Connection) -> None:
        """Make the tables, or bring them to this version, in one transaction."""
        from psycopg import sql

        with con.transaction():
            # One after the other: two that make a schema at once would hinder each other.
            con.execute(_ALONE, (self.schema,))
            version = self._version(con)
            if version > _VERSION:
                raise StorageError(
                    f"{self} holds {self.url} as a newer program keeps it (version {version}, this "
                    f"one knows {_VERSION}): update graphrag-pipeline"
                )
            if version == 0:
                schema = sql.Identifier(self.schema)
                con.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
                con.execute(
                    sql.SQL("COMMENT ON SCHEMA {} IS {}").format(schema, sql.Literal(self.url))
                )
                statements: list[Any] = [_schema()]
            else:
                steps = (_MIGRATIONS[number] for number in range(version, _VERSION))
                statements = [statement for step in steps for statement in step]
            for statement in statements:
                con.execute(statement)
            con.execute("UPDATE schema_version SET version = $1", (_VERSION,))


class Session:
    """A connection that is made again where it is lost, for one thread at a time; others wait.

    The first is made at once: what cannot be reached then raises StorageError, and is not waited
    for. ``lost_seconds`` is how long a lost one is tried again; None: :data:`LOST_SECONDS`.
    """

    def __init__(self, postgres: Postgres, lost_seconds: float | None = None) -> None:
        self.postgres = postgres
        self._lost_seconds = LOST_SECONDS if lost_seconds is None else lost_seconds
        self._turn = threading.Lock()
        self._con: psycopg.Connection | None = postgres.connect()

    def run(self, work: Callable[[psycopg.Connection], T], *, alone: bool = False) -> T:
        """Do some work in one transaction, and return its result once that is on disk.

        ``alone``: no other such work on this index is done meanwhile, by whatever process.
        Where the connection is lost it is done again, so it has to be such that twice is as once:
        a commit whose answer was lost may have been made. Raises StorageError.
        """
        import psycopg

        with self._turn:
            deadline = time.monotonic() + self._lost_seconds
            while True:
                try:
                    con = self._con = self._con or self.postgres._open()
                    with con.transaction():
                        if alone:
                            con.execute(_ALONE, (self.postgres.schema,))
                        return work(con)
                except psycopg.Error as error:
                    self._drop_broken()
                    lost = self._con is None and isinstance(error, psycopg.OperationalError)
                    if not (lost or _may_pass(error)) or time.monotonic() > deadline:
                        raise self.postgres.error(error) from None
                time.sleep(_WAIT_SECONDS)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of one statement, in a transaction of its own; see :meth:`run`."""
        return self.run(lambda con: con.execute(sql.encode(), values, binary=True).fetchall())

    def vacuum(self) -> None:
        """Write all tables anew, so that nothing deleted is left in them; others wait meanwhile.

        It takes as long as it takes, on a connection of its own.
        """
        import psycopg
        from psycopg.sql import SQL, Identifier

        tables = [table for (table,) in self.rows(_TABLES, (self.postgres.schema,))]
        try:
            with contextlib.closing(self.postgres._open(is_patient=True)) as con:
                for table in tables:
                    con.execute(SQL("VACUUM FULL {}").format(Identifier(table)))
        except psycopg.Error as error:
            raise self.postgres.error(error) from None

    def close(self) -> None:
        """Close the connection."""
        with self._turn:
            if self._con is not None:
                self._con.close()
                self._con = None

    def _drop_broken(self) -> None:
        if self._con is not None and (self._con.closed or self._con.broken):
            self._con.close()
            self._con = None


def _may_pass(error: Exception) -> bool:
    """Whether an error of a whole connection may be gone in a moment."""
    from psycopg import errors

    return isinstance(error, errors.DeadlockDetected | errors.SerializationFailure)


def _schema() -> bytes:
    return resources.files(__package__ or "").joinpath("postgres.sql").read_bytes()


@functools.cache
def _connection_class() -> type[psycopg.Connection]:
    """Return connections that do not wait for ever: a server that was stopped acknowledges all."""
    import psycopg

    class Bounded(psycopg.Connection):
        def wait(self, gen: Generator[Any, Any, T], *args: Any, **options: Any) -> T:
            try:
                return super().wait(
                    _until(gen, time.monotonic() + _ANSWER_SECONDS), *args, **options
                )
            except TimeoutError as error:
                self.close()
                raise psycopg.OperationalError(str(error)) from None

    return Bounded


def _until(gen: Generator[Any, Any, T], deadline: float) -> Generator[Any, Any, T]:
    """Go on with a generator of psycopg's, which is told every moment that nothing came."""
    ready: Any = None
    while True:
        try:
            wanted = gen.send(ready)
        except StopIteration as end:
            return end.value
        ready = yield wanted
        if not ready and time.monotonic() > deadline:
            raise TimeoutError("it does not answer")
