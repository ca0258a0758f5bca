"""Messages between processes, and answers of one that reads: JSON, and documents as Arrow.

The process reads what strangers wrote. What it answers is therefore data alone, never a pickle.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import BinaryIO

from graphrag_pipeline.ingest.reading.blocks import Block
from graphrag_pipeline.ingest.reading.model import (
    DocumentTable,
    Quarantined,
    ReadDocument,
    ReadResult,
)

_LENGTH = 8


def write_answer(result: ReadResult) -> bytes:
    """Return what :func:`read_answer` reads."""
    table = b""
    documents: Sequence[ReadDocument] = result.documents
    if isinstance(documents, DocumentTable):
        sink = io.BytesIO()
        documents.rows.write_ipc(sink, compression="uncompressed")
        table, documents = sink.getvalue(), []
    said = {
        "documents": [
            (d.key, d.title, d.text, d.metadata, [tuple(b) for b in d.blocks], d.page_starts)
            for d in documents
        ],
        "quarantined": [(q.key, q.reason) for q in result.quarantined],
    }
    head = json.dumps(said, ensure_ascii=False).encode()
    return b"".join((len(head).to_bytes(_LENGTH), head, table))


def read_answer(answer: bytes) -> ReadResult:
    """Return what a file gave."""
    end = _LENGTH + int.from_bytes(answer[:_LENGTH])
    said = json.loads(answer[_LENGTH:end])
    quarantined = [Quarantined(key, reason) for key, reason in said["quarantined"]]
    if len(answer) > end:
        import polars as pl

        return ReadResult(DocumentTable(pl.read_ipc(io.BytesIO(answer[end:]))), quarantined)
    documents = [
        ReadDocument(
            key, title, text, metadata, tuple(Block(*block) for block in blocks), tuple(pages)
        )
        for key, title, text, metadata, blocks, pages in said["documents"]
    ]
    return ReadResult(documents, quarantined)


def write_frame(pipe: BinaryIO, *parts: bytes) -> None:
    """Send parts as one message. Raises OSError where nobody reads."""
    pipe.write(sum(map(len, parts)).to_bytes(_LENGTH))
    for part in parts:
        pipe.write(part)
    pipe.flush()


def read_frame(pipe: BinaryIO, most: int | None = None) -> bytes | None:
    """Return the next message; None at the end, or of one that has more than ``most`` bytes."""
    head = pipe.read(_LENGTH)
    length = int.from_bytes(head)
    if len(head) < _LENGTH or (most is not None and length > most):
        return None
    content = pipe.read(length)
    return content if len(content) == length else None
