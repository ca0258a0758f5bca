"""The files and folders of a home, by name: a door. Checks, backups and purges ask what each is.

What an extra keeps in a home is known here too, so far that a backup keeps it and a check looks at
it where the extra is not installed. A purge asks the extra itself, and is refused without it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphrag_pipeline.core.doors import Door, require_takes
from graphrag_pipeline.core.errors import ConfigError, StorageError
from graphrag_pipeline.core.extras import how_to_install
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.rows import one_line
from graphrag_pipeline.store.index_store import OtherStore
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.upkeep.index_tables import fault_of

_MOST_SAID = 200
_NAME = pattern_of(r"[A-Za-z0-9][\w.-]*(?<!\.tmp)(?<!\.lock)(?<!\.wal)(?<!\.new)(?<!\.pid)")


@dataclass(frozen=True)
class KeptExperiments:
    """Numbers of evaluations that stay and that go."""

    kept: int = 0
    dropped: int = 0

    def __add__(self, other: KeptExperiments) -> KeptExperiments:
        return KeptExperiments(self.kept + other.kept, self.dropped + other.dropped)


@dataclass(frozen=True, kw_only=True)
class Experiments:
    """Rules of a purge for a file that holds evaluations of releases.

    Releases that are clean held no document but those that the index holds. Both are given their
    ids: ``unused`` counts what must go, and ``drop`` removes it, once a release was published that
    holds no more than the index; its id is given third.
    """

    unused: Callable[[Workspace, Collection[str]], KeptExperiments]
    drop: Callable[[Workspace, Collection[str], str], KeptExperiments]


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
    copy
        Copies it, from a path to a path, while others may write to it; without, it is copied byte
        for byte.
    is_made_again
        Whether a purge removes it, as all that is needed of it will be made again.
    fault
        Says in words what is wrong with it, and nothing where it is whole; `check` asks.
    remedy
        What to do then.
    purge
        Takes out of it what the published release, a DuckDB file that is given second, no longer
        holds.
    experiments
        What a purge does about the evaluations that it holds.
    outdated
        Returns the paths in it that a purge removes, as nothing in the index needs them; documents
        of the files that are given second count as gone.
    extra
        The extra that keeps it and is not installed: a purge is refused.
    """

    about: str
    is_folder: bool = False
    in_backup: bool = False
    is_linked: bool = True
    copy: Callable[[Path, Path], None] | None = None
    is_made_again: bool = False
    fault: Callable[[Path], str] | None = None
    remedy: str = ""
    purge: Callable[[Path, Path], None] | None = None
    experiments: Experiments | None = None
    outdated: Callable[[Workspace, Collection[str]], Sequence[Path]] | None = None
    extra: str = ""


def _check(name: str, file: HomeFile) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigError("call it as the file is called: letters, digits, dots and hyphens")
    if file.fault is not None:
        require_takes(file.fault, "path")
    if file.purge is not None:
        require_takes(file.purge, "path", "published")
    if file.copy is not None:
        require_takes(file.copy, "path", "target")
    if file.outdated is not None:
        require_takes(file.outdated, "workspace", "removed")


def unreadable_database(path: Path) -> str:
    """Return why a DuckDB file cannot be read, once nobody writes to it; nothing where it can."""
    return fault_of(path, OtherStore(path).look)


def copy_database(path: Path, target: Path) -> None:
    """Copy a DuckDB file once nobody writes to it. Raises StorageError where it cannot be."""
    OtherStore(path).copy_to(target)


def copy_sqlite(path: Path, target: Path) -> None:
    """Copy a SQLite file that others may be writing to, by SQLite's own means.

    Raises StorageError where it cannot be.
    """
    try:
        with (
            contextlib.closing(sqlite3.connect(path)) as live,
            contextlib.closing(sqlite3.connect(target)) as copy,
        ):
            live.backup(copy, pages=4096)
    except sqlite3.Error as error:
        raise StorageError(f"cannot copy {path}: {error}") from error


def sqlite_fault(path: Path) -> str:
    """Return in one line what SQLite finds wrong with a file; nothing where it is whole."""
    try:
        with contextlib.closing(
            sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True)
        ) as con:
            said = [line for (line,) in con.execute("PRAGMA integrity_check(3)").fetchall()]
    except sqlite3.Error as error:
        said = [str(error)]
    return "" if said == ["ok"] else " ".join("; ".join(said).split())[:_MOST_SAID]


INDEX = HomeFile(about="The pipeline's own tables.", in_backup=True, is_linked=False)
CALLS = HomeFile(
    about="Answers of models, and each call.", in_backup=True, is_linked=False, copy=copy_sqlite
)
HISTORY = HomeFile(about="Dagster's runs.", is_folder=True, in_backup=True, is_linked=False)
REPLACED = HomeFile(about="A file that is only ever replaced.", in_backup=True)
FOLDER = HomeFile(about="Files that are never changed.", is_folder=True, in_backup=True)
MARTS = HomeFile(
    about="Tables for analysts.",
    in_backup=True,
    is_made_again=True,
    fault=fault_of,
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
        "marts.duckdb": "home_files:MARTS",
        "marts.duckdb.wal": "home_files:DERIVED",
        "marts_dev.duckdb": "home_files:DERIVED",
        "marts_dev.duckdb.wal": "home_files:DERIVED",
        "dbt": "home_files:DERIVED",
        # What dbt has read of its project holds no text: a purge leaves it.
        "dbt_parsed": "home_files:OWN",
        "pictures": "home_files:DERIVED",
        "index_variants": "home_files:DERIVED",
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
        "seen.json": "home_files:OWN",
        "hashes.json": "home_files:OWN",
        "left_out.json": "home_files:OWN",
        "model_sizes.json": "home_files:OWN",
    },
    beside=__name__,
    check=_check,
)
"""What may be in a home, by its name there."""

EVALUATIONS = HomeFile(
    about="Questions, answers and scores.",
    in_backup=True,
    is_linked=False,
    copy=copy_database,
    fault=unreadable_database,
    extra="evaluation",
)
DOCUMENT_INDEXES = HomeFile(
    about="Indexes of single documents.", is_folder=True, extra="evaluation"
)
CONVERSATIONS = HomeFile(
    about="What callers of the server asked, and the answers.",
    in_backup=True,
    is_linked=False,
    copy=copy_sqlite,
    fault=sqlite_fault,
    remedy="delete it: conversations are lost then, and nothing else",
    extra="server",
)
OF_EXTRAS: Mapping[str, HomeFile] = {
    "conversations.sqlite": CONVERSATIONS,
    "evaluation.duckdb": EVALUATIONS,
    "document_indexes": DOCUMENT_INDEXES,
}
"""What extras keep in a home, as it is dealt with where they are not installed."""


def files() -> dict[str, HomeFile]:
    """Return what may be in a home by name, as far as it is known here."""
    return {**OF_EXTRAS, **HOME_FILES.usable()}


def check_extras(home: Path) -> None:
    """Raise ConfigError where an extra is not installed that keeps what a purge must look at."""
    for name, file in files().items():
        if file.extra and (home / name).exists():
            raise ConfigError(
                f"{home / name} may hold what is to be gone, and the extra [{file.extra}], which "
                f"can take it out, is not installed: {how_to_install(file.extra)}, or delete it"
            )


def faults(home: Path, names: tuple[str, ...] = ()) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each file that is not whole, what is wrong, and what to do.

    With ``names``, only these are looked at.
    """
    for name, file in files().items():
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
    own = HOME_FILES.own + tuple(OF_EXTRAS)
    return tuple(name for name in HOME_FILES.names() if name not in own)


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
