"""An overview of a whole corpus as one HTML page, for people who never open a terminal."""

from graphrag_pipeline.pages.overview.page import (
    WrittenReport as WrittenReport,
    write_report as write_report,
)
