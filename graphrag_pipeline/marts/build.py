"""Marts: the tables an analyst asks for, built by the dbt project over one published release.

They live in ``marts.duckdb``, a file of their own. dbt writes a file beside it, from a release
and a copy of the evaluations that stay the same for the whole run, and that file is renamed into
place when every data test has passed: readers never wait and never see half a build, and a killed
build leaves the last one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path

import duckdb

from graphrag_pipeline.core.errors import BusyError, ConfigError, StorageError, first_line
from graphrag_pipeline.core.extras import how_to_install, missing_modules
from graphrag_pipeline.core.hardening.child_commands import guarded
from graphrag_pipeline.core.hardening.files import (
    forbid_writing,
    link_or_copy,
    replace_durably,
    told_of_disk,
)
from graphrag_pipeline.core.hardening.locks import locked
from graphrag_pipeline.core.hardening.temporary import sweep, temporary_folder
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.marts.inputs import copy_inputs, offered_version
from graphrag_pipeline.releases.kept_releases import changing_releases, published_release
from graphrag_pipeline.releases.older_releases import release_file
from graphrag_pipeline.store.frames import value_of
from graphrag_pipeline.store.index_store import OtherStore, connect_published
from graphrag_pipeline.store.migrations import migrations

MARTS_JOB = "build_marts"
# In a wheel the dbt project lies in the package, in a checkout beside it.
PROJECT = next(
    place / "dbt_reports"
    for place in Path(__file__).parents[1:3]
    if (place / "dbt_reports" / "dbt_project.yml").is_file()
)
TARGET = "pipeline"

_FOLDER = "dbt"
# Apart from what holds texts: a purge, which takes that away, leaves it alone.
_PARSED_FOLDER = "dbt_parsed"
_BUILDING = "building"
_SHAPING = {".sql", ".yml"}
_NOT_SOURCE = {"target", "logs", "dbt_packages"}
_MOST_TOLD = 300
_PURGED = (
    "a purge has removed what the marts were being built from: run graphrag-pipeline marts again"
)
_ASKS_FOR_MARTS = pattern_of(r'\bmarts"?\s*\.', re.IGNORECASE)
_BUILT_FROM = """
SELECT release_id, project_version, coalesce(evaluated_at, TIMESTAMPTZ 'epoch'), offered_version,
       built_at
FROM built_from
"""
_HAS_EXPERIMENTS = "FROM duckdb_tables() WHERE table_name = 'experiments'"
_EVALUATED = "SELECT coalesce(max(finished_at), TIMESTAMPTZ 'epoch') FROM experiments"
_SCHEMA = "SELECT value FROM meta WHERE key = 'schema_version'"
_ROWS = """
SELECT table_name, estimated_size FROM duckdb_tables() WHERE database_name = 'published'
ORDER BY table_name
"""


@dataclass(frozen=True)
class Origin:
    """The source that marts are built from.

    ``project`` is the version of the dbt project, ``evaluated_at`` when the latest experiment was
    done: 1970 where there is none. ``offered`` changes with the tables of other packages, such as
    what people said of answers.
    """

    release: str
    project: str
    evaluated_at: datetime
    offered: str


@dataclass(frozen=True)
class Marts(Origin):
    """The contents of ``marts.duckdb``: what it tells of, and the rows of each mart."""

    built_at: datetime
    rows: Mapping[str, int]


@dataclass(frozen=True)
class Build:
    """A build under way: what it reads, which stays the same, and a file that nobody reads yet."""

    home: Path
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables that dbt's profile and models read from the environment."""
        return {
            **dbt_environment(),
            "DBT_ENV_SECRET_RELEASE": str(self._pinned),
            "DBT_ENV_SECRET_EVALUATION": str(Home(self.folder).evaluation),
            "DBT_ENV_SECRET_MARTS": str(self._file),
            # Where dagster-dbt looks for what dbt kept of its last reading of the project.
            "DBT_TARGET_PATH": str(manifest(self.home).parent),
            "GRAPHRAG_MARTS_PROJECT": project_version(),
        }

    @property
    def target(self) -> Path:
        """The folder to which dbt writes its artefacts and its log."""
        return self.folder / "target"

    @property
    def _file(self) -> Path:
        return Home(self.folder).marts

    def put_in_place(self) -> Marts:
        """Make the file the one that readers open, in one step; return what it holds.

        Staging views go: what they read is not attached for whoever opens the file. Raises
        StorageError where it cannot be written, BusyError where a purge has taken it away.
        """
        with changing_releases(self.home):
            self.check_there()
            # Whoever asked dbt's adapter for metadata has the file open under its first name.
            new_file = self._file.rename(self.folder / "done.duckdb")
            try:
                with duckdb.connect(str(new_file)) as con:
                    con.execute("DROP SCHEMA IF EXISTS staging CASCADE")
                    con.execute("CHECKPOINT")
                forbid_writing(new_file)
                replace_durably(new_file, Home(self.home).marts)
            except (OSError, duckdb.Error) as error:
                reason = first_line(error)
                raise StorageError(f"cannot write {Home(self.home).marts}: {reason}") from error
            origin = built_marts(self.home)
            assert origin is not None
            return origin

    def check_there(self) -> None:
        """Raise BusyError where a purge has taken away what the build reads."""
        if not self._pinned.exists():
            raise BusyError(_PURGED)

    @property
    def _pinned(self) -> Path:
        return self.folder / "release.duckdb"


