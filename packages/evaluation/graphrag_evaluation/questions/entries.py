"""The entries of a file of questions, one after the other, each with its place in the file."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from graphrag_pipeline.core.errors import InputError

_LINES = (".jsonl", ".ndjson")
_PACKED = ".gz"
BOOKS = "bookmeta.json"
"""NovelQA's list of its books, beside their questions."""
_LISTED = ("question", "query", "questions", "general_query_list", "specific_query_list", "data")
"""Fields of an object that is an entry, or holds a list of them; others hold entries by key."""


def file_type(path: Path) -> str:
    """Return how a file's name ends, without ``.gz``."""
    packed = path.suffix.lower() == _PACKED
    return Path(path.stem if packed else path.name).suffix.lower()


def question_files(path: Path) -> list[Path]:
    """Return the files of questions that a path is or holds, in order; bookmeta.json is none."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*.json") if file.name != BOOKS)
    if not files:
        raise InputError(f"{path} holds no .json: name a file of questions, or their folder")
    return files


def entries(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield each entry with its place: in a list by number, in lines by the line's.

    Lines are read one by one, so that a file may be larger than the memory; ``.gz`` is unpacked on
    the way. Raises InputError for what cannot be read, with the place.
    """
    try:
        with _opened(path) as file:
            yield from _entries(path, file)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start}): save it as UTF-8") from None
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {reason}") from None


def text_of(path: Path) -> str:
    """Return the text of a file. Raises InputError where it cannot be read."""
    try:
        with _opened(path) as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start}): save it as UTF-8") from None
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {reason}") from None


def _opened(path: Path) -> TextIO:
    if path.suffix.lower() == _PACKED:
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="\n")
    return path.open(encoding="utf-8-sig", newline="\n")


def _entries(path: Path, file: TextIO) -> Iterator[tuple[str, Any]]:
    suffix = file_type(path)
    if suffix in (".csv", ".tsv"):
        yield from _table(path, file.read())
    elif suffix in _LINES:
        yield from _lines_or_list(path, file)
    else:
        yield from _whole(path, file.read())


def _lines_or_list(path: Path, file: TextIO) -> Iterator[tuple[str, Any]]:
    """Yield the entries of lines; ODSum's queries.jsonl is one list all the same."""
    first = next(file, "")
    if first.lstrip().startswith("["):
        yield from _whole(path, first + file.read())
    else:
        yield from _lines(path, chain([first], file))


def _whole(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        if not str(error).startswith("Extra data"):
            raise InputError(f"{path} is not valid JSON: {error}") from None
        yield from _lines(path, text.split("\n"))
        return
    if isinstance(whole, Mapping) and isinstance(whole.get("data"), list):
        whole = whole["data"]
    if isinstance(whole, Mapping) and _is_keyed(whole):
        yield from ((f"entry {key}", entry) for key, entry in whole.items())
        return
    for number, entry in enumerate(whole if isinstance(whole, list) else [whole], 1):
        yield f"entry {number}", entry


def _is_keyed(whole: Mapping[str, Any]) -> bool:
    """Say whether an object holds entries by key, as NovelQA and ODSum do, and is none itself."""
    is_entry = any(name in whole for name in _LISTED)
    return bool(whole) and not is_entry and all(isinstance(v, Mapping) for v in whole.values())


def _lines(path: Path, lines: Iterator[str] | list[str]) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}, line {number}: not valid JSON: {error}") from None
            # In ODSum's stories a line has the questions of one.
            for n, each in enumerate(entry if isinstance(entry, list) else [entry], 1):
                place = f"line {number}"
                yield (f"{place}, {n}" if isinstance(entry, list) else place), each


def _table(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    file = io.StringIO(text, newline="")
    rows = csv.DictReader(file, delimiter=_delimiter(path, text), strict=True)
    place = "line 1"
    while True:
        try:
            # A row may go over several lines: what is told is its first.
            place = f"line {rows.line_num + 1}" if rows.fieldnames else place
            row = next(rows, None)
        except csv.Error as error:
            raise InputError(f"{path}, {place}: no row of a table: {error}") from None
        if row is None:
            return
        yield place, {name: _cell(path, place, cell) for name, cell in row.items() if name}


def _delimiter(path: Path, text: str) -> str:
    """Return what separates cells: spreadsheets write semicolons where a comma is decimal."""
    if file_type(path) == ".tsv":
        return "\t"
    header = text.partition("\n")[0]
    return ";" if ";" in header and "," not in header else ","


def _cell(path: Path, place: str, cell: str | None) -> Any:
    if not cell or cell[0] not in "[{":
        return cell
    try:
        return json.loads(cell)
    except ValueError as error:
        raise InputError(f"{path}, {place}: a cell is not valid JSON: {error}") from None
