"""Records of a table become documents, by the same rule in every record format."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from graphrag_pipeline.core.records import field_head, field_line, field_words, name_columns
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.ingest.reading import fields as by_column
from graphrag_pipeline.ingest.reading.blocks import Block
from graphrag_pipeline.ingest.reading.cell_markup import plain_records
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

_ENVELOPES = {(word,) for word in word_lists("nlp_records.txt")["envelope"]}
_FIELD_NAMES = frozenset(("name", "key", "label", "Name", "Key"))
_SHOWN_VALUES = ("display_value", "displayValue")
_FIELD_VALUES = ("value", "Value")
_KEYS = frozenset(("id", "gid", "uuid"))
_LONGEST_NAME = 60
_MOST_NUMBERS, _DEEPEST_NUMBERS = 30, 3
_LARGEST_INTEGER = 2**63
_END = object()
_SAID_TO_READ = 10


@dataclass(frozen=True)
class NoRecord:
    """No record, in the place of one: the reason why."""

    problem: str


@dataclass(frozen=True)
class _Parts:
    """One record by what its columns are in the document.

    ``fields`` are all values but that of the text column, the title first.
    """

    key: str
    title: str
    text: str
    has_text_column: bool
    rest: dict[str, object]
    fields: list[tuple[str, object]]
    title_path: str = ""


@dataclass(frozen=True)
class _Written:
    """One record as read: a text with its blocks, title, key and metadata."""

    text: str
    blocks: tuple[Block, ...]
    title: str = ""
    key: str = ""
    metadata: dict[str, Scalar] = field(default_factory=dict)


def read_records(
    path: Path,
    values: Iterable[object],
    options: ReadingOptions,
    beside: Mapping[str, Scalar] | None = None,
    *,
    numbers: Sequence[int] = (),
    none: str = "the file holds no records",
) -> ReadResult:
    """Return a document for each record, and each bad record with its reason.

    A record is an object or bare text; without ``numbers`` they are counted from 1. Where there is
    none, ``none`` is the reason that is raised.

    Where no record has a text column, the text of each is all its values as "column: value"
    lines, so that nothing is lost; metadata are then its plain values, if it has a title. Where
    one has, the lines of fields that name something follow the text. Without a column for titles
    or ids, those are taken whose values tell the records apart: see `fields`. ``beside`` is
    metadata of every record, which its own go before.
    """
    records = plain_records(list(values))
    if not records:
        raise Unreadable(none)
    _require_bounded(len(records) * sum(len(str(v)) for v in (beside or {}).values()), options)
    parts = [_parts(record, options) for record in records]
    in_column = any(part.has_text_column for part in parts)
    written = _written(parts, options, in_column=in_column, infer=True)
    keys = unique_keys(
        part.key or fields.key or f"row-{number}"
        for number, part, fields in zip(
            numbers or range(1, len(records) + 1), parts, written, strict=True
        )
    )
    documents: list[ReadDocument] = []
    quarantined: list[Quarantined] = []
    for key, record, part, fields in zip(keys, records, parts, written, strict=True):
        text, blocks = _text(record, part, fields, in_column)
        if not text:
            quarantined.append(Quarantined(key, why_empty(record, options, in_column)))
            continue
        title = part.title or fields.title or f"{readable_name(path)}: {key}"
        own = _scalars(part.rest) if in_column else fields.metadata
        metadata = clean_metadata({**(beside or {}), **own})
        documents.append(ReadDocument(key, title, text, metadata, blocks))
    return ReadResult(documents, quarantined)


def enveloped_records(
    value: Mapping[str, object], options: ReadingOptions
) -> tuple[list[object], dict[str, Scalar]] | None:
    """Return the records of an object that is but their envelope, and what stands beside them.

    That is an object without a text, title or id of its own that holds one array of objects, and
    the array is called as in an envelope, ``data`` or ``results``, or nothing beside it is a name;
    or an object that holds nothing but such an object. None where it is a record itself.
    """
    special = {*options.text_columns, *options.title_columns, *options.id_columns}
    names = {column.casefold() for column in special}
    while not names & {one_line(str(name)).casefold() for name in value}:
        arrays = [name for name, item in value.items() if _objects(item)]
        if len(arrays) == 1:
            beside = {name: item for name, item in value.items() if name != arrays[0]}
            is_called_so = field_words(arrays[0])[-1:] in _ENVELOPES
            named = (text for item in beside.values() for _, text in _leaves(item, ""))
            if is_called_so or not any(map(_may_name, named)):
                return _objects(value[arrays[0]]), _scalars(beside)
            return None
        inner = list(value.values())
        if len(inner) != 1 or not isinstance(inner[0], dict):
            return None
        value = inner[0]
    return None


def linked_tables(value: Mapping[str, object]) -> dict[str, list[object]]:
    """Return the arrays of an object that are tables of a database; none where they are not.

    That is where two or more hold objects that each have an ``id``, and a field called as one of
    the arrays holds ids of it: the cards of a board with the ``idList`` of its ``lists``.
    """
    arrays = {str(name): rows for name, item in value.items() if (rows := _objects(item))}
    tables = {
        name: rows
        for name, rows in arrays.items()
        if all(isinstance(row, Mapping) and isinstance(row.get("id"), str | int) for row in rows)
    }
    ids = {
        field_words(name)[-1:]: {row["id"] for row in rows if isinstance(row, Mapping)}
        for name, rows in tables.items()
    }
    if len(tables) < 2:
        return {}
    rows = chain.from_iterable(tables.values())
    fields = ((str(name), item) for row in rows for name, item in _children(row) or ())
    for field_name, item in fields:
        keys = item if isinstance(item, list) else [item]
        others = ids.get((field_head(field_name),), ())
        if any(isinstance(key, str | int) and key in others for key in keys):
            return tables
    return {}


def _objects(item: object) -> list[object]:
    """Return the items of an array that holds objects alone."""
    return item if isinstance(item, list) and all(isinstance(i, Mapping) for i in item) else []


def _may_name(item: object) -> bool:
    return isinstance(item, str) and not item.islower() and any(map(str.isalpha, item))


def read_object(path: Path, value: Mapping[str, object], options: ReadingOptions) -> ReadResult:
    """Return the one document that an object which is a whole file makes."""
    value = plain_records([value])[0]
    part = _parts(value, options)
    in_column = part.has_text_column
    fields = _written([part], options, in_column=in_column, infer=False)[0]
    text, blocks = _text(value, part, fields, in_column)
    if not text:
        raise Unreadable("the object holds no text")
    metadata = _scalars(part.rest) if in_column else fields.metadata
    if part.key and in_column:
        metadata = {"id": part.key, **metadata}
    return whole_document(path, text, part.title, metadata, blocks)


def _written(
    parts: Sequence[_Parts], options: ReadingOptions, *, in_column: bool, infer: bool
) -> list[_Written]:
    """Write the fields of all records, each in the light of its columns in the whole file."""
    lines = by_column.lines_of(_lines(parts, options))
    columns = by_column.decide_columns(lines, len(parts))
    titles = {number: part.title for number, part in enumerate(parts) if part.title}
    keys: Mapping[int, str] = {}
    if infer and not in_column and not titles:
        lines, named = by_column.with_titles(lines, columns)
        titles = dict(named.iter_rows())
    if infer and not any(part.key for part in parts):
        keys = dict(by_column.values_of(lines, columns.key).iter_rows())
    if in_column:
        lines = by_column.said_beside_text(lines, columns)
    texts = {row[0]: row[1:] for row in by_column.record_texts(lines, columns).iter_rows()}
    written: list[_Written] = []
    for number, part in enumerate(parts):
        text, starts, ends, kinds = texts.get(number, ("", (), (), ()))
        is_named = number in titles and not in_column
        written.append(
            _Written(
                text=text,
                blocks=tuple(map(Block, starts, ends, kinds)),
                title=titles.get(number, ""),
                key=keys.get(number, ""),
                metadata=_scalars(_plain_fields(part.rest, columns)) if is_named else {},
            )
        )
    return written


def _lines(
    parts: Sequence[_Parts], options: ReadingOptions
) -> Iterator[tuple[int, str, str, bool]]:
    size = 0
    for number, part in enumerate(parts):
        for name, item in part.fields:
            for path, value in _leaves(item, name):
                size += len(path) + len(value)
                _require_bounded(size, options)
                yield number, path, value, path == part.title_path


def _require_bounded(size: int, options: ReadingOptions) -> None:
    if size > most_said(options):
        raise Unreadable(too_much_said(options))


def most_said(options: ReadingOptions) -> int:
    """Return how many characters the fields of a file's records may be, with their names."""
    return _SAID_TO_READ * options.max_file_bytes


