"""Importing: work that was done elsewhere, brought into an index as it is."""

from graphrag_pipeline.exchange.importing.batch import ImportResult
from graphrag_pipeline.exchange.importing.extractions import import_extractions
from graphrag_pipeline.exchange.importing.microsoft import import_graphrag

__all__ = ["ImportResult", "import_extractions", "import_graphrag"]
