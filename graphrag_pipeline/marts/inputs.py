"""The inputs of the marts beside a release: evaluations, and tables that packages offer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import duckdb
import polars as pl

from graphrag_pipeline.core.doors import Door, require_takes
from graphrag_pipeline.core.errors import ConfigError, GraphRAGError, StorageError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.rows import one_line
from graphrag_pipeline.store.index_store import OtherStore, insert

OFFERED = ("feedback",)
"""The tables that packages may offer."""


@dataclass(frozen=True, kw_only=True)
class MartTable:
    """A table that the marts are built from: what comes in by the door ``mart_tables``.

    Parameters
    ----------
    about
        What it holds.
    rows
        Returns its rows, given the home: the columns that ``marts/offered.sql`` has, or some.
    version
        Returns another text whenever the rows are others, given the home, and none where there is
        no row. It is asked often, so that it must be quick.
    """

    about: str
    rows: Callable[[Path], pl.DataFrame]
    version: Callable[[Path], str]


def _check(name: str, table: MartTable) -> None:
    if name not in OFFERED:
        raise ConfigError(f"the marts read no such table: there is {', '.join(OFFERED)}")
    require_takes(table.rows, "home")
    require_takes(table.version, "home")


MART_TABLES: Door[MartTable] = Door(
    "mart_tables", MartTable, "table of the marts", own={}, beside=__name__, check=_check
)
"""What packages offer to the marts, by the name of the table."""


def offered_version(home: Path) -> str:
    """Return what changes whenever a package's table does; empty where none offers one.

    Raises StorageError where a package cannot say.
    """
    return " ".join(f"{name}={version}" for name, version in sorted(_versions(home).items()))


def copy_inputs(home: Path, folder: Path) -> Path:
    """Copy what is evaluated into a folder, with what packages offer in the schema ``offered``.

    Where nothing is evaluated or offered the same tables are there without rows. Returns the file.
    Raises StorageError when something cannot be read or written.
    """
    copy = Home(folder).evaluation
    if Home(home).evaluation.is_file():
        OtherStore(Home(home).evaluation).copy_to(copy)
    with OtherStore(copy).transaction() as con:
        for tables in ("evaluations.sql", "offered.sql"):
            sql = resources.files("graphrag_pipeline.marts").joinpath(tables)
            con.execute(sql.read_text("utf-8"))
        _insert_offered(con, home)
    return copy


def _insert_offered(con: duckdb.DuckDBPyConnection, home: Path) -> None:
    # Versions first: rows that come meanwhile make the marts outdated.
    versions = _versions(home)
    noted = {"table_name": [*versions], "version": [*versions.values()]}
    insert(con, "offered.versions", pl.DataFrame(noted, {name: pl.String for name in noted}))
    for name, table in MART_TABLES.usable().items():
        with _told(name):
            insert(con, f"offered.{name}", table.rows(home))


def _versions(home: Path) -> dict[str, str]:
    """Return what each table's package says of it; nothing where it is empty."""
    versions = {}
    for name, table in MART_TABLES.usable().items():
        with _told(name):
            versions[name] = table.version(home)
    return {name: version for name, version in versions.items() if version}


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Tell of whatever a package's own code raises as StorageError."""
    try:
        yield
    except GraphRAGError:
        raise
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}")
        raise StorageError(f"cannot read {name} for the marts: {reason}") from error
