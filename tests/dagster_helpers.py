"""A whole pipeline in a folder of its own, driven as Dagster drives it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import dagster as dg
import pytest
from quick_dagster import make_dagster_quick

from graphrag_pipeline.core.settings import Settings, load_settings
from graphrag_pipeline.definitions import INGEST_JOB, REFRESH_JOB, build_definitions
from graphrag_pipeline.ingest.stages import stage_versions
from graphrag_pipeline.orchestration.runs import dagster_home
from graphrag_pipeline.releases.publishing import published_release
from graphrag_pipeline.store.batches import BatchLog
from graphrag_pipeline.store.index_store import IndexStore
from graphrag_pipeline.store.workspace import Workspace

PEOPLE = "Anna Berg works with Boris Claude at Orion Labs in Lyon. Boris Claude leads Orion Labs."
PLACES = "Mira Dorn met Emil Fuchs in Ghent. Emil Fuchs founded Gamma Works. Mira Dorn lives there."
RIVERS = "Hanna Iversen sails the Jordan River. Kora Lund paints the Jordan River near Montreux."

LEVELS = "GRAPHRAG_COMMUNITIES__LEVELS"

make_dagster_quick()


class Pipeline:
    """Settings, definitions and a Dagster instance of one home folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, made: bool = True) -> None:
        self.home = folder / "home"
        self.inbox = folder / "documents"
        self.inbox.mkdir(exist_ok=True)
        monkeypatch.setenv("GRAPHRAG_HOME", str(self.home))
        monkeypatch.setenv("GRAPHRAG_INPUT__FOLDER", str(self.inbox))
        monkeypatch.setenv("DAGSTER_HOME", str(self.home / "dagster"))
        # A step for each level, of which small graphs have one, takes a third of a run.
        if LEVELS not in os.environ:
            monkeypatch.setenv(LEVELS, "1")
        self.settings: Settings = load_settings()
        if made:
            dagster_home(self.settings)
        self.defs = build_definitions(self.settings)
        self.log = BatchLog(self.home)
        self.store = IndexStore(self.home / "index.duckdb", wait_seconds=60)

    def write(self, files: Mapping[str, str | bytes]) -> None:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            (self.inbox / name).write_bytes(data)

    @property
    def workspace(self) -> Workspace:
        """The index as a program sees it."""
        return Workspace(self.settings)

    def cut(self) -> list[str]:
        limits = self.settings.batches
        return [
            batch.key
            for batch in self.log.cut(self.inbox, limits, max_bytes=10**8, remove_all=True)
        ]

    def ingest(
        self, instance: dg.DagsterInstance, keys: Sequence[str]
    ) -> dg.ExecuteInProcessResult:
        instance.add_dynamic_partitions("document_batch", list(keys))
        tags = {
            "dagster/asset_partition_range_start": keys[0],
            "dagster/asset_partition_range_end": keys[-1],
            "graphrag/version": stage_versions(self.settings)["extractions"],
        }
        return self.run(INGEST_JOB, instance, tags)

    def refresh(self, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
        return self.run(REFRESH_JOB, instance, {})

    def run(
        self, job: str, instance: dg.DagsterInstance, tags: Mapping[str, str]
    ) -> dg.ExecuteInProcessResult:
        return self.defs.resolve_job_def(job).execute_in_process(
            instance=instance,
            tags=dict(tags),
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            raise_on_error=False,
        )

    def execute(self, sql: str) -> None:
        with self.store.transaction() as con:
            con.execute(sql)

    def rows(self, sql: str) -> list[tuple]:
        with self.store.read() as con:
            return con.execute(sql).fetchall()

    @property
    def release(self) -> str | None:
        return published_release(self.home)


def metadata_of(result: dg.ExecuteInProcessResult) -> dict[tuple[str, str | None], dict]:
    """Return plain metadata by asset and partition."""
    found = {}
    for event in result.get_asset_materialization_events():
        one = event.step_materialization_data.materialization
        values = {name: value.value for name, value in one.metadata.items()}
        found[one.asset_key.to_user_string(), one.partition] = values
    return found


def failed_checks(result: dg.ExecuteInProcessResult) -> set[str]:
    """Return the checks that did not pass, as asset:check."""
    return {
        f"{check.asset_key.to_user_string()}:{check.check_name}"
        for check in result.get_asset_check_evaluations()
        if not check.passed
    }
