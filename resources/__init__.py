"""Dagster resources: the engine's store, batches and settings, as configured."""

from resources.index import IndexResource

__all__ = ["IndexResource"]
