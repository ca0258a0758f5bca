"""RIS, in which databases and reference managers give bibliographies: each entry is a record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_pairs
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.cleaning import one_line, with_newlines
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.model import (
    SMALL_RECORDS,
    FileFormat,
    ReadingOptions,
    ReadResult,
)
from graphrag_pipeline.ingest.reading.records import filled, read_records

_LINE = pattern_of(r"([A-Z][A-Z0-9])  ?-(?: (.*)|$)")
_NAMES = word_pairs("fields.txt", "ris")
_KINDS = word_pairs("fields.txt", "ris_kind")
_SEVERAL = ("author", "editor", "keywords")
_YEAR = pattern_of(r"(\d{4})(?:/(\d{1,2})?)?(?:/(\d{1,2})?)?(?:/.*)?")


def read_ris(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read each entry as a record with the fields that BibTeX has, names given name first."""
    text = with_newlines(decode(data, options.encoding))
    none = "the file has no entries, as TY  - BOOK"
    return read_records(path, _entries(text), options, none=none)


def _entries(text: str) -> Iterator[dict[str, object]]:
    entry: list[tuple[str, str]] = []
    for line in text.split("\n"):
        match = _LINE.match(line.lstrip("\ufeff"))
        if match is None:
            if entry and line.strip():
                entry[-1] = (entry[-1][0], f"{entry[-1][1]} {line}")
            continue
        if match[1] in ("TY", "ER") and entry:
            yield _as_record(entry)
            entry = []
        if match[1] != "ER":
            entry.append((match[1], match[2] or ""))
    if entry and entry[0][0] == "TY":
        yield _as_record(entry)


def _as_record(entry: list[tuple[str, str]]) -> dict[str, object]:
    record: dict[str, object] = {}
    for tag, written in entry:
        value, name = one_line(written), _NAMES.get(tag, "")
        if tag == "TY":
            record["type"] = _KINDS.get(value, value.lower())
        elif name in _SEVERAL and value:
            listed = record.setdefault(name, [])
            assert isinstance(listed, list)
            listed.append(value if name == "keywords" else _given_first(value))
        elif name and value:
            record.setdefault(name, _day(value) if name in ("year", "date") else value)
    return filled(record)


def _given_first(name: str) -> str:
    family, comma, given = name.partition(",")
    given, _, suffix = given.strip().partition(",")
    return one_line(f"{given} {family} {suffix}") if comma else name


def _day(written: str) -> str:
    """Return a date of RIS, 2021/05/03/Spring, as others are written: 2021-05-03."""
    match = _YEAR.fullmatch(written)
    if match is None:
        return written
    return "-".join([match[1], *(part.zfill(2) for part in match.groups()[1:] if part)])


RIS = FileFormat(read_ris, versions.of("references", "records"), SMALL_RECORDS)
