"""Components of Vue and Svelte: what their template shows as text, then scripts and styles."""

from __future__ import annotations

import re
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.cleaning import with_newlines
from graphrag_pipeline.ingest.reading.code import code_blocks
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.html import parse_html
from graphrag_pipeline.ingest.reading.model import (
    SMALL,
    FileFormat,
    ReadingOptions,
    ReadResult,
    whole_document,
)

_CODE = pattern_of(
    r"^<(?P<name>script|style|template(?=[^>]*\blang=[\"']?pug))\b[^>]*>(?P<code>.*?)^</(?P=name)>",
    re.DOTALL | re.MULTILINE,
)
_SHOWN = pattern_of(r"(?<=<)(/?)(?:template|button)\b")
"""Elements that a page hides, or leaves out as no text of it."""


def read_component(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one file; its title is its name, as that of other source code is."""
    text = with_newlines(decode(data, options.encoding))
    page = parse_html(_SHOWN.sub(r"\1div", _CODE.sub("", text)))
    code = "\n\n".join(match["code"].strip("\n") for match in _CODE.finditer(text))
    start = len(page.text) + 2 if page.text else 0
    blocks = [*page.blocks, *(block.moved(start) for block in code_blocks(code, "c"))]
    whole = "\n\n".join(filter(None, (page.text, code)))
    language = {".vue": "Vue", ".svelte": "Svelte"}[path.suffix.lower()]
    return whole_document(path, whole, path.name, {"language": language}, blocks)


COMPONENT = FileFormat(read_component, versions.of("components"), SMALL)
