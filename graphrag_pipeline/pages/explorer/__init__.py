"""The published graph as one page of HTML, to be opened from disk or from the server."""

from graphrag_pipeline.pages.explorer.details import (
    community_details as community_details,
    entity_details as entity_details,
)
from graphrag_pipeline.pages.explorer.page import (
    WrittenPage as WrittenPage,
    packed as packed,
    read_data as read_data,
    render_served as render_served,
    write_page as write_page,
)
