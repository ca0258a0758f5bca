"""RTF: the text of a document, with its title and author; pictures and notes of programs are out.

striprtf (BSD) reads it.
"""

from __future__ import annotations

import re
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.blocks import Block
from graphrag_pipeline.ingest.reading.extras import require_extra
from graphrag_pipeline.ingest.reading.html_lines import n_names
from graphrag_pipeline.ingest.reading.model import (
    FileFormat,
    ReadingOptions,
    ReadResult,
    Unreadable,
    whole_document,
)
from graphrag_pipeline.ingest.reading.table_head import markdown_lines

_INFO = pattern_of(r"\{\\(title|author) ((?:[^{}\\]|\\[^{}]){1,2000})\}")
_CODE_PAGE = pattern_of(r"\\ansicpg\d{1,5}")
_ROWS = pattern_of(r"^[^\n]*\|$(?:\n[^\n]*\|$)*", re.M)
_TABLES = pattern_of(r"^\|[^\n]*\|$(?:\n\|[^\n]*\|$)*", re.M)
_NOTE = pattern_of(r"(?:\\\*)?\\footnote(?![A-Za-z])")
_DELETED, _UNSEEN = pattern_of(r"\\deleted(?![A-Za-z0])"), r"\\*\\deleted"
_OLD_MARK = pattern_of(r"\\pntext(?![A-Za-z])")
_ITEM = pattern_of(r"^ ?(?:(\d{1,4}[.)])|([A-Za-z]{1,5})[.)]|[·•§o-])\t", re.M)
_DASH = r"\\u8211? "


def read_rtf(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read a document; tables are those of Markdown, notes stand where they are made.

    Changes that were tracked as deleted are left out.
    """
    if not data.lstrip().startswith(b"{\\rtf"):
        raise Unreadable("the file does not begin with {\\rtf")
    written = data.decode("latin-1")
    code_page = _CODE_PAGE.search(written, 0, 10_000)
    about = {
        match[1]: _text(f"{{\\rtf1\\ansi{code_page[0] if code_page else ''} {match[2]}}}")
        for match in _INFO.finditer(written, 0, 100_000)
    }
    written = _OLD_MARK.sub(r"\\listtext", _NOTE.sub(_DASH, written))
    text = _ITEM.sub(_mark, _ROWS.sub(_table, _text(_DELETED.sub(_UNSEEN, written))))
    blocks = [Block(*match.span(), "table") for match in _TABLES.finditer(text)]
    return whole_document(path, text, about.pop("title", ""), {**about}, blocks)


def _mark(item: re.Match[str]) -> str:
    """Return the mark of an item, before its words, as other readers write it."""
    return f"{item[1] or (f'{item[2]})' if item[2] else '-')} "


def _text(written: str) -> str:
    with require_extra("striprtf", "legacy", "rtf"):
        from striprtf.striprtf import rtf_to_text
    return rtf_to_text(written, errors="replace")


def _table(match: re.Match[str]) -> str:
    lines = match.group().split("\n")
    rows = [[" ".join(cell.split()) for cell in line[:-1].split("|")] for line in lines]
    return "\n".join(markdown_lines(rows, n_names(rows)))


RTF = FileFormat(read_rtf, versions.of("RTF"))