def too_much_said(options: ReadingOptions) -> str:
    """Return what is said of records whose fields, with their names, are more than that."""
    return (
        "the names of its fields, said with each value, make it a text of more than "
        f"{most_said(options):,} characters, ten times input.max_file_mb "
        f"({options.max_file_bytes / 1e6:g}): shorten them"
    )


def _plain_fields(values: Mapping[str, object], columns: by_column.Columns) -> dict[str, object]:
    """Return the fields that name nothing by themselves: numbers, dates, codes."""
    return {
        name: item
        for name, item in values.items()
        if columns.roles.get(one_line(str(name)), "value") in ("value", "key")
        and _children(item) is None
    }


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


def filled(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields that hold something, of a list of one thing that.

    >>> filled({"name": "Ada", "child": ["Ida"], "note": []})
    {'name': 'Ada', 'child': 'Ida'}
    """
    return {
        name: value[0] if isinstance(value, list) and len(value) == 1 else value
        for name, value in fields.items()
        if value
    }


def leaves(value: object) -> str:
    """Return every non-empty value inside, each as a "path: value" line, in order."""
    return "\n".join(field_line(path, text) for path, text in _leaves(value, ""))


def _leaves(value: object, name: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of every non-empty value inside, in order."""
    if isinstance(value, str):
        if text := clean_text(value):
            yield name, text
        return
    within: list[Iterator[tuple[str, object]]] = [iter(((name, value),))]
    while within:
        path, item = next(within[-1], ("", _END))
        if item is _END:
            within.pop()
        elif numbers := _numbers(item):
            yield path, numbers
        elif isinstance(item, list) and len(item) == 1 and _children(item[0]) is None:
            within.append(iter(((path, item[0]),)))
        elif (inner := _children(item)) is not None:
            within.append(_below(path, inner))
        elif text := clean_text(_plain(item)):
            yield path, text


def _numbers(value: object, depth: int = 0) -> str:
    """Return an array of numbers alone, or of such arrays, on one line: places, vectors.

    Of very many the first are said.
    """
    if not isinstance(value, list) or not value or depth > _DEEPEST_NUMBERS:
        return ""
    said: list[str] = []
    for item in value[:_MOST_NUMBERS]:
        is_number = isinstance(item, int | float) and not isinstance(item, bool)
        text = _plain(item) if is_number else _numbers(item, depth + 1)
        if not text:
            return ""
        said.append(text)
    more = len(value) - len(said)
    return ", ".join(said) + (f" and {more:,} more" if more else "")


def _below(path: str, inner: Iterable[tuple[str, object]]) -> Iterator[tuple[str, object]]:
    """Yield what is inside a value, with the path to it: one by one, for paths may be long."""
    for name, child in inner:
        yield f"{path}.{name}" if path else name, child


def _children(value: object) -> list[tuple[str, object]] | None:
    if isinstance(value, Mapping):
        return [(one_line(str(name)), child) for name, child in value.items()]
    if isinstance(value, list | tuple):
        if pairs := _named_values(value):
            return pairs
        return [(str(number), child) for number, child in enumerate(value, 1)]
    return None


def _named_values(items: Sequence[object]) -> list[tuple[str, object]]:
    """Return the fields that an array gives as objects of a name and a value each, if it does.

    What else an object says, but for its keys, stands with the value.

    >>> _named_values([{"name": "Priority", "value": "High", "id": 7}])
    [('Priority', 'High')]
    >>> _named_values([{"name": "Iron", "value": 9, "unit": "mg"}])
    [('Iron', {'value': 9, 'unit': 'mg'})]
    """
    fields: dict[str, object] = {}
    for item in items:
        if not isinstance(item, Mapping):
            return []
        keys = item.keys()
        name = item[next(iter(_FIELD_NAMES & keys))] if len(_FIELD_NAMES & keys) == 1 else None
        value = next((key for key in (*_SHOWN_VALUES, *_FIELD_VALUES) if key in keys), None)
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or value is None:
            return []
        said = {key: item[key] for key in item if key not in _FIELD_NAMES | _KEYS}
        is_alone = value in _SHOWN_VALUES or len(said) == 1
        fields[one_line(name)] = item[value] if is_alone else said
    return list(fields.items()) if len(fields) == len(items) else []


def _parts(value: object, options: ReadingOptions) -> _Parts:
    if not isinstance(value, Mapping):
        text = value if isinstance(value, str) else ""
        items = _children(value) if isinstance(value, list | tuple) else None
        return _Parts("", "", text, False, {}, items or [])
    names = {one_line(str(name)).casefold(): str(name) for name in value}
    has_text_column = any(column.casefold() in names for column in options.text_columns)
    text = _first(value, names, options.text_columns)
    title = _first(value, names, options.title_columns)
    key = _first(value, names, options.id_columns)
    special = {text, title, key}
    fields = [
        (one_line(str(name)), item)
        for name, item in value.items()
        if name != title and not (has_text_column and name in (text, key))
    ]
    name_of_title, more = _called(value.get(title), options)
    title_path = one_line(title or "")
    if title:
        fields[:0] = [(title_path, name_of_title), *([(title_path, more)] if more else [])]
    elif (in_two := _in_two_columns(value, names)) and any(item for _, item in in_two):
        name_of_title, title_path = " ".join(item for _, item in in_two if item), "name"
        halves = {one_line(name) for name, _ in in_two}
        fields = [(name, item) for name, item in fields if name not in halves]
        fields.insert(0, (title_path, name_of_title))
    return _Parts(
        key=_called(value.get(key), options)[0],
        title=name_of_title,
        text=clean_text(_prose(value.get(text))),
        has_text_column=has_text_column,
        rest={name: item for name, item in value.items() if name not in special},
        fields=fields,
        title_path=title_path if name_of_title else "",
    )


def _called(name: object, options: ReadingOptions) -> tuple[str, object]:
    """Return a name or key as text, and what else it says where it is an object.

    >>> _called({"first": "Ada", "last": "Berg", "nick": "Adi"}, ReadingOptions())
    ('Ada Berg', {'nick': 'Adi'})
    >>> _called({"common": "Kelm", "official": "Free Port of Kelm"}, ReadingOptions())
    ('Kelm', {'official': 'Free Port of Kelm'})
    """
    if not isinstance(name, Mapping):
        return one_line(_prose(name)), None
    names = {one_line(str(part)).casefold(): part for part in name}
    said = [(part, text) for part, text in _in_two_columns(name, names) if text]
    if not said:
        texts = (part for part, item in name.items() if isinstance(item, str) and item.strip())
        part = _first(name, names, (*options.title_columns, *_SHOWN_VALUES, *_FIELD_VALUES))
        part = next(texts, None) if part is None else part
        said = [(part, one_line(_prose(name[part])))] if part is not None else []
    used = {part for part, _ in said}
    text = " ".join(text for _, text in said) or one_line(next(_leaves(name, ""), ("", ""))[1])
    return text, {part: i for part, i in name.items() if part not in used and i != text}


def _in_two_columns(value: Mapping[str, object], names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the columns of given and family name, where a record has both, and their values."""
    columns = name_columns(tuple(names))
    return [(names[name], one_line(_prose(value[names[name]]))) for name in filter(None, columns)]


def _first(
    value: Mapping[str, object], names: Mapping[str, str], columns: Sequence[str]
) -> str | None:
    """Return the first of the columns that has something in it."""
    for column in columns:
        name = names.get(column.casefold())
        if name is not None and clean_text(_prose(value[name])):
            return name
    return None


def _text(
    value: object, part: _Parts, fields: _Written, in_column: bool
) -> tuple[str, tuple[Block, ...]]:
    """Return the text of a record and its blocks."""
    if isinstance(value, str):
        return clean_text(value), ()
    if not in_column or not isinstance(value, Mapping):
        return fields.text, fields.blocks
    if not part.text or not fields.text:
        return part.text, ()
    room = len(part.text) + 2
    return f"{part.text}\n\n{fields.text}", tuple(block.moved(room) for block in fields.blocks)


def why_empty(value: object, options: ReadingOptions, in_column: bool) -> str:
    """Return why a record has no document; ``in_column``: others of its file have a text column."""
    if isinstance(value, NoRecord):
        return value.problem
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
