"""Printing on the command line: results to standard output, remarks to standard error.

Whatever is printed goes through here, and control characters in it go nowhere.

On a terminal lines are wrapped, those of a list's items below their first words, and tables fit its
width; a file or a pipe gets every value whole.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from graphrag_pipeline.core.errors import DeclinedError, InputError, RemovalError
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.rows import printable, to_json

_MOST_ROWS = 200
_NARROWEST = 10
_MARK_OF_ITEM = pattern_of(r" *(?:(?:[-*]|\d{1,3}[.)]|[a-zA-Z]{1,5}\)) )?")


def say(text: str = "", style: str | None = None) -> None:
    """Print a text on standard output, wrapped at words on a terminal."""
    _write(text, style, may_wrap=True)


def say_whole(text: str, style: str | None = None) -> None:
    """Print lines that must be copied in one piece: the terminal may break them, we never do."""
    _write(text, style, may_wrap=False)


def fact(name: str, value: str) -> None:
    """Print a name and, in a column of its own, a value."""
    say_whole(f"{name:<11}{value}")


def more(number: int, how: str = "") -> None:
    """Say how many of a list are not shown, if any."""
    if number > 0:
        say(f"  and {number:,} more{how}", style="dim")


def note(text: str) -> None:
    """Print a remark on standard error, where it does not mix with results.

    Nothing depends on it: where nobody reads them any more, this one and later ones are dropped.
    """
    try:
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def note_error(text: str) -> None:
    """Print what went wrong on standard error, each line marked as that."""
    for line in text.splitlines():
        if line.strip():
            note(f"error: {line}")


def confirm(why: str, see: str) -> None:
    """Ask whether to spend what ``why`` says; ``see`` is the command that says on what.

    Raises InputError if the answer is no, or if there is nobody to ask.
    """
    import typer

    if not sys.stdin.isatty():
        raise InputError(f"{why}: see {see}, then run it again with --yes")
    if not typer.confirm("Go on?", err=True):
        raise DeclinedError("nothing was started and nothing was spent")


def confirm_removal(error: RemovalError) -> None:
    """Ask whether the documents that are gone are to be removed; where nobody is there, raise."""
    import typer

    if not sys.stdin.isatty():
        raise error
    note(str(error))
    if not typer.confirm("Remove them?", err=True):
        raise DeclinedError("nothing was removed")


def show_json(value: object) -> None:
    """Print a value as JSON."""
    sys.stdout.write(to_json(value) + "\n")


def show_rows(names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows as a table; of very many only the first."""
    is_cut = table(names, rows[:_MOST_ROWS])
    sys.stdout.flush()
    if not rows:
        note("no rows")
    if len(rows) > _MOST_ROWS:
        note(f"first {_MOST_ROWS} of {len(rows):,} rows; --format csv or json gives all")
    elif is_cut:
        note("long values are cut; --format csv or json gives them whole")


def table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> bool:
    """Print a table; return whether values were cut to fit a terminal."""
    from graphrag_pipeline.cli import tables

    text, is_cut = tables.render(names, rows, is_terminal=sys.stdout.isatty())
    sys.stdout.write(text)
    return is_cut


def write(piece: str) -> None:
    """Print a piece of a text at once."""
    sys.stdout.write(printable(piece))
    sys.stdout.flush()


def _write(text: str, style: str | None, *, may_wrap: bool) -> None:
    text = printable(text)
    if not sys.stdout.isatty():
        sys.stdout.write(f"{text}\n")
        return
    from rich.console import Console
    from rich.text import Text

    screen = Console()
    if not may_wrap:
        return screen.print(Text(text), style=style, soft_wrap=True)
    for line in text.split("\n"):
        begin = _MARK_OF_ITEM.match(line)[0]  # type: ignore[index]
        width = max(_NARROWEST, screen.width - len(begin))
        for part in Text(line[len(begin) :]).wrap(screen, width):
            part.rstrip()
            screen.print(Text(begin) + part, style=style)
            begin = " " * len(begin)
