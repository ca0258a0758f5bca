"""Dagster assets: each reads, calls the engine once, and says what came of it."""

from __future__ import annotations

import dagster as dg

from assets.attributed import build_attributed
from assets.communities import build_communities
from assets.embeddings import build_embeddings
from assets.evaluation import build_evaluation, build_evaluations, index_quality
from assets.graph import entity_aliases, graph
from assets.hirag import build_hirag
from assets.ingestion import BATCHES, chunks, documents, extractions, inbox
from assets.publishing import build_published_index
from assets.raptor import build_raptor
from assets.reports import build_reports
from assets.versions import with_code_versions
from graphrag_pipeline.config import Settings

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
        *build_hirag(settings),
        *build_raptor(settings),
        *build_attributed(settings),
        build_published_index(settings),
    ]
    return with_code_versions(tail, settings)
