"""A published release, written in the formats that other tools read."""

from graphrag_pipeline.exchange.exporting.formats import EXPORTERS, export_release
from graphrag_pipeline.exchange.exporting.writing import Export, Exporter, Writer, WrittenFile

__all__ = ["EXPORTERS", "Export", "Exporter", "Writer", "WrittenFile", "export_release"]
