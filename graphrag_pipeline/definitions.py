"""Everything Dagster is told of: assets, jobs, resources, sensors and schedules."""

from __future__ import annotations

import dagster as dg

import assets
import sensors
from assets.ingestion import inbox
from graphrag_pipeline.config import Settings, load_settings
from resources import IndexResource

INGEST_JOB = "ingest_batch"
REFRESH_JOB = "refresh_index"


def build_definitions(settings: Settings) -> dg.Definitions:
    """Return the definitions under these settings."""
    levels = settings.communities.levels
    ingestion = [assets.documents, assets.chunks, assets.extractions]
    tail = [
        assets.graph,
        assets.build_communities(settings.communities),
        *assets.build_reports(settings.reports, levels),
        *assets.build_embeddings(settings.embeddings, levels),
        assets.published_index,
    ]
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
        sensors=[
            sensors.build_inbox_sensor(ingest_job, settings.input),
            sensors.run_failure_sensor,
        ],
        schedules=[sensors.build_refresh_schedule(refresh_job, settings.schedule)],
        resources={"index": IndexResource()},
        # One process per run: a second one would only wait for DuckDB's single writer.
        executor=dg.in_process_executor,
    )


defs = build_definitions(load_settings())
