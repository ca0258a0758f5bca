"""The published graph as one page of HTML, to be opened from disk or from the server."""

from graphrag_pipeline.pages.explorer.details import community_details, entity_details
from graphrag_pipeline.pages.explorer.page import (
    ExplorerPage,
    WrittenPage,
    explorer_page,
    write_page,
)

__all__ = [
    "ExplorerPage",
    "WrittenPage",
    "community_details",
    "entity_details",
    "explorer_page",
    "write_page",
]
