"""The reader's front door: a path in, documents or a reason out."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

from graphrag_pipeline.core.errors import is_interrupt
from graphrag_pipeline.core.memory import as_out_of_memory, memory_is_short
from graphrag_pipeline.ingest.reading.cleaning import clean_text, one_line
from graphrag_pipeline.ingest.reading.code import CODE_NAMES, CODE_SUFFIXES, read_code
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.docx import read_docx
from graphrag_pipeline.ingest.reading.epub import read_epub
from graphrag_pipeline.ingest.reading.html import read_html
from graphrag_pipeline.ingest.reading.line_blocks import line_blocks
from graphrag_pipeline.ingest.reading.mail import read_eml, read_mbox
from graphrag_pipeline.ingest.reading.markdown import read_markdown
from graphrag_pipeline.ingest.reading.model import (
    Quarantined,
    ReadingOptions,
    ReadResult,
    Unreadable,
    whole_document,
)
from graphrag_pipeline.ingest.reading.notebook import read_notebook
from graphrag_pipeline.ingest.reading.opendocument import read_ods, read_opendocument
from graphrag_pipeline.ingest.reading.pdf import read_pdf
from graphrag_pipeline.ingest.reading.pptx import read_pptx
from graphrag_pipeline.ingest.reading.rst import read_rst
from graphrag_pipeline.ingest.reading.sheets import read_xlsx
from graphrag_pipeline.ingest.reading.tables import read_csv, read_json, read_jsonl, read_parquet

_NOT_READ = "are not read, only"
_OUT_OF_MEMORY = "there is not enough memory to read the file"
Reader = Callable[[Path, bytes, ReadingOptions], ReadResult]


def _read_text(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    text = clean_text(decode(data, options.encoding))
    return whole_document(path, text, blocks=line_blocks(text, markdown=False))


_READERS: dict[str, Reader] = {
    ".txt": _read_text,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".html": read_html,
    ".htm": read_html,
    ".csv": read_csv,
    ".tsv": read_csv,
    ".json": read_json,
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".parquet": read_parquet,
    ".pdf": read_pdf,
    ".docx": read_docx,
    ".pptx": read_pptx,
    ".xlsx": read_xlsx,
    ".xlsm": read_xlsx,
    ".odt": read_opendocument,
    ".odp": read_opendocument,
    ".ods": read_ods,
    ".epub": read_epub,
    ".eml": read_eml,
    ".mbox": read_mbox,
    ".rst": read_rst,
    ".ipynb": read_notebook,
    **dict.fromkeys(CODE_SUFFIXES, read_code),
}

_NAMED: dict[str, Reader] = {
    **dict.fromkeys(
        ("readme", "news", "changes", "changelog", "history", "todo", "install", "authors", "faq"),
        _read_text,
    ),
    **dict.fromkeys(CODE_NAMES, read_code),
}
"""Readers of files without an ending, by their names in lower case."""

SUPPORTED_SUFFIXES: frozenset[str] = frozenset(_READERS)
"""Suffixes, lower case and with their dot, that `read_file` can read."""


def read_file(path: Path, options: ReadingOptions, *, data: bytes | None = None) -> ReadResult:
    """Read one file into clean documents.

    `data`, when given, are the file's bytes, and the disk is not touched. Never raises for the
    file's content or for what the operating system says about it: the result then holds the
    reason, with the key "" when it concerns the whole file. What is raised is want of memory, where
    other work would get none either: a file that asks for too much is at fault itself.
    """
    try:
        reader = _reader(path)
        if data is None:
            data = _bytes_on_disk(path, options)
        _require_size(len(data), options)
        if not data.strip():
            raise Unreadable("the file is empty" if not data else "the file is only white space")
        return reader(path, data, options)
    except Unreadable as error:
        return refused(str(error))
    except MemoryError:
        if memory_is_short():
            raise
        return refused(_OUT_OF_MEMORY)
    except Exception as error:  # whatever a parser makes of untrusted bytes is the file's fault
        if is_interrupt(error) or (memory_is_short() and as_out_of_memory(error)):
            raise
        kind = path.suffix.lower().lstrip(".")
        details = one_line(f"{type(error).__name__}: {error}"[:300])
        return refused(f"the file could not be read as {kind} ({details})")


def is_out_of_memory(result: ReadResult) -> bool:
    """Whether a file was refused because there was no memory left to read it."""
    return [refusal.reason for refusal in result.quarantined] == [_OUT_OF_MEMORY]


def is_of_other_kind(reason: str) -> bool:
    """Whether a file was refused for its kind alone: nothing is wrong with it."""
    return reason.startswith("files with") and f" {_NOT_READ} " in reason


def refused(reason: str) -> ReadResult:
    """Return that a whole file was not read, and why."""
    return ReadResult([], [Quarantined("", reason)])


def _reader(path: Path) -> Reader:
    suffix = path.suffix.lower()
    if not suffix and path.name.lower() in _NAMED:
        return _NAMED[path.name.lower()]
    if suffix not in _READERS:
        extensions = " ".join(sorted(_READERS.keys() - CODE_SUFFIXES))
        kind = f"with suffix {one_line(suffix)!r}" if suffix else "without a suffix"
        raise Unreadable(f"files {kind} {_NOT_READ} {extensions} and source code")
    return _READERS[suffix]


def _bytes_on_disk(path: Path, options: ReadingOptions) -> bytes:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("it is not a regular file")
        _require_size(status.st_size, options)
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise Unreadable(why_not_opened(error)) from None


def why_not_opened(error: OSError | ValueError) -> str:
    """Return in words why the operating system gave no bytes of a file."""
    if isinstance(error, FileNotFoundError):
        return "the file is no longer there"
    if isinstance(error, PermissionError):
        return "permission to read the file was denied"
    reason = getattr(error, "strerror", None) or error
    return f"the file could not be read from disk ({reason})"


def too_large(size: int, options: ReadingOptions) -> str:
    """Return what is said of a file of too many bytes."""
    return f"the file has {size:,} bytes, more than {options.allowed}"


def _require_size(size: int, options: ReadingOptions) -> None:
    if size > options.max_file_bytes:
        raise Unreadable(too_large(size, options))
