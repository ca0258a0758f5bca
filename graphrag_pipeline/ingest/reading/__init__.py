"""Files become clean text: one file in, documents and quarantined records out.

`read_file` reads the formats of `FORMATS`. Whatever is wrong with a file or with a record inside it
is an answer (`Quarantined`), never an exception.
"""

from graphrag_pipeline.ingest.reading.blocks import Block as Block, BlockKind as BlockKind
from graphrag_pipeline.ingest.reading.files import read_file as read_file
from graphrag_pipeline.ingest.reading.formats import (
    FORMATS as FORMATS,
    supported_suffixes as supported_suffixes,
)
from graphrag_pipeline.ingest.reading.model import (
    FileFormat as FileFormat,
    Quarantined as Quarantined,
    ReadDocument as ReadDocument,
    ReadingOptions as ReadingOptions,
    ReadResult as ReadResult,
    Scalar as Scalar,
    Unreadable as Unreadable,
    whole_document as whole_document,
)
