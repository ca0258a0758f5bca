"""Code versions: Dagster's UI shows an asset as outdated when its code or settings changed."""

from __future__ import annotations

from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.graph.communities import COMMUNITIES_VERSION
from graphrag_pipeline.graph.fold import GRAPH_VERSION
from graphrag_pipeline.graph.resolution.resolving import RESOLUTION_VERSION
from graphrag_pipeline.ingest.stages import stage_versions
from graphrag_pipeline.releases.publishing import config_hash
from graphrag_pipeline.reports.extractive import ExtractiveWriter
from graphrag_pipeline.reports.levels import REPORTS_VERSION
from graphrag_pipeline.reports.model_writer import report_writer

_EMBEDDER = {"embedder", "model", "dimensions"}


def code_versions(settings: Settings) -> dict[str, str]:
    """Return the version of each stage by the first part of its assets' keys."""
    section = settings
    writer = report_writer(section) or ExtractiveWriter(section.reports)
    return {
        **stage_versions(section),
        "graph": fingerprint(
            GRAPH_VERSION,
            RESOLUTION_VERSION,
            section.graph,
            section.resolution,
            section.chunks.encoding,
        ),
        "communities": fingerprint(COMMUNITIES_VERSION, section.communities),
        "reports": fingerprint(REPORTS_VERSION, writer.version, section.reports),
        "embeddings": fingerprint("embeddings", section.embeddings.model_dump(include=_EMBEDDER)),
        "published_index": config_hash(section),
    }
