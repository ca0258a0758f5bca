"""Everything Dagster is told of: assets, jobs, resources, sensors and schedules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import dagster as dg
from dagster._core.definitions.definitions_load_context import StateBackedDefinitionsLoader

from graphrag_pipeline.assets import (
    build_evaluation,
    build_evaluations,
    build_ingestion,
    build_tail,
    inbox,
    index_quality,
)
from graphrag_pipeline.core.settings import Settings, load_settings
from graphrag_pipeline.marts.build import MARTS_JOB, manifest
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.sensors import (
    build_evaluation_schedule,
    build_inbox_sensor,
    build_marts_sensor,
    build_refresh_schedule,
    check_crons,
    run_failure_sensor,
)

INGEST_JOB = "ingest_batch"
REFRESH_JOB = "refresh_index"
EVALUATION_JOB = "evaluate_experiment"


def build_definitions(settings: Settings, *, marts: bool = False) -> dg.Definitions:
    """Return the definitions under these settings; with ``marts``, those of dbt too.

    dbt takes seconds to import, and to read its project for the first time: only who shows or
    builds the marts asks for them.
    """
    check_crons(settings)
    resource = IndexResource.of(settings)
    ingestion, tail = build_ingestion(settings), build_tail(settings)
    ingest_job = dg.define_asset_job(
        INGEST_JOB,
        selection=dg.AssetSelection.assets(*ingestion),
        description="Read, chunk and extract document batches.",
    )
    refresh_job = dg.define_asset_job(
        REFRESH_JOB,
        selection=dg.AssetSelection.assets(*tail, index_quality),
        description="Take finished batches into the graph, refresh all that follows, and publish.",
    )
    index = dg.Definitions(
        assets=[inbox, *ingestion, *tail, index_quality],
        jobs=[ingest_job, refresh_job],
        sensors=[build_inbox_sensor(ingest_job, resource), run_failure_sensor],
        schedules=[build_refresh_schedule(refresh_job, resource)],
        resources={"index": resource},
        # One process per run: a second one would only wait for DuckDB's single writer.
        executor=dg.in_process_executor,
    )
    return dg.Definitions.merge(
        index, *([_marts(resource)] if marts else []), *_evaluation(resource)
    )


def _evaluation(index: IndexResource) -> list[dg.Definitions]:
    experiment = build_evaluation(index.settings)
    if not experiment:
        return []
    job = dg.define_asset_job(
        EVALUATION_JOB,
        selection=dg.AssetSelection.assets(*experiment),
        description="Answer, score and judge the experiment of the settings on what is published.",
    )
    return [
        dg.Definitions(
            assets=experiment,
            jobs=[job],
            schedules=[build_evaluation_schedule(job, index)],
        )
    ]


def _marts(index: IndexResource) -> dg.Definitions:
    from graphrag_pipeline.assets.marts import build_marts
    from graphrag_pipeline.resources.marts import build_dbt

    models = build_marts(manifest(index.home))
    job = dg.define_asset_job(
        MARTS_JOB,
        selection=dg.AssetSelection.assets(models),
        description="Build the marts of what is published and evaluated, and test them.",
    )
    return dg.Definitions(
        assets=[models, build_evaluations(index.settings)],
        jobs=[job],
        sensors=[build_marts_sensor(MARTS_JOB, index)],
        resources={"dbt": build_dbt()},
    )


class SettingsOnce(StateBackedDefinitionsLoader[dict[str, Any]]):
    """Definitions under settings that are read once, as the code location is loaded.

    Dagster loads the definitions again in each process that executes a run, and hands it what was
    read then: what is edited meanwhile holds from the next loading of the code location.
    """

    def __init__(
        self, read: Callable[[], Settings], build: Callable[[Settings], dg.Definitions], name: str
    ) -> None:
        self._read = read
        self._build = build
        self._name = name

    @property
    def defs_key(self) -> str:
        """What Dagster keeps the settings under."""
        return f"graphrag_pipeline/settings/{self._name}"

    def fetch_state(self) -> dict[str, Any]:
        """Read the settings."""
        return self._read().as_set()

    def defs_from_state(self, state: dict[str, Any]) -> dg.Definitions:
        """Return the definitions under settings that were read."""
        return self._build(Settings.exactly(state))

    def build_defs(self) -> dg.Definitions:
        """Return the definitions; what Dagster hands on needs no place in themselves."""
        return self.defs_from_state(self.get_or_fetch_state())


@dg.definitions
def defs() -> dg.Definitions:
    """Return the definitions that Dagster's tools load."""
    return SettingsOnce(load_settings, partial(build_definitions, marts=True), "home").build_defs()
