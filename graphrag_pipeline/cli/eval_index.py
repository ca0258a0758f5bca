"""The command of `eval` that measures an index by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from graphrag_pipeline.evaluation.index_metrics import Metric


def index(
    questions: Annotated[
        str,
        typer.Option("--questions", "-q", help="Look for the gold answers of a set in the graph."),
    ] = "",
    release: Annotated[
        str | None, typer.Option(help="Another release that is kept (default: the published one).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")] = False,
) -> None:
    """Measure the index: its communities, its graph, and what its texts rest on; asks no model."""
    from graphrag_pipeline.cli import console
    from graphrag_pipeline.core.settings import load_settings
    from graphrag_pipeline.evaluation.index_metrics import measure_index
    from graphrag_pipeline.evaluation.questions import get_questions
    from graphrag_pipeline.evaluation.store import EvaluationStore
    from graphrag_pipeline.query.release import open_release

    settings = load_settings()
    store = EvaluationStore(settings.home_path)
    if questions:
        with store.read() as con:
            get_questions(con, questions)
    with open_release(settings.home_path, settings=settings, release=release) as opened:
        found = measure_index(opened, store, questions)
        name = opened.facts.id
    if as_json:
        metrics = [
            {"metric": one.name, "level": one.level if one.has_level else None, "value": one.value}
            for one in found
        ]
        console.show_json({"release": name, "metrics": metrics})
        return
    console.say(f"Release {name}")
    _show_levels([one for one in found if one.has_level])
    _show_whole([one for one in found if not one.has_level])


def _show_levels(found: Sequence[Metric]) -> None:
    from graphrag_pipeline.cli import console

    names = list(dict.fromkeys(one.name for one in found))
    values = {(one.level, one.name): f"{one.value:.3f}" for one in found}
    rows = [
        (level, *(values.get((level, name), "-") for name in names))
        for level in sorted({one.level for one in found})
    ]
    if rows:
        console.show_rows(("level", *names), rows)


def _show_whole(found: Sequence[Metric]) -> None:
    from graphrag_pipeline.cli import console
    from graphrag_pipeline.evaluation.index_metrics import ABOUT

    for one in found:
        about = ABOUT[one.name.partition("@")[0]]
        console.say(f"{one.value:.3f}  {one.name}: {about}")