def dbt_environment() -> dict[str, str]:
    """Return what keeps dbt from calling home and from colouring its log."""
    return {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DO_NOT_TRACK": "1", "DBT_USE_COLORS": "0"}


def dbt_command() -> Path:
    """Return dbt's command beside this Python, or on the path. Raises ConfigError without one."""
    beside = Path(sys.executable).with_name("dbt")
    command = beside if beside.exists() else shutil.which("dbt")
    if command is None:
        raise ConfigError(f"dbt is not installed: {how_to_install('marts')}")
    return Path(command)


def run_dbt(home: Path, arguments: Sequence[str]) -> int:
    """Run dbt on the project from any folder; return its exit code.

    It reads what is published in ``home`` and writes ``marts_dev.duckdb`` there; whatever else it
    makes is in the folder ``dbt/target``, unless ``arguments`` name another. Raises
    NothingPublishedError when there is nothing to read.
    """
    release_file(home)
    target = home.absolute() / _FOLDER / "target"
    paths = {
        "GRAPHRAG_HOME": home.absolute(),
        "DBT_PROJECT_DIR": PROJECT,
        "DBT_PROFILES_DIR": PROJECT,
        "DBT_TARGET_PATH": target,
        "DBT_LOG_PATH": target,
    }
    environment = {**os.environ, **dbt_environment(), **{n: str(p) for n, p in paths.items()}}
    return subprocess.run([dbt_command(), *arguments], env=environment, check=False).returncode


@cache
def project_version() -> str:
    """Return a hash of the dbt project's files and of dbt's own version."""
    digest = hashlib.sha256(f"{version('dbt-core')} {version('dbt-duckdb')}".encode())
    for path in sorted(PROJECT.rglob("*")):
        within = path.relative_to(PROJECT)
        if path.suffix in _SHAPING and not _NOT_SOURCE & set(within.parts):
            digest.update(f"{within}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def built_marts(home: Path) -> Marts | None:
    """Return what ``marts.duckdb`` holds; None if it is not there or cannot be read."""
    path = Home(home).marts
    if not path.is_file():
        return None
    try:
        with connect_published(path) as con:
            row = con.execute(_BUILT_FROM).fetchone()
            rows = dict(con.execute(_ROWS).fetchall())
    except (StorageError, duckdb.Error):
        return None
    return Marts(*row, rows=rows) if row else None


def marts_outdated(home: Path) -> Origin | None:
    """Return what the marts do not tell of yet, or None.

    An experiment that is under way or was broken off makes no difference: only one that is done.
    """
    release = published_release(home)
    if release is None:
        return None
    target = Origin(release, project_version(), _evaluated_at(home), offered_version(home))
    origin = built_marts(home)
    current = origin is not None and (
        (origin.release, origin.project, origin.offered)
        == (target.release, target.project, target.offered)
        and origin.evaluated_at >= target.evaluated_at
    )
    return None if current else target


def _evaluated_at(home: Path) -> datetime:
    if Home(home).evaluation.is_file():
        with OtherStore(Home(home).evaluation).read() as con:
            if value_of(con, _HAS_EXPERIMENTS) is not None:
                return value_of(con, _EVALUATED)
    return datetime.fromtimestamp(0, UTC)


def is_of_this_version(release: Path) -> bool:
    """Whether a published file has the tables of this program, which the models read."""
    with connect_published(release) as con:
        schema = con.execute(_SCHEMA).fetchone()
    return schema == (str(migrations()[-1][0]),)


def asks_for_marts(statement: str) -> bool:
    """Whether a statement asks for a mart."""
    return _ASKS_FOR_MARTS.search(statement) is not None


def marts_lacking(home: Path, statement: str) -> str | None:
    """Return what to tell whoever asks for marts that are not there, or None."""
    if not asks_for_marts(statement) or Home(home).marts.is_file():
        return None
    return "the marts are not built yet: run graphrag-pipeline marts"


def marts_behind(home: Path, statement: str) -> str | None:
    """Return what to tell whoever asks the marts while they tell of something older, or None."""
    if not asks_for_marts(statement) or missing_modules("marts"):
        return None
    try:
        outdated = marts_outdated(home)
    except (BusyError, StorageError):
        # Who may only read the folder cannot open what is evaluated.
        return None
    if outdated is None:
        return None
    return "the marts are behind what is published, evaluated and said: run graphrag-pipeline marts"


def manifest(home: Path) -> Path:
    """Return dbt's manifest of the project, made once for each version of it.

    Raises ConfigError when dbt cannot read the project.
    """
    place = home / _PARSED_FOLDER
    parsed = place / project_version()
    if not parsed.is_dir():
        command = dbt_command()
        with told_of_disk(f"cannot write in {place}"):
            place.mkdir(parents=True, exist_ok=True)
            with locked(place / "parsing.lock"):
                if not parsed.is_dir():
                    _parse_anew(command, parsed)
    return parsed / "manifest.json"


def _parse_anew(command: Path, parsed: Path) -> None:
    with temporary_folder(parsed.parent, parsed.name) as folder:
        _parse(command, folder / "parsed")
        for old in parsed.parent.glob("[0-9a-f]*"):
            shutil.rmtree(old, ignore_errors=True)
        replace_durably(folder / "parsed", parsed)


def _parse(command: Path, folder: Path) -> None:
    arguments = ["parse", "--quiet", "--project-dir", PROJECT, "--profiles-dir", PROJECT]
    arguments += ["--target", TARGET, "--target-path", folder, "--log-path", folder]
    with guarded(
        [str(command), *map(str, arguments)],
        cwd=folder.parent,
        env={**os.environ, **dbt_environment()},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        said, _ = process.communicate()
    if process.returncode:
        output = " ".join(said.split())
        raise ConfigError(f"dbt cannot read {PROJECT}: {output[-_MOST_TOLD:]}")


@contextlib.contextmanager
def building(home: Path) -> Iterator[Build]:
    """Pin the published release and all evaluations for a build, in a folder that goes in the end.

    Raises NothingPublishedError when there is nothing to build from.
    """
    release = release_file(home)
    place = home / _FOLDER
    try:
        place.mkdir(parents=True, exist_ok=True)
        sweep(place)
        with temporary_folder(place, _BUILDING) as folder:
            _pin(release, folder / "release.duckdb")
            copy_inputs(home, folder)
            yield Build(home, folder)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise BusyError(_PURGED) from error
        raise StorageError(f"cannot write in {place}: {error.strerror or error}") from error


def _pin(release: Path, pinned: Path) -> None:
    link_or_copy(release, pinned)
    if not is_of_this_version(pinned):
        raise StorageError(
            f"{release} was published by another version of this program: run graphrag-pipeline "
            "index, then try again"
        )
