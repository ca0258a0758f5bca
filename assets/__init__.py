"""Dagster assets: each reads, calls the engine once, and says what came of it."""

from __future__ import annotations

import dagster as dg

from graphrag_pipeline.assets.communities import build_communities
from graphrag_pipeline.assets.embeddings import build_embeddings
from graphrag_pipeline.assets.evaluation import build_evaluation, build_evaluations, index_quality
from graphrag_pipeline.assets.graph import entity_aliases, graph
from graphrag_pipeline.assets.ingestion import BATCHES, chunks, documents, extractions, inbox
from graphrag_pipeline.assets.publishing import build_published_index
from graphrag_pipeline.assets.reports import build_reports
from graphrag_pipeline.assets.structures import build_structures
from graphrag_pipeline.assets.versions import with_code_versions
from graphrag_pipeline.core.settings import Settings

__all__ = [
    "BATCHES",
    "build_evaluation",
    "build_evaluations",
    "build_ingestion",
    "build_tail",
    "inbox",
    "index_quality",
]


def build_ingestion(settings: Settings) -> list[dg.AssetsDefinition]:
    """Return the stages that run once per batch."""
    return with_code_versions([documents, chunks, extractions], settings)


def build_tail(settings: Settings) -> list[dg.AssetsDefinition]:
    """Return the stages that follow from all batches together, to the published index."""
    levels = settings.communities.levels
    tail = [
        entity_aliases,
        graph,
        build_communities(levels),
        *build_reports(levels),
        *build_embeddings(settings),
        *build_structures(settings),
        build_published_index(settings),
    ]
    return with_code_versions(tail, settings)
