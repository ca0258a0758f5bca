"""Dagster resources: the engine's store, batches and settings, as configured."""

from graphrag_pipeline.resources.index import (
    IndexResource as IndexResource,
    readable_failures as readable_failures,
)
