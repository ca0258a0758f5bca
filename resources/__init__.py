"""Dagster resources: the engine's store, batches and settings, as configured."""

from graphrag_pipeline.resources.index import IndexResource, readable_failures

__all__ = ["IndexResource", "readable_failures"]
