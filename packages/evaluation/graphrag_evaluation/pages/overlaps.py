"""Questions that one condition answers right and another does not (RAG vs. GraphRAG, figure 2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb

from graphrag_evaluation.judging.verdict_text import percent
from graphrag_evaluation.pages.model import RightAndWrong, Share
from graphrag_evaluation.pages.qualities import Quality
from graphrag_evaluation.presets.experiment_results import Overlap, overlap
from graphrag_evaluation.presets.tables import preset_of

_KIND = "overlap"
_STRONGEST = 0.45
"""How opaque the colour of a quarter is that holds all questions."""


def overlaps(
    con: duckdb.DuckDBPyConnection,
    experiment: str,
    gold: Sequence[Quality],
    conditions: Sequence[str],
) -> list[RightAndWrong]:
    """Return the pairs that the preset's paper shows, or the two conditions where there are two."""
    found = []
    for first, second, metric in _pairs(con, experiment, gold, conditions):
        counts = overlap(con, experiment, first, second, metric)
        if counts.questions:
            found.append(_drawn(first, second, metric, counts))
    return found


def _pairs(
    con: duckdb.DuckDBPyConnection,
    experiment: str,
    gold: Sequence[Quality],
    conditions: Sequence[str],
) -> Iterator[tuple[str, str, str]]:
    paper = preset_of(con, experiment)
    specs = [table for table in paper.table if table.kind == _KIND] if paper else []
    for table in specs:
        yield table.rows[0], table.rows[1], table.metric
    right = next((each.measure.name for each in gold if _is_right_or_wrong(each)), None)
    if not specs and right and len(conditions) == 2:
        yield conditions[0], conditions[1], right


def _is_right_or_wrong(quality: Quality) -> bool:
    return quality.measure.kind == "share" and bool(quality.values["value"].is_in([0.0, 1.0]).all())


def _drawn(first: str, second: str, metric: str, counts: Overlap) -> RightAndWrong:
    n = counts.questions
    right = (counts.both + counts.only_first) / n, (counts.both + counts.only_second) / n
    better = first if right[0] >= right[1] else second
    either = 1 - counts.neither / n
    return RightAndWrong(
        metric=metric.replace("_", " "),
        first=first,
        second=second,
        questions=n,
        quarters=(
            _share("both right", counts.both, n),
            _share("only the row right", counts.only_first, n),
            _share("only the column right", counts.only_second, n),
            _share("both wrong", counts.neither, n),
        ),
        said=(
            f"Only {first} is right on {percent(counts.only_first / n)} of the questions, only "
            f"{second} on {percent(counts.only_second / n)}. Who always chose the one that is "
            f"right would be right on {percent(either)}; {better} alone is on "
            f"{percent(max(right))}."
        ),
    )


def _share(label: str, count: int, questions: int) -> Share:
    return Share(label, count, count / questions, round(_STRONGEST * count / questions, 3))
