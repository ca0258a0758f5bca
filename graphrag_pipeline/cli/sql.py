"""`sql`: one statement on the published index, or a session of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import OfRelease, Raw, prints, settings_here
from graphrag_pipeline.cli.lines import Lines
from graphrag_pipeline.core.errors import GraphRAGError, InputError
from graphrag_pipeline.core.rows import records, write_csv

if TYPE_CHECKING:
    from graphrag_pipeline.marts.sql import PublishedSql

_HELP = (
    "A statement ends with a semicolon and may take several lines. Ctrl-C stops it. .tables says "
    "what there is, .quit or Ctrl-D ends the session."
)
_STOPPED = "stopped"
_SECONDS_TO_STOP = 0.05
_QUIT = (".quit", ".exit", "quit", "exit")
_COMMANDS = (".tables", ".help", *_QUIT)


class RowFormat(StrEnum):
    """Formats in which `sql` prints rows."""

    table = "table"
    csv = "csv"
    json = "json"


@dataclass(frozen=True)
class Result:
    """Rows of a statement, and how to print them."""

    names: Sequence[str]
    rows: Sequence[Sequence[object]]
    format: RowFormat
    raw: bool


@dataclass(frozen=True)
class Shell:
    """A session of statements on one release, each printed in one format."""

    home: Path
    release: str | None
    format: RowFormat
    raw: bool

    def run(self) -> None:
        """Take statements until the end of input; one that fails is told of, and the next is taken.

        Ends with an exit code where a statement of a pipe failed.
        """
        from graphrag_pipeline.marts.sql import PublishedSql

        with PublishedSql(self.home, self.release) as published:
            names = [str(row[0]) for row in published.tables()[1]]
            lines = Lines(lambda: (*_COMMANDS, *names))
            if lines.are_typed:
                console.note(_HELP)
            failures = sum(not self._take(published, each) for each in _statements(lines))
        if failures and not lines.are_typed:
            raise typer.Exit(InputError.exit_code)

    def _take(self, published: PublishedSql, statement: str) -> bool:
        """Do what a statement or a command asks for; return whether it could be done."""
        if statement == ".help":
            console.note(_HELP)
            return True
        try:
            names, rows = _rows(published, statement)
            _tell_if_behind(self.home, statement)
            show(Result(names, rows, self.format, self.raw))
        except GraphRAGError as error:
            console.note_error(str(error))
            return False
        except KeyboardInterrupt:
            console.note(_STOPPED)
        return True


def show(result: Result | Shell) -> None:
    """Print rows in their format, or take statements and print the rows of each."""
    if isinstance(result, Shell):
        result.run()
    elif result.format is RowFormat.json:
        console.show_json(_records(result))
    elif result.format is RowFormat.csv:
        write_csv(sys.stdout, result.names, result.rows, raw=result.raw)
    else:
        console.show_rows(result.names, result.rows)
    sys.stdout.flush()


def _records(result: Result | Shell) -> list[dict[str, object]]:
    if isinstance(result, Shell):
        raise InputError("--json needs a statement: add one, or use --format json")
    return records(result.names, result.rows)


@prints(show, _records)
def sql(
    statement: Annotated[
        str | None, typer.Argument(help="One SQL statement; without one, a session starts.")
    ] = None,
    release: OfRelease = None,
    output: Annotated[
        RowFormat, typer.Option("--format", "-f", help="How to print the rows.")
    ] = RowFormat.table,
    raw: Raw = False,
) -> Result | Shell:
    """Run SQL on the published release, read-only. The marts are there as marts.NAME.

    Macros answer common questions: "FROM neighbors('X')", "FROM evidence('X', 'Y')".
    "FROM macros" lists them, each with an example; SHOW TABLES lists the tables.
    """
    from graphrag_pipeline.marts.build import asks_for_marts
    from graphrag_pipeline.marts.sql import PublishedSql

    home = settings_here().home_path
    if statement is None:
        return Shell(home, release, output, raw)
    with PublishedSql(home, release, marts=asks_for_marts(statement)) as published:
        names, rows = _rows(published, statement)
    _tell_if_behind(home, statement)
    return Result(names, rows, output, raw)


def _statements(lines: Lines) -> Iterator[str]:
    """Yield the statements and commands of a session, until its end."""
    from graphrag_pipeline.marts.sql import split_statements

    begun = ""
    while True:
        try:
            line = lines.read("...> " if begun else "sql> ")
        except KeyboardInterrupt:
            console.note("")
            begun = ""
            continue
        command = "" if begun or line is None else line.strip().lower()
        if line is None or command in _QUIT:
            break
        if command in _COMMANDS:
            yield command
            continue
        begun += f"{line}\n"
        if ";" in line:
            statements, begun = split_statements(begun)
            yield from statements
        begun = begun if begun.strip() else ""
    if begun:
        yield begun


def _rows(published: PublishedSql, statement: str) -> tuple[list[str], list[tuple[object, ...]]]:
    """Return the rows of a statement or of .tables, which Ctrl-C stops.

    DuckDB in the main thread would not hear of Ctrl-C before some statements end.
    """
    from graphrag_pipeline.query.control import Control

    if statement == ".tables":
        return published.tables()
    control = Control()
    with ThreadPoolExecutor(1) as elsewhere:
        running = elsewhere.submit(published.query, statement, control=control)
        try:
            return running.result()
        except KeyboardInterrupt:
            while not running.done():
                control.stop(_STOPPED)
                wait([running], timeout=_SECONDS_TO_STOP)
            raise


def _tell_if_behind(home: Path, statement: str) -> None:
    from graphrag_pipeline.marts.build import marts_behind

    if behind := marts_behind(home, statement):
        console.note(behind)
