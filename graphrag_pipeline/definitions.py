"""Everything Dagster is told of: assets, jobs, resources, sensors and schedules."""

from __future__ import annotations

import dagster as dg

from assets import build_ingestion, build_tail, inbox
from graphrag_pipeline.config import Settings, load_settings
from resources import IndexResource
from sensors import build_inbox_sensor, build_refresh_schedule, run_failure_sensor

INGEST_JOB = "ingest_batch"
REFRESH_JOB = "refresh_index"


def build_definitions(settings: Settings) -> dg.Definitions:
    """Return the definitions under these settings."""
    ingestion, tail = build_ingestion(settings), build_tail(settings)
    ingest_job = dg.define_asset_job(
        INGEST_JOB,
        selection=dg.AssetSelection.assets(*ingestion),
        description="Read, chunk and extract document batches.",
    )
    refresh_job = dg.define_asset_job(
        REFRESH_JOB,
        selection=dg.AssetSelection.assets(*tail),
        description="Take finished batches into the graph, refresh all that follows, and publish.",
    )
    return dg.Definitions(
        assets=[inbox, *ingestion, *tail],
        jobs=[ingest_job, refresh_job],
        sensors=[build_inbox_sensor(ingest_job, settings.input), run_failure_sensor],
        schedules=[build_refresh_schedule(refresh_job, settings.schedule)],
        resources={"index": IndexResource()},
        # One process per run: a second one would only wait for DuckDB's single writer.
        executor=dg.in_process_executor,
    )


defs = build_definitions(load_settings())
