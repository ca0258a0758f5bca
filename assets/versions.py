"""Code versions: Dagster's UI shows an asset as outdated when its code or settings changed."""

from __future__ import annotations

from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.graph.communities import COMMUNITIES_VERSION
from graphrag_pipeline.graph.fold import GRAPH_VERSION
from graphrag_pipeline.graph.resolution.resolving import RESOLUTION_VERSION
from graphrag_pipeline.ingest.stages import stage_versions
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
