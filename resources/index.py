"""The index as a Dagster resource."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import duckdb
from dagster_duckdb import DuckDBResource
from pydantic import Field

from graphrag_pipeline.batches import BatchLog
from graphrag_pipeline.config import Settings, load_settings
from graphrag_pipeline.store import IndexStore

INDEX_FILE = "index.duckdb"


class IndexResource(DuckDBResource):
    """The pipeline's DuckDB file, its document batches and its settings.

    ``get_connection`` waits its turn fairly among processes, always closes, and by default is
    for reading; write inside ``store.transaction()``.
    """

    database: str = Field(
        default="", description="Path of the index file; empty: index.duckdb in the home folder."
    )

    @cached_property
    def settings(self) -> Settings:
        """The settings, read once per run."""
        return load_settings()

    @property
    def home(self) -> Path:
        """The home folder."""
        return self.settings.home_path

    @property
    def store(self) -> IndexStore:
        """The engine's store."""
        return IndexStore(self.database or self.home / INDEX_FILE)

    @property
    def log(self) -> BatchLog:
        """The engine's batch log."""
        return BatchLog(self.home)

    @contextlib.contextmanager
    def get_connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection to the index for reading."""
        with self.store.read() as con:
            yield con
