"""Values as text that a terminal, a spreadsheet or another program can be given: CSV, JSON, SQL.

Names of files, documents and what models write are not to be trusted: a control character moves a
terminal's cursor, an override of direction shows one name for another (CVE-2021-42574), and a
spreadsheet runs what begins with ``=`` (OWASP: CSV injection).
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, TextIO

from graphrag_pipeline.core.patterns import pattern_of

Row = Sequence[object]

# Lines of their own, then what sets the direction of writing from here on.
_SEPARATORS = (0x2028, 0x2029)
_DIRECTIONS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROL = {
    **dict.fromkeys((*range(32), *range(127, 160), *_SEPARATORS), " "),
    **dict.fromkeys(_DIRECTIONS, "\ufffd"),
}
_SHOWN = {code: sign.strip() for code, sign in _CONTROL.items() if chr(code) not in "\n\t"}
UNSEEN = "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
"""Characters that are not shown but do something, as a regular expression; not line ends, tabs."""
FORMULA = r"^[=+\-@\t\r＝＋－＠]"
"""The first character of a text that spreadsheets calculate, as a regular expression."""
_UNSEEN, _FORMULA = pattern_of(UNSEEN), pattern_of(FORMULA)


def plain(value: object) -> Any:
    """Return a value as JSON can hold it: a number that is none becomes null."""
    if isinstance(value, Mapping):
        return {_key(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "backslashreplace")
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def to_json(value: object) -> str:
    """Return a value as indented JSON that any terminal and file can hold."""
    return _any_can_hold(json.dumps(plain(value), ensure_ascii=False, indent=2))


def to_json_line(value: object) -> str:
    """Return a value as one line of such JSON."""
    return _any_can_hold(json.dumps(plain(value), ensure_ascii=False))


def records(names: Sequence[str], rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return rows as mappings; of columns of one name the later ones are numbered."""
    unique: list[str] = []
    for name in names:
        number, free = 1, name
        while free in unique:
            number, free = number + 1, f"{name}_{number}"
        unique.append(free)
    return [dict(zip(unique, row, strict=True)) for row in rows]


def write_csv(
    file: TextIO, names: Sequence[str], rows: Sequence[Row], *, raw: bool = False
) -> None:
    """Write rows as CSV with a header; structs and lists as JSON.

    Unless ``raw``, a text that a spreadsheet would calculate has an apostrophe before it, and what
    is not shown but does something is U+FFFD.
    """
    cell = as_text if raw else _inert
    plainly = csv.writer(file, lineterminator="\n")
    # A carriage return alone ends a line for readers, which Python's writer does not heed.
    in_quotes = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in (names, *rows):
        cells = [cell(value) for value in row]
        (in_quotes if "\r" in "".join(cells) else plainly).writerow(cells)


def as_text(value: object) -> str:
    """Return a value as one cell of text holds it: nested values as JSON, NULL as nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(plain(value), ensure_ascii=False)
    if isinstance(value, float | Decimal):
        return str(value)
    return str(plain(value))


def one_line(text: str) -> str:
    """Return a text as one line that any terminal can be given."""
    return " ".join(text.translate(_CONTROL).split())


def printable(text: str) -> str:
    """Return a text of many lines that any terminal can be given."""
    return text.translate(_SHOWN)


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many characters, the last a sign that there are more."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def sql_literal(text: str | Path) -> str:
    """Return a text as a literal of SQL, quotes around it, which nothing in it can end."""
    return "'" + str(text).replace("'", "''") + "'"


def _inert(value: object) -> str:
    text = _UNSEEN.sub("\ufffd", as_text(value))
    return f"'{text}" if isinstance(value, str) and _FORMULA.match(text) else text


def _any_can_hold(encoded: str) -> str:
    """Return JSON in which what is not shown but does something is escaped, as JSON can."""
    escaped = _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded)
    return escaped.encode("utf-8", "replace").decode()


def _key(name: object) -> str:
    return name if isinstance(name, str) else str(plain(name))
