"""`eval index`: an index measured by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import prints, settings_here

if TYPE_CHECKING:
    from graphrag_evaluation.metrics.index import Metric


@dataclass(frozen=True)
class Measured:
    """The metrics of a release."""

    release: str
    metrics: Sequence[Metric]


def _show(quality: Measured) -> None:
    console.say(f"Release {quality.release}")
    _show_levels([metric for metric in quality.metrics if metric.has_level])
    _show_whole([metric for metric in quality.metrics if not metric.has_level])


def _show_levels(metrics: Sequence[Metric]) -> None:
    levels = sorted({metric.level for metric in metrics})
    values = {(metric.name, metric.level): f"{metric.value:.3f}" for metric in metrics}
    rows = [
        (name, *(values.get((name, level), "-") for level in levels))
        for name in dict.fromkeys(metric.name for metric in metrics)
    ]
    if rows:
        console.show_rows(("metric", *(f"level {level}" for level in levels)), rows)


def _show_whole(metrics: Sequence[Metric]) -> None:
    from graphrag_evaluation.metrics.index import ABOUT

    for metric in metrics:
        about = ABOUT[metric.name.partition("@")[0]]
        console.say(f"{metric.value:.3f}  {metric.name}: {about}")


def _values(quality: Measured) -> dict[str, Any]:
    metrics = [
        {
            "metric": metric.name,
            "level": metric.level if metric.has_level else None,
            "value": metric.value,
        }
        for metric in quality.metrics
    ]
    return {"release": quality.release, "metrics": metrics}


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
    from graphrag_evaluation.metrics.index import measure_index
    from graphrag_evaluation.questions.question import get_questions
    from graphrag_evaluation.store import EvaluationStore
    from graphrag_pipeline.query.release import open_release

    settings = settings_here()
    store = EvaluationStore(settings.home_path)
    if questions:
        with store.read() as con:
            get_questions(con, questions)
    with open_release(settings.home_path, settings=settings, release=release) as opened_release:
        return Measured(opened_release.facts.id, measure_index(opened_release, store, questions))
