"""Files become clean text: one file in, documents and quarantined records out.

`read_file` reads txt, markdown, html, csv, json, jsonl, parquet, pdf and docx. Whatever is wrong
with a file or with a record inside it is an answer (`Quarantined`), never an exception.
"""

from graphrag_pipeline.ingest.reading.blocks import Block, BlockKind
from graphrag_pipeline.ingest.reading.files import SUPPORTED_SUFFIXES, read_file
from graphrag_pipeline.ingest.reading.model import (
    Quarantined,
    ReadDocument,
    ReadingOptions,
    ReadResult,
    Scalar,
)

__all__ = [
    "SUPPORTED_SUFFIXES",
    "Block",
    "BlockKind",
    "Quarantined",
    "ReadDocument",
    "ReadResult",
    "ReadingOptions",
    "Scalar",
    "read_file",
]
