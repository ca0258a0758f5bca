"""The home folder of an index: every path in it has its name here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Home:
    """The paths of one home folder."""

    folder: Path

    @property
    def index(self) -> Path:
        """The pipeline's own DuckDB file."""
        return self.folder / "index.duckdb"

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
    def run_lock(self) -> Path:
        """The file that a run holds locked, so that runs of one index wait for each other."""
        return self.folder / "run.lock"

    @property
    def run_process(self) -> Path:
        """The file in which a run that holds the lock says which process it is."""
        return self.folder / "run.pid"

    @property
    def calls(self) -> Path:
        """The cache and the ledger of model calls."""
        return self.folder / "llm_cache.sqlite"

    @property
    def ocr(self) -> Path:
        """The folder of the texts of scanned pages."""
        return self.folder / "ocr"

    @property
    def evaluation(self) -> Path:
        """The DuckDB file of experiments."""
        return self.folder / "evaluation.duckdb"

    @property
    def marts(self) -> Path:
        """The DuckDB file of dbt's marts."""
        return self.folder / "marts.duckdb"

    @property
    def notices(self) -> Path:
        """What people have been told of and is not mended yet."""
        return self.folder / "notices.json"

    @property
    def dagster(self) -> Path:
        """Dagster's own folder, unless ``DAGSTER_HOME`` names another."""
        return self.folder / "dagster"
