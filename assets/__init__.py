"""Dagster assets: each reads, calls the engine once, and says what came of it."""

from assets.communities import build_communities
from assets.embeddings import build_embeddings
from assets.graph import graph
from assets.ingestion import BATCHES, chunks, documents, extractions
from assets.publishing import published_index
from assets.reports import build_reports

__all__ = [
    "BATCHES",
    "build_communities",
    "build_embeddings",
    "build_reports",
    "chunks",
    "documents",
    "extractions",
    "graph",
    "published_index",
]
