"""The published graph as one page of HTML, to be opened from disk or from the server."""

from graphrag_pipeline.pages.explorer.details import community_details, entity_details
from graphrag_pipeline.pages.explorer.page import (
    WrittenPage,
    packed,
    read_data,
    render_served,
    write_page,
)

__all__ = [
    "WrittenPage",
    "community_details",
    "entity_details",
    "packed",
    "read_data",
    "render_served",
    "write_page",
]
