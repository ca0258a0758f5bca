"""The home folder of an index: every path in it has its name here and nowhere else."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.hardening.files import make_folder

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings


@dataclass(frozen=True)
class Home:
    """The paths of one home folder."""

    folder: Path

    @property
    def index(self) -> Path:
        """The pipeline's own DuckDB file."""
        return self.folder / "index.duckdb"

    @property
    def hashes(self) -> Path:
        """The hashes of the tables in the pipeline's own DuckDB file."""
        return self.folder / "hashes.json"

    @property
    def published(self) -> Path:
        """The DuckDB file that readers open."""
        return self.folder / "published.duckdb"

    @property
    def releases(self) -> Path:
        """The folder of the releases that are kept."""
        return self.folder / "releases"

    @property
    def vectors(self) -> Path:
        """The folder of LanceDB's tables."""
        return self.folder / "vectors"

    @property
    def batches(self) -> Path:
        """The folder of manifests."""
        return self.folder / "batches"

    @property
    def seen(self) -> Path:
        """The sizes and times of the files of the corpus when they were last read."""
        return self.folder / "seen.json"

    @property
    def left_out(self) -> Path:
        """The files that the last scan of each folder left out, by rule."""
        return self.folder / "left_out.json"

    @property
    def run_lock(self) -> Path:
        """The file that a run holds locked, so that runs of one index wait for each other."""
        return self.folder / "run.lock"

    @property
    def run_process(self) -> Path:
        """The file in which a run that holds the lock says which process it is."""
        return self.folder / "run.pid"

    @property
    def release_lock(self) -> Path:
        """The file that is held locked while a release is published or gone back to."""
        return self.folder / "releases.lock"

    @property
    def calls(self) -> Path:
        """The cache and the ledger of model calls."""
        return self.folder / "llm_cache.sqlite"

    @property
    def ocr(self) -> Path:
        """The folder of the texts of scanned pages."""
        return self.folder / "ocr"

    @property
    def reader_deaths(self) -> Path:
        """The files that have ended the process that read them."""
        return self.folder / "reader_deaths.json"

    @property
    def evaluation(self) -> Path:
        """The DuckDB file of experiments."""
        return self.folder / "evaluation.duckdb"

    @property
    def document_indexes(self) -> Path:
        """The folder of the indexes that single documents have, for evaluations, a folder each."""
        return self.folder / "document_indexes"

    def indexes_of_documents(self) -> list[Path]:
        """Return the folders of the indexes that single documents have."""
        return _folders_in(self.document_indexes)

    @property
    def index_variants(self) -> Path:
        """The folder of indexes of the same documents by other settings, for evaluations."""
        return self.folder / "index_variants"

    def variants_of_index(self) -> list[Path]:
        """Return the folders of the indexes by other settings."""
        return _folders_in(self.index_variants)

    @property
    def marts(self) -> Path:
        """The DuckDB file of dbt's marts."""
        return self.folder / "marts.duckdb"

    @property
    def notices(self) -> Path:
        """The failures that people have been told of and that are not mended yet."""
        return self.folder / "notices.json"

    @property
    def aliases_lock(self) -> Path:
        """The file that is held locked while a line is added to the user's aliases."""
        return self.folder / "aliases.lock"

    @property
    def purge_mark(self) -> Path:
        """A file that is there while a purge goes on, or where one was killed."""
        return self.folder / "purge.unfinished"

    @property
    def dagster(self) -> Path:
        """Dagster's own folder, unless ``DAGSTER_HOME`` names another."""
        return self.folder / "dagster"


def _folders_in(place: Path) -> list[Path]:
    return sorted(path for path in place.iterdir() if path.is_dir()) if place.is_dir() else []


def make_home(settings: Settings) -> None:
    """Make the home folder, if it is not there, with the rights that ``home_mode`` says.

    Raises StorageError where it cannot be made.
    """
    try:
        make_folder(settings.home_path, int(settings.home_mode, 8))
    except OSError as error:
        reason = error.strerror or error
        raise StorageError(f"cannot write in {settings.home_path}: {reason}") from error


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
