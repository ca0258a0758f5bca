"""The files and folders of a home, by name: a door. Checks, backups and purges ask what each is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from graphrag_pipeline.core.doors import Door, require_takes
from graphrag_pipeline.core.errors import ConfigError, StorageError
from graphrag_pipeline.core.rows import one_line
from graphrag_pipeline.evaluation.store import EvaluationStore
from graphrag_pipeline.store.index_store import connect_published
from graphrag_pipeline.upkeep.index_tables import scan
from graphrag_pipeline.upkeep.problems import unreadable

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(?<!\.tmp)(?<!\.lock)(?<!\.wal)(?<!\.new)(?<!\.pid)")


@dataclass(frozen=True, kw_only=True)
class HomeFile:
    """A file or folder of the home: what comes in by the door ``home_files``, called as it is.

    Parameters
    ----------
    about
        What it holds.
    is_folder
        Whether it is a folder.
    in_backup
        Whether a backup takes it in.
    is_linked
        Whether it is never changed where it stands, but replaced as a whole: a backup gives it a
        second name. Else it is copied.
    is_made_again
        Whether a purge removes it, as all that is needed of it will be made again.
    fault
        Says in words what is wrong with it, and nothing where it is whole; `check` asks.
    remedy
        What to do then.
    purge
        Takes out of it what the published release, a DuckDB file that is given second, no longer
        holds.
    """

    about: str
    is_folder: bool = False
    in_backup: bool = False
    is_linked: bool = True
    is_made_again: bool = False
    fault: Callable[[Path], str] | None = None
    remedy: str = ""
    purge: Callable[[Path, Path], None] | None = None


def _check(name: str, file: HomeFile) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigError("call it as the file is called: letters, digits, dots and hyphens")
    if file.fault is not None:
        require_takes(file.fault, "path")
    if file.purge is not None:
        require_takes(file.purge, "path", "published")


def _unreadable(path: Path) -> str:
    try:
        with connect_published(path) as con:
            scan(con)
    except (StorageError, duckdb.Error) as error:
        return unreadable(path, error)
    return ""


def _unreadable_evaluations(path: Path) -> str:
    """Wait until nobody writes to it, as evaluations may go on."""
    try:
        with EvaluationStore(path.parent).look() as con:
            scan(con)
    except (StorageError, duckdb.Error) as error:
        return unreadable(path, error)
    return ""


INDEX = HomeFile(about="The pipeline's own tables.", in_backup=True, is_linked=False)
CALLS = HomeFile(about="Answers of models, and each call.", in_backup=True, is_linked=False)
EVALUATIONS = HomeFile(
    about="Questions, answers and scores.",
    in_backup=True,
    is_linked=False,
    fault=_unreadable_evaluations,
)
HISTORY = HomeFile(about="Dagster's runs.", is_folder=True, in_backup=True, is_linked=False)
REPLACED = HomeFile(about="A file that is only ever replaced.", in_backup=True)
FOLDER = HomeFile(about="Files that are never changed.", is_folder=True, in_backup=True)
MARTS = HomeFile(
    about="Tables for analysts.",
    in_backup=True,
    is_made_again=True,
    fault=_unreadable,
    remedy="delete it and run graphrag-pipeline marts",
)
NOTICES = HomeFile(about="What people were told of.", in_backup=True, is_made_again=True)
DERIVED = HomeFile(about="What is made again when it is needed.", is_made_again=True)
OWN = HomeFile(about="What belongs to this machine and this time.")

HOME_FILES: Door[HomeFile] = Door(
    "home_files",
    HomeFile,
    "file of the home",
    own={
        "index.duckdb": "home_files:INDEX",
        "published.duckdb": "home_files:REPLACED",
        "llm_cache.sqlite": "home_files:CALLS",
        "evaluation.duckdb": "home_files:EVALUATIONS",
        "marts.duckdb": "home_files:MARTS",
        "marts.duckdb.wal": "home_files:DERIVED",
        "marts_dev.duckdb": "home_files:DERIVED",
        "marts_dev.duckdb.wal": "home_files:DERIVED",
        "dbt": "home_files:DERIVED",
        # What dbt has read of its project holds no text: a purge leaves it.
        "dbt_parsed": "home_files:OWN",
        "pictures": "home_files:DERIVED",
        "notices.json": "home_files:NOTICES",
        "reader_deaths.json": "home_files:DERIVED",
        "graphrag.toml": "home_files:REPLACED",
        "aliases.csv": "home_files:REPLACED",
        # Older releases hold what a purge at work removes: what is restored must be purged again.
        "purge.unfinished": "home_files:REPLACED",
        "releases": "home_files:FOLDER",
        "vectors": "home_files:FOLDER",
        "batches": "home_files:FOLDER",
        "web": "home_files:FOLDER",
        "ocr": "home_files:FOLDER",
        "dagster": "home_files:HISTORY",
        "document_indexes": "home_files:OWN",
        "seen.json": "home_files:OWN",
        "left_out.json": "home_files:OWN",
    },
    beside=__name__,
    check=_check,
)
"""What may be in a home, by its name there."""


def faults(home: Path, names: tuple[str, ...] = ()) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each file that is not whole, what is wrong, and what to do.

    With ``names``, only these are looked at.
    """
    for name, file in HOME_FILES.usable().items():
        if file.fault is None or not (home / name).exists() or (names and name not in names):
            continue
        try:
            fault = file.fault(home / name)
        except Exception as error:  # A package's own code may raise anything.
            fault = f"it cannot be checked ({type(error).__name__}: {error})"
        if fault:
            yield name, one_line(fault), file.remedy


def brought() -> tuple[str, ...]:
    """Return the names of the files that other packages bring."""
    return tuple(name for name in HOME_FILES.names() if name not in HOME_FILES.own)


def purge_files(home: Path, published: Path) -> None:
    """Take out of files what the published release does not hold.

    Raises StorageError where a package's code for one of them fails.
    """
    for name, file in HOME_FILES.usable().items():
        if file.purge is None or not (home / name).exists():
            continue
        try:
            file.purge(home / name, published)
        except Exception as error:
            reason = one_line(f"{type(error).__name__}: {error}")
            raise StorageError(f"cannot purge {home / name}: {reason}") from error
