"""Rows as tables, laid out by rich: as wide as a terminal, or as wide as their values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from graphrag_pipeline.core.rows import as_text, one_line

Row = Sequence[object]

_GAP = 2
_NARROWEST = 12
_MOST_LINES = 6
_UNLIMITED = 10**7


def render(names: Sequence[str], rows: Sequence[Row], *, is_terminal: bool) -> tuple[str, bool]:
    """Return a table as text, and whether values were cut to fit the terminal.

    A table that would leave its columns too narrow to read is set as one block per row.
    """
    console = Console(width=None if is_terminal else _UNLIMITED, force_terminal=is_terminal)
    heads = [one_line(name) for name in names]
    cells = [[one_line(_shown(value)) for value in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(heads, *cells, strict=True)]
    room = console.width - _GAP * (len(widths) - 1)
    with console.capture() as captured:
        if sum(min(width, _NARROWEST) for width in widths) > room:
            longest = _MOST_LINES * console.width
            is_cut = any(len(cell) > longest for row in cells for cell in row)
            _print_blocks(console, heads, cells, longest)
        else:
            is_cut = sum(widths) > room
            console.print(_table(heads, rows, cells))
    lines = captured.get().splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines), is_cut


def _table(heads: Sequence[str], rows: Sequence[Row], cells: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False)
    for place, head in enumerate(heads):
        is_numeric = all(row[place] is None or _is_number(row[place]) for row in rows)
        table.add_column(_cell(head), justify="right" if rows and is_numeric else "left")
    for row in cells:
        table.add_row(*map(_cell, row))
    return table


def _cell(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")


def _print_blocks(
    console: Console, heads: Sequence[str], cells: Sequence[Sequence[str]], longest: int
) -> None:
    """Print a line for each value; the terminal breaks it, so that a path is copied as it is."""
    label = max(map(cell_len, heads))
    for number, row in enumerate(cells, 1):
        if number > 1:
            console.print()
        console.print(Text(f"row {number}"))
        for head, cell in zip(heads, row, strict=True):
            line = Text(head)
            line.pad_right(label + _GAP - line.cell_len)
            line.append(cell if len(cell) <= longest else f"{cell[:longest]} …")
            console.print(line, soft_wrap=True)
    if not cells:
        console.print(Text("  ".join(heads)))


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
