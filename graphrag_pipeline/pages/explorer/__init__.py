"""The published graph as one page of HTML, to be opened from disk."""

from graphrag_pipeline.pages.explorer.page import WrittenPage, write_page

__all__ = ["WrittenPage", "write_page"]
