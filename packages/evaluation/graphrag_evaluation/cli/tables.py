"""`eval tables`: the tables of a paper, filled from an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import prints, settings_here
from graphrag_pipeline.core.errors import InputError

if TYPE_CHECKING:
    from graphrag_evaluation.presets.tables import PaperTable

_HERE, _PAPER = "here", "paper"


def show_tables(tables: Sequence[PaperTable], *, is_brief: bool = False) -> None:
    """Print tables as the paper has them: what was measured, then the paper's own figures.

    Where it is brief without these; of tables that nothing was measured for, only the reason. A
    note that several tables have is printed once.
    """
    notes: set[str] = set()
    for table in tables:
        if is_brief and table.is_empty:
            continue
        console.say()
        if not table.columns:
            console.say(f"{table.number}: {'; '.join(table.notes)}")
            continue
        console.say(f"{table.number}: {table.title}")
        rows = [
            (source, label, name, *(_cell(cell, table.decimals) for cell in cells))
            for source, part in (
                (_HERE, table.measured),
                (_PAPER, () if is_brief else table.printed),
            )
            for label, name, cells in part
        ]
        if rows:
            width = len(table.columns) + 3
            filled = [(*row, *["-"] * (width - len(row))) for row in rows]
            console.show_rows(("", "", "", *table.columns), filled)
        for note in table.notes:
            if note not in notes:
                console.note(note)
        notes.update(table.notes)
    if is_brief:
        _show_empty(tables)


def _show_empty(tables: Sequence[PaperTable]) -> None:
    """Say which tables have nothing, by the reason."""
    numbers: dict[str, list[str]] = {}
    for table in tables:
        if table.is_empty and table.columns:
            numbers.setdefault("; ".join(table.notes[-1:]), []).append(table.number)
    if numbers:
        console.say()
    for reason, group in numbers.items():
        console.note(f"{', '.join(group)}: {reason}")


def _cell(cell: float | str | None, decimals: int) -> str:
    if cell is None:
        return "-"
    return cell if isinstance(cell, str) else f"{cell:,.{decimals}f}"


@prints(show_tables)
def tables(
    experiment: Annotated[
        str | None, typer.Argument(help="An experiment by a preset (default: the latest).")
    ] = None,
    number: Annotated[
        str, typer.Option("--table", "-t", help='Only these, such as "Table 2,Figure 3".')
    ] = "",
    scorer: Annotated[
        Literal["official", "ours"],
        typer.Option(help="Scores as the authors' own scripts compute them, or ours."),
    ] = "official",
) -> Sequence[PaperTable]:
    """Show the tables and figures of a paper by number, measured on your corpus.

    They are those of the experiment's preset (`eval run --preset`), in the paper's layout and with
    its own figures below yours. What is missing says why.
    """
    from graphrag_evaluation import results
    from graphrag_evaluation.presets.tables import tables_of_experiment
    from graphrag_evaluation.store import EvaluationStore

    with EvaluationStore(settings_here().home_path).read() as con:
        name = results.named_experiment(con, experiment)
        every = tables_of_experiment(con, name, scorer)
    if not every:
        raise InputError(f"{name} has no preset of a paper: eval run --preset makes one that has")
    return _chosen(every, number) if number.strip() else every


def _chosen(tables: Sequence[PaperTable], number: str) -> list[PaperTable]:
    """Return the tables that are named, in their order; a name may itself hold a comma."""
    by_name = {table.number.casefold(): table for table in tables}
    if (whole := by_name.get(number.strip().casefold())) is not None:
        return [whole]
    wanted = [part.strip() for part in number.split(",") if part.strip()]
    if strangers := [name for name in wanted if name.casefold() not in by_name]:
        numbers = ", ".join(table.number for table in tables)
        raise InputError(f"--table {strangers[0]}: there is none of the name; there are {numbers}")
    named = {name.casefold() for name in wanted}
    return [table for name, table in by_name.items() if name in named]
