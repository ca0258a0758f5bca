"""A published release, written in the formats that other tools read."""

from graphrag_pipeline.exchange.exporting.formats import FORMATS, export_release
from graphrag_pipeline.exchange.exporting.writing import Export, WrittenFile

__all__ = ["FORMATS", "Export", "WrittenFile", "export_release"]
