"""`eval index`: an index measured by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import prints, settings_here

if TYPE_CHECKING:
    from graphrag_pipeline.evaluation.index_metrics import Metric


@dataclass(frozen=True)
class Measured:
    """The metrics of a release."""

    release: str
    metrics: Sequence[Metric]


def _show(measured: Measured) -> None:
    console.say(f"Release {measured.release}")
    _show_levels([metric for metric in measured.metrics if metric.has_level])
    _show_whole([metric for metric in measured.metrics if not metric.has_level])


def _show_levels(found: Sequence[Metric]) -> None:
    names = list(dict.fromkeys(one.name for one in found))
    values = {(one.level, one.name): f"{one.value:.3f}" for one in found}
    rows = [
        (level, *(values.get((level, name), "-") for name in names))
        for level in sorted({one.level for one in found})
    ]
    if rows:
        console.show_rows(("level", *names), rows)


def _show_whole(found: Sequence[Metric]) -> None:
    from graphrag_pipeline.evaluation.index_metrics import ABOUT

    for one in found:
        about = ABOUT[one.name.partition("@")[0]]
        console.say(f"{one.value:.3f}  {one.name}: {about}")


def _values(measured: Measured) -> dict[str, Any]:
    metrics = [
        {
            "metric": metric.name,
            "level": metric.level if metric.has_level else None,
            "value": metric.value,
        }
        for metric in measured.metrics
    ]
    return {"release": measured.release, "metrics": metrics}


@prints(_show, _values)
def index(
    questions: Annotated[
        str,
        typer.Option("--questions", "-q", help="Look for the gold answers of a set in the graph."),
    ] = "",
    release: Annotated[
        str | None, typer.Option(help="Another release that is kept (default: the published one).")
    ] = None,
) -> Measured:
    """Measure the index by itself: its communities, its graph, the sources of its texts."""
    from graphrag_pipeline.evaluation.index_metrics import measure_index
    from graphrag_pipeline.evaluation.questions import get_questions
    from graphrag_pipeline.evaluation.store import EvaluationStore
    from graphrag_pipeline.query.release import open_release

    settings = settings_here()
    store = EvaluationStore(settings.home_path)
    if questions:
        with store.read() as con:
            get_questions(con, questions)
    with open_release(settings.home_path, settings=settings, release=release) as opened:
        return Measured(opened.facts.id, measure_index(opened, store, questions))
