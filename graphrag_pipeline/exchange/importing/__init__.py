"""Importing: work that was done elsewhere, brought into an index as it is."""

from graphrag_pipeline.exchange.importing.batch import ImportResult as ImportResult
from graphrag_pipeline.exchange.importing.extractions import (
    import_extractions as import_extractions,
)
from graphrag_pipeline.exchange.importing.microsoft import import_graphrag as import_graphrag
