"""An overview of a whole corpus as one HTML page, for people who never open a terminal."""

from graphrag_pipeline.pages.overview.page import WrittenReport, write_report

__all__ = ["WrittenReport", "write_report"]
