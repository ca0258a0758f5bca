"""Files of records: csv, json, jsonl and parquet."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, dropwhile, islice, takewhile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.lazy import LazyModule
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.turned_tables import turned
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.blocks import Block
from graphrag_pipeline.ingest.reading.chat_tables import chat_in_rows
from graphrag_pipeline.ingest.reading.chats import conversations_in
from graphrag_pipeline.ingest.reading.cleaning import clean_text, one_line
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.library_records import csl_entries
from graphrag_pipeline.ingest.reading.line_blocks import line_blocks
from graphrag_pipeline.ingest.reading.markdown_markup import without_files
from graphrag_pipeline.ingest.reading.model import (
    SMALL_RECORDS,
    FileFormat,
    Quarantined,
    ReadDocument,
    ReadingOptions,
    ReadResult,
    Unreadable,
    joined,
    readable_name,
    whole_document,
)
from graphrag_pipeline.ingest.reading.note_marks import without_page_addresses
from graphrag_pipeline.ingest.reading.record_columns import read_columns
from graphrag_pipeline.ingest.reading.records import (
    NoRecord,
    enveloped_records,
    leaves,
    linked_tables,
    read_object,
    read_records,
    unique_keys,
)
from graphrag_pipeline.ingest.reading.table_head import (
    LOOKED_AT,
    MOST_NOTES,
    Spans,
    TableHead,
    as_lines,
    begins_table,
    head_of,
    is_note,
    is_prose,
    names_numbers,
    names_of_all,
    notes_below,
)
from graphrag_pipeline.ingest.reading.tables_beside import side_by_side
from graphrag_pipeline.store.sources import SLACK_LISTS

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
else:
    pl, pa = LazyModule("polars"), LazyModule("pyarrow")

_DELIMITERS = ",;\t|"
_DIRECTIVE = pattern_of(r'"?sep=([,;\t|])"?\n', re.IGNORECASE)
"""Excel's line above a table that says how it is separated."""
_CAPTION, _NOTE_FIELD = "caption", "Comment"
_FEWEST_COLUMNS, _MOST_ABOVE = 2, 3
_NEARLY_ALL = 0.9
_MOST_REREAD = 20
_TOP = 20 * LOOKED_AT
MOST_GAPS = 50
_LOOKED_THROUGH = 100_000
_ROWS_AT_ONCE = 10_000
_MOST_ROWS = 1_000_000  # about 1.5 kB each
_MOST_PADDED = 10_000_000
_MOST_NAMED = 1_000  # records that say again what stands above their table
_LETTER_ESCAPE = pattern_of(r"((?<!\\)(?:\\\\)*)\\([nrtN])")
_OF_LETTERS = {"n": " ", "r": "", "t": " ", "N": ""}
_ESCAPED_BYTES = pattern_of(r"(?:\\u00[c-f][0-9a-f](?:\\u00[89ab][0-9a-f]){1,3})+", re.I)
_SURROGATES = pattern_of("[\ud800-\udfff]")


