"""Rows of SQL results as text: CSV or JSON."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, TextIO

Row = Sequence[object]

_CONTROL = {code: " " for code in (*range(32), *range(127, 160))}


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
    text = json.dumps(plain(value), ensure_ascii=False, indent=2)
    return text.encode("utf-8", "replace").decode()


def records(names: Sequence[str], rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return rows as mappings; of columns of one name the later ones are numbered."""
    unique: list[str] = []
    for name in names:
        number, free = 1, name
        while free in unique:
            number, free = number + 1, f"{name}_{number}"
        unique.append(free)
    return [dict(zip(unique, row, strict=True)) for row in rows]


def write_csv(file: TextIO, names: Sequence[str], rows: Sequence[Row]) -> None:
    """Write rows as CSV with a header; structs and lists as JSON."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([as_text(value) for value in row] for row in rows)


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
    """Return a text without line breaks and control characters."""
    return " ".join(text.translate(_CONTROL).split())


def _key(name: object) -> str:
    return name if isinstance(name, str) else str(plain(name))
