"""Jupyter notebooks: their cells as Markdown, code in fences, each with its results below it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.markdown import read_as_markdown
from graphrag_pipeline.ingest.reading.model import (
    SMALL_RECORDS,
    FileFormat,
    ReadingOptions,
    ReadResult,
    Unreadable,
)
from graphrag_pipeline.ingest.reading.notebook_outputs import outputs_of

_FENCE = pattern_of(r"^[ \t]*(`{3,})", re.M)
_INLINE_IMAGE = pattern_of(r"!\[([^\]\n]{0,300})\]\(data:[^)\s]*\)")


def read_notebook(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one notebook, of nbformat 3 or later, in the order of its cells."""
    try:
        notebook = json.loads(decode(data, options.encoding))
    except RecursionError:
        raise Unreadable("the notebook is nested too deep") from None
    except ValueError as error:
        raise Unreadable(f"the file is not a notebook: it is no JSON ({error})") from None
    cells = _cells(notebook)
    language = _language(notebook)
    del notebook
    text = "\n\n".join(filter(None, (_cell(cell, language) for cell in cells)))
    if not text.strip():
        raise Unreadable("the notebook holds no text")
    return read_as_markdown(path, text, options)


def _cells(notebook: Any) -> list[dict[str, Any]]:
    if not isinstance(notebook, dict):
        raise Unreadable("the file is not a notebook: it holds no object")
    sheets = notebook.get("worksheets")
    holders = [notebook, *(sheets if isinstance(sheets, list) else [])]
    found = [
        h["cells"] for h in holders if isinstance(h, dict) and isinstance(h.get("cells"), list)
    ]
    if not found:
        raise Unreadable("the file is not a notebook: it has no cells")
    return [cell for cells in found for cell in cells if isinstance(cell, dict)]


def _language(notebook: dict[str, Any]) -> str:
    about = notebook.get("metadata")
    for name in ("language_info", "kernelspec"):
        part = about.get(name) if isinstance(about, dict) else None
        value = part.get("name") if isinstance(part, dict) else None
        if isinstance(value, str) and re.fullmatch(r"[\w+#-]{1,30}", value):
            return value
    return ""


def _cell(cell: dict[str, Any], language: str) -> str:
    source = cell.get("source", cell.get("input", ""))
    lines = source if isinstance(source, list) else [source]
    text = "".join(line for line in lines if isinstance(line, str)).strip("\n")
    if cell.get("cell_type") != "code":
        level = cell.get("level") if cell.get("cell_type") == "heading" else None
        mark = f"{'#' * min(max(level, 1), 6)} " if isinstance(level, int) else ""
        return mark + _INLINE_IMAGE.sub(r"\1", text)
    if not text.strip():
        return ""
    longest = max(map(len, _FENCE.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    code = f"{fence}{language}\n{text}\n{fence}"
    return "\n\n".join((code, *filter(None, outputs_of(cell.get("outputs"), text))))


NOTEBOOK = FileFormat(read_notebook, versions.of("HTML", "Markdown", "notebook"), SMALL_RECORDS)