def read_csv(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read a table separated by comma, semicolon, tab or bar; :func:`head_of` tells its head.

    A row with more fields than the table has columns is quarantined, as its text was cut at a
    separator that is not quoted; so is a row with broken quotes. Columns without a name are
    numbered. Lines above the table, in one cell each or before a blank line, and notes below it are
    a document of their own, "caption". Of tables below each other, an empty row between, each has
    its own columns: see :func:`begins_table`; so have tables beside each other.
    """
    text = without_page_addresses(without_files(decode(data, options.encoding))).replace("\0", "")
    text = text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\n")
    text = _SURROGATES.sub("", text)
    csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
    directive = _DIRECTIVE.match(text)
    text = text[directive.end() :] if directive else text
    usual = "\t" if path.suffix.lower() == ".tsv" else ","
    delimiter = directive[1] if directive else _delimiter(text, usual)
    return one_below_other(
        _read_table(path, table, delimiter, options) for table in _tables(text, delimiter)
    )


def one_below_other(tables: Iterable[ReadResult]) -> ReadResult:
    """Return tables of one file or sheet as one result: keys of the second begin "table-2!"."""
    first, *others = tables
    below = [table.under(f"table-{number}!") for number, table in enumerate(others, 2)]
    return joined([first, *below]) if others else first


def _tables(text: str, delimiter: str) -> list[str]:
    tables, start = [], 0
    gaps = re.finditer(rf"\n(?:[ {re.escape(delimiter)}]*\n)+", text)
    for gap in islice(gaps, MOST_GAPS):
        above, below = text[start : gap.start()], text[gap.end() : gap.end() + _LOOKED_THROUGH]
        if above.count('"') % 2 == 0 and begins_table(
            *(_sound(t, delimiter) for t in (above, below))
        ):
            tables.append(above)
            start = gap.end()
    return [*tables, text[start:]]


def _sound(text: str, delimiter: str) -> list[list[str]]:
    """Return the first rows whose quotes match."""
    rows = islice(_rows(_top(text), delimiter), LOOKED_AT)
    return [row for row in rows if not isinstance(row, str)]


def _read_table(path: Path, text: str, delimiter: str, options: ReadingOptions) -> ReadResult:
    text, below = _below(text, delimiter)
    above, text = _above(text, delimiter)
    escapes = _has_escapes(text, delimiter)
    text = _written_escapes(text) if escapes else text
    is_plain = '"' not in text and not escapes
    rows = _rows(_top(text) if is_plain else text.split("\n"), delimiter, escapes=escapes)
    first = list(islice(rows, LOOKED_AT))
    if first and isinstance(first[0], str):
        raise Unreadable(f"the header is broken: {first[0]}")
    sound = takewhile(lambda row: not isinstance(row, str), first)
    whole = [row for row in sound if not isinstance(row, str)]
    if len(whole) == len(first) and (fields := _labelled(whole)):
        return whole_document(path, fields).under(f"{_CAPTION}!")
    if len(whole) == len(first) < LOOKED_AT and turned(whole):
        return with_captions(path, [*above, *below], read_part(path, whole, (), options))
    if beside := _beside(text, delimiter, escapes, whole):
        read = one_below_other([read_part(path, part, (), options) for part in beside])
        return with_captions(path, [*above, *below], read)
    head = head_of(whole)
    names = _header(_with_row_names(head.names, whole) or [""] * max(map(len, whole), default=0))
    problems: dict[int, str] = {}
    if is_plain:
        cells = _unquoted_cells(text, delimiter, head.n_rows, names, problems)
    else:
        _require_cells(len(names), text.count("\n"), len(text))
        cells = _cells(chain(first[head.n_rows :], rows), names, problems)
    captions = [*above, *head.captions, *below]
    is_bare = not captions and not problems
    if is_bare and (chat := chat_in_rows(path, names, cells.iter_rows(named=True))):
        return chat
    return with_captions(path, captions, read_columns(path, cells, problems, options))


def _with_row_names(names: Sequence[str], rows: Sequence[list[str]]) -> Sequence[str]:
    """Return the names of columns, one more where R writes names of rows below none."""
    widths = {len(row) for row in rows[1:]}
    return ["", *names] if names and widths == {len(names) + 1} == {len(rows[0]) + 1} else names


def _labelled(rows: Sequence[list[str]]) -> str:
    """Return rows of a label with a colon and a value as lines of fields; "" of all others.

    Banks write so whose the table below is, and of when.
    """
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    pairs = [row for row in cells if len(row) == _FEWEST_COLUMNS and row[0].endswith(":")]
    is_all = len(pairs) == len(cells) < LOOKED_AT
    return "\n".join(f"{label} {value}" for label, value in pairs) if is_all else ""


def _beside(
    text: str, delimiter: str, escapes: bool, first: Sequence[list[str]]
) -> list[list[list[str]]]:
    """Return the rows of each of the tables beside each other in a text, if it has several."""
    if len(list(side_by_side([*first]))) < 2:
        return []
    rows = list(_rows(text.split("\n"), delimiter, escapes=escapes))
    whole = [row for row in rows if not isinstance(row, str)]
    parts = [part for part, _ in side_by_side(whole)]
    return parts if len(parts) > 1 and len(whole) == len(rows) else []


def _written_escapes(text: str) -> str:
    """Return text in which no escape is but that of a separator, a quote or a backslash.

    Databases write the end of a line, a tab and NULL as a backslash and a letter.
    """
    return _LETTER_ESCAPE.sub(lambda match: match[1] + _OF_LETTERS[match[2]], text)


def _above(text: str, delimiter: str) -> tuple[list[str], str]:
    """Part what stands above a table, before a blank line, though it has separators, too.

    It is written as text, with a blank after its separators where the rows have none; or it has
    another number of cells than the line below, and that names columns of numbers.
    """
    above, gap, rest = text.partition("\n\n")
    lines = above.split("\n")
    spaced = f"{delimiter} "
    is_whole = gap and above.count('"') % 2 == 0
    if not is_whole or len(lines) > _MOST_ABOVE or delimiter not in above:
        return [], text
    rows = _sound(rest, delimiter)
    if len(rows) < _FEWEST_COLUMNS or len(rows[0]) < _FEWEST_COLUMNS:
        return [], text
    is_prose = spaced in above and spaced not in rest[: len(above) + _TOP]
    is_of_table = lines[-1].count(delimiter) + 1 == len(rows[0])
    if not is_prose and (is_of_table or not names_numbers(rows)):
        return [], text
    if '"' in above:
        lines = as_lines([row for row in _rows(lines, delimiter) if not isinstance(row, str)])
    return lines, rest.lstrip("\n")


def _below(text: str, delimiter: str) -> tuple[str, list[str]]:
    """Part the notes below a table from it: see :func:`notes_below`.

    After a blank line a note may hold separators.
    """
    end = text.rstrip("\n")
    table, gap, last = end.rpartition("\n\n")
    lines = last.split("\n")
    is_whole = gap and last.count('"') % 2 == 0
    if is_whole and len(lines) <= MOST_NOTES and all(map(is_note, lines)):
        return table, lines
    start = len(end)
    for _ in range(LOOKED_AT):
        start = max(end.rfind("\n", 0, start), 0)
    rows = [r for r in _rows(end[start:].split("\n"), delimiter) if not isinstance(r, str)]
    if not (n_notes := notes_below(rows)):
        return text, []
    notes = as_lines(rows[-n_notes:])
    lines = end.split("\n")
    while n_notes:
        n_notes -= bool(lines.pop().strip(f"{delimiter} "))
    return "\n".join(lines), notes


def read_part(
    path: Path,
    rows: list[list[str]],
    spans: Spans,
    options: ReadingOptions,
    notes: Mapping[int, str] = MappingProxyType({}),
) -> ReadResult:
    """Read the table of some rows of any length, and what stands around it: :func:`read_csv`.

    Notes on rows, by their places, are a field of these, and lines above the table by its head.
    """
    filled = [place for place, row in enumerate(rows) if any(map(str.strip, row))]
    rows = [rows[place] for place in filled]
    notes = {n: notes[place] for n, place in enumerate(filled) if place in notes}
    if on_side := turned(rows):
        captions, rows = on_side
        return _read_rows(path, TableHead([*captions, *notes.values()], rows[0], 1), rows, options)
    if is_prose(rows):
        return whole_document(path, "\n".join([*as_lines(rows), *notes.values()])).under(
            f"{_CAPTION}!"
        )
    head = head_of(rows[:LOOKED_AT], spans)
    head, rows = _with_notes(head, rows, notes)
    if n_notes := notes_below(rows[head.n_rows :]):
        captions = [*head.captions, *as_lines(rows[-n_notes:])]
        head, rows = replace(head, captions=captions), rows[:-n_notes]
    try:
        return _read_rows(path, head, rows, options)
    except Unreadable as error:
        return with_captions(path, head.captions, ReadResult([], [Quarantined("", str(error))]))


def _with_notes(
    head: TableHead, rows: list[list[str]], notes: Mapping[int, str]
) -> tuple[TableHead, list[list[str]]]:
    """Return a table with a last column of notes on its rows, if there are any."""
    own = {place: note for place, note in notes.items() if place >= head.n_rows}
    captions = [*head.captions, *(note for place, note in notes.items() if place not in own)]
    if not own:
        return replace(head, captions=captions), rows
    width = max(map(len, rows))
    names = [*head.names, *[""] * (width - len(head.names)), _NOTE_FIELD]
    noted = [
        [*row, *[""] * (width - len(row)), note] if (note := own.get(place)) else row
        for place, row in enumerate(rows)
    ]
    return replace(head, captions=captions, names=names), noted


def _read_rows(
    path: Path, head: TableHead, rows: Sequence[list[str]], options: ReadingOptions
) -> ReadResult:
    names = [*head.names, *[""] * (max(map(len, rows)) - len(head.names))]
    _require_cells(len(names), len(rows), sum(len(cell) for row in rows for cell in row))
    cells = _cells(iter(rows[head.n_rows :]), _header(names), {})
    return with_captions(path, head.captions, read_columns(path, cells, {}, options))


def with_captions(path: Path, captions: Sequence[str], table: ReadResult) -> ReadResult:
    """Return a table, and the lines above it as a document, unless one is called so already."""
    if not captions or any(document.key == _CAPTION for document in table.documents):
        return table
    caption = ReadDocument(_CAPTION, readable_name(path), clean_text("\n".join(captions)))
    documents = table.documents
    if (named := "\n".join(names_of_all(captions))) and len(documents) <= _MOST_NAMED:
        documents = [_with_names(document, named) for document in documents]
    return ReadResult([caption, *documents], table.quarantined)


def _with_names(document: ReadDocument, named: str) -> ReadDocument:
    """Return a record that says, too, whose or of what all of its table is."""
    start = len(document.text) + 1
    block = Block(start, start + len(named), "field")
    return replace(document, text=f"{document.text}\n{named}", blocks=(*document.blocks, block))


def _require_cells(columns: int, rows: int, size: int) -> None:
    """Raise Unreadable where most cells are only those that short rows lack."""
    if columns * rows > max(size, _MOST_PADDED):
        raise Unreadable(
            f"the table has {columns:,} columns and {rows:,} rows, and hardly a cell is filled"
        )


def _header(names: Sequence[str]) -> list[str]:
    return unique_keys(one_line(name) or f"column-{number}" for number, name in enumerate(names, 1))


def _unquoted_cells(
    text: str, delimiter: str, n_head: int, names: Sequence[str], problems: dict[int, str]
) -> pl.DataFrame:
    """Return what :func:`_cells` does, of a table without quotes: a line is a row."""
    lines = pl.Series([text]).str.split("\n").explode()
    lines = lines.filter(lines.str.contains(rf"[^\s\x1c-\x1f\x{ord(delimiter):02x}]"))
    _require_cells(len(names), len(lines), len(text))
    parts = lines[n_head:].str.split(delimiter)
    for number in (parts.list.len() > len(names)).arg_true():
        _as_wide(parts[number].to_list(), len(names), number, problems)
    is_bad = pl.int_range(pl.len()).is_in(list(problems))
    cells = [parts.list.get(place, null_on_oob=True).alias(n) for place, n in enumerate(names)]
    return pl.DataFrame(cells, schema=dict.fromkeys(names, pl.String)).with_columns(
        pl.when(~is_bad).then(pl.col(name)).alias(name) for name in names if problems
    )


def _cells(
    rows: Iterator[list[str] | str], names: Sequence[str], problems: dict[int, str]
) -> pl.DataFrame:
    """Return rows as columns of their names, and write down the ``problems`` of those with any."""
    schema = dict.fromkeys(names, pl.String)
    frames = [pl.DataFrame(schema=schema)]
    n_rows = 0
    while part := list(islice(rows, _ROWS_AT_ONCE)):
        wide = [_as_wide(row, len(names), n, problems) for n, row in enumerate(part, n_rows)]
        columns = [list(column) for column in zip(*wide, strict=True)]
        frames.append(pl.DataFrame(columns, schema=schema, orient="col"))
        n_rows += len(part)
    return pl.concat(frames)


def _as_wide(
    row: list[str] | str, width: int, number: int, problems: dict[int, str]
) -> Sequence[str | None]:
    if isinstance(row, str):
        problems[number] = row
        return [None] * width
    if len(row) == width:
        return row
    while len(row) > width and not row[-1].strip():
        row.pop()
    if len(row) > width:
        counts = f"{len(row)} fields where the header has {width}"
        problems[number] = (
            f"{counts}: quote the field that holds the separator, or name all columns in the header"
        )
        return [None] * width
    return [*row, *[None] * (width - len(row))]


def _rows(
    lines: Sequence[str], delimiter: str, *, escapes: bool = False
) -> Iterator[list[str] | str]:
    """Yield each row that is not blank, or what is wrong with it.

    A quote that is never closed would swallow the rest of the file: only its line is given up.
    """
    position = reread = 0
    while position < len(lines):
        reader = csv.reader(
            (lines[n] + "\n" for n in range(position, len(lines))),
            delimiter=delimiter,
            doublequote=not escapes,
            escapechar="\\" if escapes else None,
            strict=True,
        )
        read = 0
        try:
            for row in reader:
                read = reader.line_num
                if any(map(str.strip, row)):
                    yield row
            return
        except csv.Error as error:
            reread += reader.line_num - read
            position += read + 1
            problem = f"the quotes in line {position} do not match ({error})"
            if reread > _MOST_REREAD * len(lines):
                yield f"{problem}: it and all after it were given up"
                return
            yield problem


def _delimiter(text: str, default: str) -> str:
    """Return the separator that splits the first rows into the most equal columns."""
    scores = {delimiter: _columns(text, delimiter) for delimiter in _DELIMITERS}
    best = max(scores.values())
    return (
        default if scores[default] == best else max(scores, key=lambda candidate: scores[candidate])
    )


def _columns(text: str, delimiter: str) -> tuple[float, int]:
    """Return which share of the first rows has as many columns as most have, and that number.

    Lines above a table do not count, where nearly all below have as many columns.
    """
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    widths = [len(row) for row in islice(reader, LOOKED_AT) if row]
    usual = Counter(width for width in widths if width >= _FEWEST_COLUMNS).most_common(1)
    table = list(dropwhile(lambda width: width != usual[0][0], widths)) if usual else []
    share = Counter(table)[table[0]] / len(table) if table else 0.0
    is_below = len(table) < len(widths)
    if not table or (is_below and (share < _NEARLY_ALL or len(table) < _FEWEST_COLUMNS)):
        return 0.0, 0
    return share * len(table) / len(widths), table[0]


def _top(text: str) -> list[str]:
    """Return the lines in which the first rows are looked for."""
    return text.split("\n", _TOP)[:_TOP]


def _has_escapes(text: str, delimiter: str) -> bool:
    """Whether more of the first rows are whole where a backslash keeps the character after it.

    MySQL writes so where it writes NULL as a backslash and N.
    """
    mark = re.escape(delimiter)
    if "\\N" in text and re.search(rf"(?:^|{mark})\\N(?:{mark}|$)", text, re.M):
        return True
    if not any(f"\\{kept}" in text for kept in ('"', delimiter)):
        return False
    lines = _top(text)
    plain, escaped = (
        list(islice(_rows(lines, delimiter, escapes=escapes), LOOKED_AT))
        for escapes in (False, True)
    )
    return _n_whole(escaped) > _n_whole(plain)


def _n_whole(rows: Sequence[list[str] | str]) -> int:
    """Return how many rows have as many fields as the first."""
    return sum(not isinstance(row, str) and len(row) == len(rows[0]) for row in rows)


def read_jsonl(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one JSON value a line; a record without id is named by its line number."""
    text = without_files(decode(data, options.encoding))
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    numbered = {number: line for number, line in enumerate(lines, 1) if line.strip(" \t\n\0")}
    records = [*map(_json_record, numbered.values())]
    return _chat(path, records) or read_records(path, records, options, numbers=[*numbered])


def _chat(path: Path, records: Sequence[object]) -> ReadResult | None:
    rows = [record for record in records if isinstance(record, dict)]
    if not rows or len(rows) < len(records):
        return None
    return chat_in_rows(path, [*rows[0]], rows)


def _json_record(line: str) -> object:
    try:
        return json.loads(line)
    except RecursionError:
        return NoRecord("the JSON is nested too deeply")
    except ValueError as error:
        return NoRecord(f"the line is not valid JSON ({error})")


def read_json(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one object or string as one document, an array as one document an item.

    So are the items of the array of objects that an object is but the envelope of, as in
    ``{"data": [...], "count": 2}``; what stands beside it is metadata of each. An export of chats
    is a document for each conversation. A file with a value
    a line is read as JSON lines, whatever its ending says.
    """
    if path.name in SLACK_LISTS:
        options = replace(options, title_columns=("real_name", *options.title_columns))
    text = without_files(decode(data, options.encoding))
    if "\\u00c" in text or "\\u00e2" in text:
        text = _ESCAPED_BYTES.sub(_of_escaped_bytes, text)
    try:
        value: Any = json.loads(text)
    except RecursionError:
        raise Unreadable("the JSON is nested too deeply") from None
    except ValueError as error:
        if _has_value_a_line(text):
            return read_jsonl(path, data, options)
        raise Unreadable(f"the file is not valid JSON ({error})") from None
    return read_value(path, value, options, "JSON")


def _of_escaped_bytes(match: re.Match[str]) -> str:
    """Return the signs whose bytes in UTF-8 are written as a sign each, as Meta exports them."""
    try:
        return bytes.fromhex(match.group().replace("\\u00", "")).decode()
    except ValueError:
        return match.group()


def read_value(path: Path, value: object, options: ReadingOptions, kind: str) -> ReadResult:
    """Read what a whole file of values is, as :func:`read_json` says; `kind` is what it is in."""
    if conversations := conversations_in(value, options.slack_day):
        return _as_chats(conversations)
    if isinstance(value, list):
        chat = _chat(path, value)
        return chat or read_records(path, csl_entries(value) or value, options)
    if isinstance(value, dict):
        arrays = [item for item in value.values() if isinstance(item, list)]
        if len(arrays) == 1 and (conversations := conversations_in(arrays[0])):
            return _as_chats(conversations)
        if tables := linked_tables(value):
            return _read_tables(path, value, tables, options)
        if enveloped := enveloped_records(value, options):
            items, beside = enveloped
            if conversations := conversations_in(items):
                return _as_chats(conversations)
            return read_records(path, items, options, beside)
        return read_object(path, value, options)
    if isinstance(value, str):
        return whole_document(path, value, blocks=line_blocks(value, markdown=False))
    raise Unreadable(f"the {kind} is a bare value, not text, an object or an array")


def _as_chats(conversations: Sequence[ReadDocument]) -> ReadResult:
    keys = unique_keys(document.key for document in conversations)
    named = [replace(d, key=key) for d, key in zip(conversations, keys, strict=True)]
    return ReadResult(named, [])


def _read_tables(
    path: Path,
    value: Mapping[str, object],
    tables: Mapping[str, list[object]],
    options: ReadingOptions,
) -> ReadResult:
    """Read the tables of an object, each by itself, and what it says beside them as one more."""
    read = [
        read_records(Path(f"{name}.json"), rows, options).under(f"{name}!")
        for name, rows in tables.items()
    ]
    rest = {name: item for name, item in value.items() if name not in tables}
    if leaves(rest):
        read.append(read_object(path, rest, options).under("about!"))
    return joined(read)


def _has_value_a_line(text: str) -> bool:
    first, _, rest = text.strip().partition("\n")
    return bool(rest) and not isinstance(_json_record(first), NoRecord)


def read_parquet(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read a parquet table, one document a row, as long as it unpacks within `max_file_bytes`."""
    import pyarrow.parquet as pq

    records: list[object] = []
    room = options.max_file_bytes
    try:
        with pq.ParquetFile(pa.BufferReader(data)) as table:
            if table.metadata.num_rows > _MOST_ROWS:
                raise Unreadable(f"the table has more than {_MOST_ROWS:,} rows: divide it")
            for batch in table.iter_batches(batch_size=1_000):
                room -= batch.nbytes + sum(map(_referred_to, batch.columns))
                if room < 0:
                    raise Unreadable(f"the table unpacks to more than {options.allowed}")
                records += _with_plain_times(batch).to_pylist()
    except MemoryError:
        raise
    except (pa.ArrowException, OSError) as error:
        details = one_line(str(error)[:200])
        raise Unreadable(f"the parquet file is damaged, or it is not one ({details})") from None
    return read_records(path, records, options)


def _referred_to(column: Any) -> int:
    """Return the bytes of the texts that the cells of a column refer to in its dictionary."""
    from pyarrow import compute

    if not pa.types.is_dictionary(column.type):
        return 0
    texts = column.dictionary
    is_text = pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)
    if not is_text:
        return 0
    lengths = compute.call_function("binary_length", [texts]).cast(pa.int64())
    total = compute.call_function("sum", [lengths.take(column.indices)])
    return total.as_py() or 0


def _with_plain_times(batch: Any) -> Any:
    """Return the batch with dates and times as text, which Python could not always hold."""
    for position, column in enumerate(batch.schema):
        if pa.types.is_temporal(column.type):
            text = batch.column(position).cast(pa.string())
            batch = batch.set_column(position, column.name, text)
    return batch


CSV = FileFormat(read_csv, versions.of("records"), SMALL_RECORDS)
JSON = FileFormat(read_json, versions.of("records"), SMALL_RECORDS)
JSONL = FileFormat(read_jsonl, versions.of("records"), SMALL_RECORDS)
PARQUET = FileFormat(read_parquet, versions.of("records"))
