"""Rows of SQL results as text: a table that fits the terminal, CSV, or JSON."""

from __future__ import annotations

import csv
import json
import math
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, TextIO

from rich.cells import cell_len, set_cell_size

Row = Sequence[object]

_GAP = "  "
_NARROWEST = 12
_MOST_LINES = 6
_MORE = " …"
_CONTROL = {code: " " for code in (*range(32), 127)}


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


def layout(
    names: Sequence[str], rows: Sequence[Row], width: int | None = None
) -> tuple[list[str], bool]:
    """Return the lines of a table no wider than the terminal, and whether values were cut.

    A table that would leave its columns too narrow to read is set as one block per row.
    """
    width = width or shutil.get_terminal_size().columns
    cells = [[one_line(_shown(value)) for value in row] for row in rows]
    heads = [one_line(name) for name in names]
    wanted = [
        max(cell_len(head), *(cell_len(row[i]) for row in cells)) if cells else cell_len(head)
        for i, head in enumerate(heads)
    ]
    cap = _widest_that_fits(wanted, width - len(_GAP) * (len(wanted) - 1))
    if cap < min(_NARROWEST, max(wanted, default=0)):
        return _blocks(heads, cells, width)
    widths = [min(w, cap) for w in wanted]
    right = [
        bool(rows) and all(_is_number(row[i]) or row[i] is None for row in rows)
        for i in range(len(heads))
    ]
    lines = [
        _GAP.join(_fit(cell, w, r) for cell, w, r in zip(row, widths, right, strict=True)).rstrip()
        for row in [heads, *cells]
    ]
    return lines, any(w > cap for w in wanted)


def _widest_that_fits(wanted: Sequence[int], room: int) -> int:
    cap = max(wanted, default=0)
    while cap and sum(min(w, cap) for w in wanted) > room:
        cap -= 1
    return cap


def _fit(cell: str, width: int, right: bool) -> str:
    if cell_len(cell) > width:
        return set_cell_size(set_cell_size(cell, width - 1).rstrip() + "…", width)
    space = " " * (width - cell_len(cell))
    return space + cell if right else cell + space


def _blocks(
    heads: Sequence[str], cells: Sequence[Sequence[str]], width: int
) -> tuple[list[str], bool]:
    label = min(max(map(cell_len, heads), default=0), width // 3)
    indent = " " * (label + len(_GAP))
    lines: list[str] = []
    is_cut = False
    for number, row in enumerate(cells, 1):
        lines += ["", f"row {number}"] if lines else [f"row {number}"]
        for head, cell in zip(heads, row, strict=True):
            parts = _wrapped(cell, max(width - len(indent), 20))
            is_cut |= parts[-1].endswith(_MORE)
            lines.append((_fit(head, label, False) + _GAP + parts[0]).rstrip())
            lines += [indent + part for part in parts[1:]]
    if not cells:
        lines += textwrap.wrap(_GAP.join(heads), width)
    return lines, is_cut


def _wrapped(cell: str, width: int) -> list[str]:
    """Return a cell's first lines; what must be copied in one piece (a path, an id) stays so."""
    parts = textwrap.wrap(
        cell[: _MOST_LINES * width + 1], width, break_long_words=False, break_on_hyphens=False
    )
    if len(cell) > _MOST_LINES * width or len(parts) > _MOST_LINES:
        return [*parts[: _MOST_LINES - 1], " ".join(parts[_MOST_LINES - 1 : _MOST_LINES]) + _MORE]
    return parts or [""]


def _shown(value: object) -> str:
    if isinstance(value, datetime):
        zone = " UTC" if value.tzinfo else ""
        return value.replace(tzinfo=None).isoformat(sep=" ", timespec="seconds") + zone
    if isinstance(value, float) and value and 1e-3 <= abs(value) < 1e9:
        return f"{value:.4f}".rstrip("0").rstrip(".")
    if isinstance(value, float):
        return f"{value:.6g}"
    return as_text(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _key(name: object) -> str:
    return name if isinstance(name, str) else str(plain(name))


def print_rows(names: Sequence[str], rows: Sequence[Row]) -> bool:
    """Print a table on standard output; return whether values were cut to fit."""
    lines, is_cut = layout(names, rows)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return is_cut
