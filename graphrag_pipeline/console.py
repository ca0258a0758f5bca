"""What the command line prints: tables a person can use, or JSON for a script."""

from __future__ import annotations

import contextlib
import csv
import json
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from graphrag_pipeline.progress import listening

if TYPE_CHECKING:
    from graphrag_pipeline.query import Answer

_MOST_ROWS = 200
_MOST_QUARANTINED = 10

out = Console(highlight=False, soft_wrap=False)
err = Console(stderr=True, highlight=False)


class StageTimes:
    """Seconds from the first to the last word of each stage."""

    def __init__(self) -> None:
        self._first: dict[str, float] = {}
        self._spent: dict[str, float] = {}
        self._started = time.perf_counter()

    def hear(self, stage: str, done: int, total: int) -> None:
        """Take note of a stage's progress."""
        now = time.perf_counter()
        if stage in self._first:
            self._spent[stage] = self._spent.get(stage, 0.0) + now - self._first[stage]
        self._first[stage] = now
        if done >= total:
            del self._first[stage]
        else:
            self._spent.setdefault(stage, 0.0)

    def by_stage(self) -> dict[str, float]:
        """Return the seconds of each stage, and of everything as ``total``."""
        total = time.perf_counter() - self._started
        return {**{s: round(n, 2) for s, n in self._spent.items()}, "total": round(total, 2)}


@contextlib.contextmanager
def progress(*, quiet: bool) -> Iterator[StageTimes]:
    """Show a bar per stage while the body runs; yields the seconds each stage takes."""
    times = StageTimes()
    if quiet:
        with listening(times.hear):
            yield times
        return
    bars = Progress(
        TextColumn("{task.description:<14}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err,
    )
    tasks: dict[str, Any] = {}

    def hear(stage: str, done: int, total: int) -> None:
        times.hear(stage, done, total)
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=total)
        bars.update(tasks[stage], completed=done, total=total)

    with bars, listening(hear):
        yield times


def show_json(value: object) -> None:
    """Print a value as JSON."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    sys.stdout.write(text.encode("utf-8", "replace").decode() + "\n")


def show_csv(names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows as CSV with a header."""
    writer = csv.writer(sys.stdout)
    writer.writerow(names)
    writer.writerows(rows)


def show_rows(names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows as a table; of very many only the first."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in names:
        table.add_column(escape(name), overflow="fold")
    for row in rows[:_MOST_ROWS]:
        table.add_row(*(escape("" if value is None else str(value)) for value in row))
    out.print(table)
    if len(rows) > _MOST_ROWS:
        out.print(f"first {_MOST_ROWS} of {len(rows)} rows; use --format csv or json for all")


def show_index(summary: dict[str, Any]) -> None:
    """Print what an index run built."""
    seconds = summary.get("seconds", {})
    stages = {name: s for name, s in seconds.items() if name != "total"}
    if summary.get("imported"):
        facts = {k: v for k, v in summary["imported"].items() if isinstance(v, int | float | str)}
        out.print("imported: " + escape(", ".join(f"{v} {k}" for k, v in facts.items())))
    if summary.get("batches_run") == 0:
        out.print("No document was added, changed or removed since the last run.")
    _show_counts(summary)
    _show_levels(summary)
    _show_quarantined(summary)
    if seconds:
        parts = ", ".join(f"{name} {value:.1f}" for name, value in stages.items())
        out.print(f"{seconds['total']:.1f} seconds ({parts})")
    _show_published(summary)


def show_status(summary: dict[str, Any]) -> None:
    """Print the state of the index."""
    out.print(f"home       {escape(summary['home'])}")
    if not summary["indexed"]:
        out.print("nothing indexed yet: run graphrag-pipeline index FOLDER")
        return
    _show_counts(summary)
    _show_levels(summary)
    pending = len(summary["pending_batches"])
    out.print(f"pending    {pending} {'batch' if pending == 1 else 'batches'}")
    _show_quarantined(summary)
    _show_published(summary)
    if pending or summary["refresh_needed"]:
        out.print("The published index is behind: run graphrag-pipeline index")


def show_answer(answer: Answer) -> None:
    """Print an answer, the places it cites, and what it cost."""
    out.print(escape(answer.text.rstrip()))
    if answer.citations:
        out.print()
        for citation in answer.citations:
            place = citation.uri or f"community report {citation.report_id}"
            span = f" {citation.start_char}–{citation.end_char}" if citation.uri else ""
            title = f"{citation.document_title}, " if citation.document_title else ""
            out.print(escape(f"[{citation.number}] {title}{place}{span}"), style="dim")
    seconds = answer.timings.get("total", 0.0)
    cost = "unknown cost" if answer.cost is None else f"${answer.cost:.4f}"
    out.print(
        f"\n{answer.method} search of release {answer.release}: "
        f"{answer.model_calls} model calls, {cost}, {seconds:.2f} s",
        style="dim",
    )


def _show_counts(summary: dict[str, Any]) -> None:
    for name in ("documents", "chunks", "entities", "relationships", "claims"):
        if summary[name] or name != "claims":
            out.print(f"{name:<14}{summary[name]:>10,}")


def _show_levels(summary: dict[str, Any]) -> None:
    if not summary["levels"]:
        out.print("communities            0")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("level", "communities", "reports", "largest"):
        table.add_column(name, justify="right")
    for row in summary["levels"]:
        table.add_row(*(f"{row[n]:,}" for n in ("level", "communities", "reports", "largest")))
    out.print(table)


def _show_quarantined(summary: dict[str, Any]) -> None:
    bad = summary["quarantined"]
    if bad:
        out.print(f"quarantined {len(bad)} (not indexed; see the table quarantine):")
        for row in bad[:_MOST_QUARANTINED]:
            out.print(escape(f"  {row['uri']}: {row['reason']}"))
        if len(bad) > _MOST_QUARANTINED:
            out.print(f"  and {len(bad) - _MOST_QUARANTINED} more")


def _show_published(summary: dict[str, Any]) -> None:
    release = summary["published"]
    if release:
        out.print(f"published  release {release['id']} of {release['created_at']}")
    else:
        out.print("published  nothing yet")
