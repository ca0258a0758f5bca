"""BibTeX: each entry is a record, its LaTeX turned into text."""

from __future__ import annotations

import calendar
import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.cleaning import one_line, with_newlines
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.latex import latex_text
from graphrag_pipeline.ingest.reading.model import (
    SMALL_RECORDS,
    FileFormat,
    ReadingOptions,
    ReadResult,
)
from graphrag_pipeline.ingest.reading.records import read_records

_ENTRY = pattern_of(r"@[ \t]*([A-Za-z]{1,40})\s*([{(])")
_KEY = pattern_of(r"\s*([^\s,{}()=]{1,500})\s*(?=[,})])")
_FIELD = pattern_of(r"[\s,]*([\w:.+-]{1,100})\s*=\s*")
_BARE = pattern_of(r"[^\s,{}()#\"]{1,500}")
_JOIN = pattern_of(r"\s*#\s*")
_BRACE = pattern_of(r"\\.|[{}]", re.S)
_QUOTE = pattern_of(r'\\.|[{}"]', re.S)
_AND = pattern_of(r"\s+and\s+(?![^{]*\})", re.I)
_NAMES = ("author", "editor", "translator")
_KEYS = ("id", "type", "crossref")
_NOT_READ = ("comment", "preamble")
_STRING = pattern_of(r"@[ \t]*string\s*[{(]", re.I)
_ITS_OWN = ("title", "booktitle", "crossref", "key", "ids", "xref")
"""Fields that an entry does not take from the one that it is a part of."""
_MONTHS = {name[:3].lower(): name for name in calendar.month_name if name}


def read_bibtex(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read each entry as a record of its fields; its id is its key, names are given name first."""
    text = with_newlines(decode(data, options.encoding))
    none = "the file has no entries, as @book{key, title = {...}}"
    return read_records(path, _entries(text), options, none=none)


def _entries(text: str) -> Iterator[dict[str, object]]:
    read = list(_read_entries(text))
    wholes = {fields["id"].lower(): fields for fields in reversed(read)}
    for fields in read:
        yield _as_record(_with_whole(fields, wholes.get(fields.get("crossref", "").lower(), {})))


def _read_entries(text: str) -> Iterator[dict[str, str]]:
    strings = _strings(text)
    at = 0
    while entry := _ENTRY.search(text, at):
        kind, at = entry[1].lower(), entry.end()
        if kind in _NOT_READ:
            continue
        key = None if kind == "string" else _KEY.match(text, at)
        fields, at = _fields(text, key.end() if key else at, strings)
        if kind == "string":
            strings |= fields
        elif fields:
            yield {"id": key[1] if key else "", "type": kind} | {
                name: value for name, value in fields.items() if name not in ("id", "type")
            }


def _strings(text: str) -> dict[str, str]:
    """Return what abbreviations stand for where the file defines them after their first use."""
    known = dict(_MONTHS)
    for _ in ("as written", "with those that stand after them"):
        strings: dict[str, str] = {}
        at = 0
        while string := _STRING.search(text, at):
            fields, at = _fields(text, string.end(), ChainMap(strings, known))
            for name, value in fields.items():
                strings.setdefault(name, value)
        known |= strings
    return known


def _with_whole(fields: dict[str, str], whole: dict[str, str]) -> dict[str, str]:
    """Return an entry with what the one says that it is a part of: its publisher, year, editors."""
    if not whole:
        return fields
    of_whole = {name: value for name, value in whole.items() if name not in _ITS_OWN}
    title = whole.get("booktitle") or whole.get("title")
    return fields | {
        name: value
        for name, value in {"booktitle": title or "", **of_whole}.items()
        if value and name not in fields
    }


def _fields(text: str, at: int, strings: Mapping[str, str]) -> tuple[dict[str, str], int]:
    fields: dict[str, str] = {}
    while match := _FIELD.match(text, at):
        value, at = _value(text, match.end(), strings)
        if value.strip():
            fields.setdefault(match[1].lower(), value)
    return fields, at


def _value(text: str, at: int, strings: Mapping[str, str]) -> tuple[str, int]:
    """Return a value, of which parts may be joined by ``#``, and where it ends."""
    parts: list[str] = []
    while True:
        if text.startswith(("{", '"'), at):
            end = _closing(text, at)
            parts.append(text[at + 1 : end])
            at = end + 1
        elif bare := _BARE.match(text, at):
            parts.append(strings.get(bare.group().lower(), bare.group()))
            at = bare.end()
        join = _JOIN.match(text, at)
        if join is None:
            return "".join(parts), at
        at = join.end()


def _closing(text: str, at: int) -> int:
    """Return where a value ends that begins with a brace or a quotation mark."""
    depth = 0
    is_quoted = text[at] == '"'
    for sign in (_QUOTE if is_quoted else _BRACE).finditer(text, at + 1):
        if sign.group() == "{":
            depth += 1
        elif sign.group() == '"' and depth == 0:
            return sign.start()
        elif sign.group() == "}":
            if depth == 0:
                return sign.start()
            depth -= 1
    return len(text)


def _as_record(fields: dict[str, str]) -> dict[str, object]:
    record: dict[str, object] = {}
    for name, value in fields.items():
        if name in _NAMES:
            names = [_given_first(part) for part in _AND.split(value)]
            record[name] = names if len(names) > 1 else names[0]
        else:
            record[name] = value if name in _KEYS else one_line(latex_text(value))
    return record


def _given_first(written: str) -> str:
    family, comma, given = written.partition(",")
    name = f"{given.rpartition(',')[2]} {family}" if comma else family
    return one_line(latex_text(name))


BIBTEX = FileFormat(read_bibtex, versions.of("bibliographies", "records", "LaTeX"), SMALL_RECORDS)
