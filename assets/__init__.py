"""Dagster assets: each reads, calls the engine once, and says what came of it."""

from __future__ import annotations

import dagster as dg

from graphrag_pipeline.assets.communities import build_communities
from graphrag_pipeline.assets.embeddings import build_embeddings
from graphrag_pipeline.assets.graph import entity_aliases, graph
from graphrag_pipeline.assets.ingestion import (
    build_inbox as build_inbox,
    chunks,
    documents,
    extractions,
)
from graphrag_pipeline.assets.names import Names as Names
from graphrag_pipeline.assets.publishing import build_published_index
from graphrag_pipeline.assets.quality import build_measures
from graphrag_pipeline.assets.reports import build_reports
from graphrag_pipeline.assets.stages import AssetStage
from graphrag_pipeline.assets.structures import build_structures
from graphrag_pipeline.assets.upkeep import build_index_check as build_index_check
from graphrag_pipeline.assets.web_pages import build_web_pages as build_web_pages
from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.graph.communities import COMMUNITIES_VERSION
from graphrag_pipeline.graph.fold import GRAPH_VERSION
from graphrag_pipeline.graph.resolution.resolving import RESOLUTION_VERSION
from graphrag_pipeline.ingest.stages import stage_versions
from graphrag_pipeline.pipeline.stages import (
    LevelsStage,
    ReportStage,
    Stage,
    StepStage,
    VectorStage,
    refresh_stages,
)
from graphrag_pipeline.releases.publishing import config_hash
from graphrag_pipeline.reports.levels import REPORTS_VERSION
from graphrag_pipeline.reports.model_writer import report_writer

_EMBEDDER = {"embedder", "model", "dimensions"}


def code_versions(settings: Settings) -> dict[str, str]:
    """Return the version of each stage by the first part of its assets' keys."""
    return {
        **stage_versions(settings),
        "graph": fingerprint(
            GRAPH_VERSION,
            RESOLUTION_VERSION,
            settings.graph,
            settings.resolution,
            settings.chunks.encoding,
        ),
        "communities": fingerprint(COMMUNITIES_VERSION, settings.communities),
        "reports": fingerprint(REPORTS_VERSION, report_writer(settings).version, settings.reports),
        "embeddings": fingerprint("embeddings", settings.embeddings.model_dump(include=_EMBEDDER)),
        "published_index": config_hash(settings),
    }


def build_ingestion(settings: Settings, names: Names) -> list[dg.AssetsDefinition]:
    """Return the assets that are made once per batch."""
    versions = code_versions(settings)
    return [stage.build(names, versions) for stage in (documents, chunks, extractions)]


def build_tail(settings: Settings, names: Names) -> list[dg.AssetsDefinition]:
    """Return what follows from all batches together, to the published index and its quality."""
    versions = code_versions(settings)
    stages = [_asset_stage(stage, settings) for stage in refresh_stages(settings)]
    stages += [build_published_index(settings), *build_measures()]
    return [stage.build(names, versions) for stage in stages]


def _asset_stage(stage: Stage, settings: Settings) -> AssetStage:
    """Return what Dagster shows of a stage of the engine."""
    match stage:
        case LevelsStage():
            return build_communities(stage)
        case ReportStage():
            return build_reports(stage)
        case VectorStage():
            return build_embeddings(stage, settings)
        case StepStage():
            return build_structures(stage, settings)
    return {each.name: each for each in (entity_aliases, graph)}[stage.name]
