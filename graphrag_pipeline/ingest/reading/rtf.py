"""RTF: the text of a document, with its title and author; pictures and notes of programs are out.

striprtf (BSD) reads it.
"""

from __future__ import annotations

import re
from pathlib import Path

from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.blocks import Block
from graphrag_pipeline.ingest.reading.extras import require_extra
from graphrag_pipeline.ingest.reading.model import (
    FileFormat,
    ReadingOptions,
    ReadResult,
    Unreadable,
    whole_document,
)

_INFO = re.compile(r"\{\\(title|author) ((?:[^{}\\]|\\[^{}]){1,2000})\}")
_CODE_PAGE = re.compile(r"\\ansicpg\d{1,5}")
_ROW = re.compile(r"^(?P<cells>[^\n]*)\|$", re.M)
_ROWS = re.compile(r"^\|[^\n]*\|$(?:\n\|[^\n]*\|$)*", re.M)


def read_rtf(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read a document; each row of a table is a line, ``| a | b |``."""
    if not data.lstrip().startswith(b"{\\rtf"):
        raise Unreadable("the file does not begin with {\\rtf")
    written = data.decode("latin-1")
    code_page = _CODE_PAGE.search(written, 0, 10_000)
    about = {
        match[1]: _text(f"{{\\rtf1\\ansi{code_page[0] if code_page else ''} {match[2]}}}")
        for match in _INFO.finditer(written, 0, 100_000)
    }
    text = _ROW.sub(_row, _text(written))
    blocks = [Block(*match.span(), "table") for match in _ROWS.finditer(text)]
    return whole_document(path, text, about.pop("title", ""), {**about}, blocks)


def _text(written: str) -> str:
    with require_extra("striprtf", "legacy", "rtf"):
        from striprtf.striprtf import rtf_to_text
    return rtf_to_text(written, errors="replace")


def _row(match: re.Match[str]) -> str:
    cells = [" ".join(cell.split()) for cell in match["cells"].split("|")]
    return f"| {' | '.join(cells)} |"


RTF = FileFormat(read_rtf, versions.of("RTF"))
