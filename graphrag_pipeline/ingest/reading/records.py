"""Records of a table become documents, by the same rule in every record format."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphrag_pipeline.ingest.reading.cleaning import clean_text, one_line
from graphrag_pipeline.ingest.reading.model import (
    Quarantined,
    ReadDocument,
    ReadingOptions,
    ReadResult,
    Scalar,
    Unreadable,
    clean_metadata,
    readable_name,
    whole_document,
)

_LARGEST_INTEGER = 2**63


@dataclass(frozen=True)
class FileRecord:
    """One record: its 1-based number, its value (an object, or bare text), or why it has none."""

    number: int
    value: object = None
    problem: str = ""


@dataclass(frozen=True)
class _Columns:
    """The values of one record by their part in the document."""

    key: str
    title: str
    text: str
    has_text_column: bool
    rest: dict[str, object]


def read_records(path: Path, records: Sequence[FileRecord], options: ReadingOptions) -> ReadResult:
    """Return a document for each record, and each bad record with its reason.

    Where no record has a text column, the text of each is all its values as "column: value"
    lines, so that nothing is lost; metadata are then empty.
    """
    if not records:
        raise Unreadable("the file holds no records")
    split = [_columns(record.value, options) for record in records]
    keys = unique_keys(
        part.key or f"row-{record.number}" for part, record in zip(split, records, strict=True)
    )
    in_column = any(part.has_text_column for part in split)
    result = ReadResult([], [])
    for key, record, part in zip(keys, records, split, strict=True):
        text = _text(record.value, part, in_column)
        if record.problem or not text:
            reason = record.problem or _why_empty(record.value, options, in_column)
            result.quarantined.append(Quarantined(key, reason))
            continue
        title = part.title or f"{readable_name(path)}: {key}"
        metadata = clean_metadata(_scalars(part.rest)) if in_column else {}
        result.documents.append(ReadDocument(key, title, text, metadata))
    return result


def read_object(path: Path, value: Mapping[str, object], options: ReadingOptions) -> ReadResult:
    """Return the one document that an object which is a whole file makes."""
    part = _columns(value, options)
    text = part.text if part.has_text_column else leaves(value)
    if not clean_text(text):
        raise Unreadable("the object holds no text")
    metadata = _scalars(part.rest) if part.has_text_column else {}
    if part.key and part.has_text_column:
        metadata = {"id": part.key, **metadata}
    return whole_document(path, text, part.title, metadata)


def unique_keys(keys: Iterable[str]) -> list[str]:
    """Return the keys, repeated ones told apart in their order.

    >>> unique_keys(["x", "x", "x~2"])
    ['x', 'x~3', 'x~2']
    """
    names = list(keys)
    in_use, earlier = set(names), set[str]()
    next_number: dict[str, int] = {}
    unique: list[str] = []
    for key in names:
        if key in earlier:
            number = next_number.get(key, 2)
            while f"{key}~{number}" in in_use:
                number += 1
            next_number[key] = number + 1
            key = f"{key}~{number}"
            in_use.add(key)
        earlier.add(key)
        unique.append(key)
    return unique


def leaves(value: object) -> str:
    """Return every non-empty value inside, each as a "path: value" line, in order."""
    lines: list[str] = []
    pending: list[tuple[str, object]] = [("", value)]
    while pending:
        path, item = pending.pop()
        inner = _children(item)
        if inner is not None:
            children = ((f"{path}.{name}" if path else name, child) for name, child in inner)
            pending.extend(reversed(list(children)))
        elif text := clean_text(_plain(item)):
            lines.append(f"{path}: {text}" if path else text)
    return "\n".join(lines)


def _children(value: object) -> list[tuple[str, object]] | None:
    if isinstance(value, Mapping):
        return [(one_line(str(name)), child) for name, child in value.items()]
    if isinstance(value, list | tuple):
        return [(str(number), child) for number, child in enumerate(value, 1)]
    return None


def _columns(value: object, options: ReadingOptions) -> _Columns:
    if not isinstance(value, Mapping):
        return _Columns("", "", value if isinstance(value, str) else "", False, {})
    names = {one_line(str(name)).casefold(): str(name) for name in value}
    text = _first(value, names, options.text_columns)
    title = _first(value, names, options.title_columns)
    key = _first(value, names, options.id_columns)
    special = {text, title, key}
    return _Columns(
        key=one_line(_prose(value.get(key))),
        title=one_line(_prose(value.get(title))),
        text=clean_text(_prose(value.get(text))),
        has_text_column=any(column.casefold() in names for column in options.text_columns),
        rest={name: item for name, item in value.items() if name not in special},
    )


def _first(
    value: Mapping[str, object], names: Mapping[str, str], columns: Sequence[str]
) -> str | None:
    """Return the first of the columns that has something in it."""
    for column in columns:
        name = names.get(column.casefold())
        if name is not None and clean_text(_prose(value[name])):
            return name
    return None


def _text(value: object, part: _Columns, in_column: bool) -> str:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return part.text if in_column else leaves(value)
    return leaves(value) if isinstance(value, list) else ""


def _why_empty(value: object, options: ReadingOptions, in_column: bool) -> str:
    if isinstance(value, Mapping) and in_column:
        return f"no text in any of the columns {', '.join(options.text_columns)}"
    if isinstance(value, Mapping | str | list):
        return "the record holds no text"
    return f"the record is a bare value ({value!r:.40}), not text or an object"


def _prose(value: object) -> str:
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return "\n\n".join(value)
    return leaves(value) if isinstance(value, Mapping | list | tuple) else _plain(value)


def _plain(value: object) -> str:
    if value is None or isinstance(value, bytes | bytearray | memoryview):
        return ""
    if isinstance(value, float) and math.isnan(value):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


def _scalars(values: Mapping[str, object]) -> dict[str, Scalar]:
    return {str(name): _scalar(value) for name, value in values.items()}


def _scalar(value: object) -> Scalar:
    """Return a value that JSON can hold; "" for what is to be left out."""
    if isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, int) and -_LARGEST_INTEGER <= value < _LARGEST_INTEGER:
        return value
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=_plain) if value else ""
    return _plain(value)
