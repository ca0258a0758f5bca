"""The home folder of an index: every path in it has its name here and nowhere else."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline.core.hardening.files import make_folder, told_of_disk

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings


class _Within:
    """A path within a home folder."""

    def __init__(self, name: str, meaning: str) -> None:
        self._name, self.__doc__ = name, meaning

    def __get__(self, home: Home, owner: type) -> Path:
        return home.folder / self._name


@dataclass(frozen=True)
class Home:
    """The paths of one home folder."""

    folder: Path

    index = _Within("index.duckdb", "The pipeline's own DuckDB file.")
    hashes = _Within("hashes.json", "The hashes of the tables in the pipeline's own DuckDB file.")
    published = _Within("published.duckdb", "The DuckDB file that readers open.")
    releases = _Within("releases", "The folder of the releases that are kept.")
    vectors = _Within("vectors", "The folder of LanceDB's tables.")
    batches = _Within("batches", "The folder of manifests.")
    seen = _Within(
        "seen.json", "The sizes and times of the files of the corpus when they were last read."
    )
    left_out = _Within(
        "left_out.json", "The files that the last scan of each folder left out, by rule."
    )
    run_lock = _Within(
        "run.lock",
        "The file that a run holds locked, so that runs of one index wait for each other.",
    )
    run_process = _Within(
        "run.pid", "The file in which a run that holds the lock says which process it is."
    )
    release_lock = _Within(
        "releases.lock",
        "The file that is held locked while a release is published or gone back to.",
    )
    calls = _Within("llm_cache.sqlite", "The cache and the ledger of model calls.")
    ocr = _Within("ocr", "The folder of the texts of scanned pages.")
    reader_deaths = _Within(
        "reader_deaths.json", "The files that have ended the process that read them."
    )
    evaluation = _Within("evaluation.duckdb", "The DuckDB file of experiments.")
    document_indexes = _Within(
        "document_indexes",
        "The folder of the indexes that single documents have, for evaluations, a folder each.",
    )
    index_variants = _Within(
        "index_variants",
        "The folder of indexes of the same documents by other settings, for evaluations.",
    )
    marts = _Within("marts.duckdb", "The DuckDB file of dbt's marts.")
    notices = _Within(
        "notices.json", "The failures that people have been told of and that are not mended yet."
    )
    aliases_lock = _Within(
        "aliases.lock", "The file that is held locked while a line is added to the user's aliases."
    )
    purge_mark = _Within(
        "purge.unfinished", "A file that is there while a purge goes on, or where one was killed."
    )
    dagster = _Within("dagster", "Dagster's own folder, unless ``DAGSTER_HOME`` names another.")

    def indexes_of_documents(self) -> list[Path]:
        """Return the folders of the indexes that single documents have."""
        return _folders_in(self.document_indexes)

    def variants_of_index(self) -> list[Path]:
        """Return the folders of the indexes by other settings."""
        return _folders_in(self.index_variants)


def _folders_in(place: Path) -> list[Path]:
    return sorted(path for path in place.iterdir() if path.is_dir()) if place.is_dir() else []


def make_home(settings: Settings) -> None:
    """Make the home folder, if it is not there, with the rights that ``home_mode`` says.

    Raises StorageError where it cannot be made.
    """
    with told_of_disk(f"cannot write in {settings.home_path}"):
        make_folder(settings.home_path, int(settings.home_mode, 8))


def exposed(settings: Settings) -> list[str]:
    """Return a line for each thing that more people may read than the settings say.

    A home that is there is never changed: who opened it may have had a reason.
    """
    warnings = []
    wanted, home, keys = int(settings.home_mode, 8), settings.home_path, settings.llm.env_file
    if more := _rights(home) & ~wanted & 0o077:
        warnings.append(
            f"others may {_verbs(more)} {home}, which holds your documents: "
            f"chmod {settings.home_mode} {home} closes it; set home_mode if this is intended"
        )
    if keys and _rights(Path(keys)) & 0o077:
        warnings.append(f"others may read the keys in {keys}: chmod 600 {keys}")
    return warnings


def _rights(path: Path) -> int:
    """Return the bits of the rights of a path; none where it is missing, or the system has none."""
    try:
        return 0 if os.name == "nt" else stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0


def _verbs(rights: int) -> str:
    return "read and change" if rights & 0o022 else "read"
