"""Source code: the file as it is, its comments and doc strings prose, all else blocks of code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.blocks import Block
from graphrag_pipeline.ingest.reading.cleaning import with_newlines
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.model import (
    SMALL,
    FileFormat,
    ReadingOptions,
    ReadResult,
    Unreadable,
    convert_first,
    whole_document,
)

# Every alternative, once begun, ends where the text or the line ends: no text is scanned twice.
_QUOTED = r'"(?:[^"\\\n]|\\.)*+"?|' + r"'(?:[^'\\\n]|\\.)*+'?"
_SLASHES = r"/\*(?s:.*?)(?:\*/|\Z)|//[^\n]*"
_HASH = r"(?<![^\s;])#(?![!\[])[^\n]*"
_TRIPLE = r"""(?:\"{3}(?s:(?:[^\\]|\\.)*?)(?:\"{3}|\Z)|'{3}(?s:(?:[^\\]|\\.)*?)(?:'{3}|\Z))"""
_MULTILINE = r'"(?:[^"\\]|\\.)*+"?'


def _family(comments: str, others: str) -> re.Pattern[str]:
    return re.compile(f"(?P<comment>{comments})|{others}", re.M)


_FAMILIES = {
    "c": _family(_SLASHES, rf"`(?:[^`\\]|\\.)*+`?|{_QUOTED}"),
    "rust": _family(_SLASHES, rf"{_MULTILINE}|'(?:[^'\\\n]|\\.)'"),
    "php": _family(f"{_SLASHES}|{_HASH}", _QUOTED),
    "python": _family(rf"^[ \t]*+[rRuU]?{_TRIPLE}|{_HASH}", f"{_TRIPLE}|{_QUOTED}"),
    "ruby": _family(rf"^=begin\b(?s:.*?)(?:^=end\b[^\n]*|\Z)|{_HASH}", _QUOTED),
    "shell": _family(_HASH, rf"\\.|{_QUOTED}"),
    "sql": _family(r"--[^\n]*|/\*(?s:.*?)(?:\*/|\Z)", _QUOTED),
    "lua": _family(r"--\[\[(?s:.*?)(?:\]\]|\Z)|--[^\n]*", _QUOTED),
    "haskell": _family(r"\{-(?s:.*?)(?:-\}|\Z)|--[^\n]*", r'"(?:[^"\\\n]|\\.)*+"?'),
    "lisp": _family(r";[^\n]*", rf"\\.|{_MULTILINE}"),
    "percent": _family(r"%[^\n]*", r'"(?:[^"\\\n]|\\.)*+"?'),
}
_OFFICE = (b"\xd0\xcf\x11\xe0", b"PK\x03\x04")
"""The first bytes of files of office programs."""
_LANGUAGES: dict[str, tuple[str, str]] = {
    ending: (language.replace("_", " "), family)
    for family, listed in word_lists("code.txt").items()
    for language, _, endings in (each.partition("=") for each in listed)
    for ending in endings.split(",")
}
"""Languages and how they write comments, by endings, and by names of files without one."""
CODE_SUFFIXES = frozenset(ending for ending in _LANGUAGES if ending.startswith("."))
"""Suffixes of the files that are source code."""
CODE_NAMES = _LANGUAGES.keys() - CODE_SUFFIXES
"""Names without an ending, in lower case, of files that are source code."""


def read_code(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read a file of source code; its title is its name, its metadata say the `language`.

    Comments, and Python's strings that stand alone, are prose; whatever is between is a block.
    """
    suffix = path.suffix.lower()
    language, family = _LANGUAGES[suffix or path.name.lower()]
    text = with_newlines(decode(data, options.encoding))
    blocks = code_blocks(text, family)
    return whole_document(path, text, path.name, {"language": language}, blocks)


def read_graph(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read a graph of Graphviz as source code; raises Unreadable for templates of Word."""
    if data.startswith(_OFFICE):
        raise Unreadable(convert_first("docx"))
    return read_code(path, data, options)


def code_blocks(text: str, family: str) -> Iterator[Block]:
    """Yield what of the text is not comment, as blocks; `family` names a way to write comments."""
    start = 0
    for match in _FAMILIES[family].finditer(text):
        if match["comment"] is None:
            continue
        if text[start : match.start()].strip():
            yield Block(start, match.start(), "code")
        start = match.end()
    if text[start:].strip():
        yield Block(start, len(text), "code")


CODE = FileFormat(read_code, versions.of("code"), SMALL)
GRAPHVIZ = FileFormat(read_graph, versions.of("graphs"), SMALL)
CODE_BY_NAME = FileFormat(read_code, versions.of("named"), SMALL)
