"""Files become clean text: one file in, documents and quarantined records out.

`read_file` reads the formats of `FORMATS`. Whatever is wrong with a file or with a record inside it
is an answer (`Quarantined`), never an exception.
"""

from graphrag_pipeline.ingest.reading.blocks import Block, BlockKind
from graphrag_pipeline.ingest.reading.files import read_file
from graphrag_pipeline.ingest.reading.formats import FORMATS, supported_suffixes
from graphrag_pipeline.ingest.reading.model import (
    FileFormat,
    Quarantined,
    ReadDocument,
    ReadingOptions,
    ReadResult,
    Scalar,
    Unreadable,
    whole_document,
)

__all__ = [
    "FORMATS",
    "Block",
    "BlockKind",
    "FileFormat",
    "Quarantined",
    "ReadDocument",
    "ReadResult",
    "ReadingOptions",
    "Scalar",
    "Unreadable",
    "read_file",
    "supported_suffixes",
    "whole_document",
]
