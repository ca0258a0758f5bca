"""Global answers: points from each group of records, the best of them reduced (paper, 3.1.6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.asking import Asking, Final
from graphrag_pipeline.query.writing.references import Reference, Shown, shown_to_model
from graphrag_pipeline.reports.parsing import POINTS_SCHEMA, parse_points
from graphrag_pipeline.reports.references import check_references

_BETWEEN = 4
"""What a part takes besides its own tokens, at most: a longer number, and the lines between."""


@dataclass(frozen=True)
class Scored:
    """Part of an answer, how much it helps (0 to 100), and the records it refers to."""

    text: str
    score: float
    cited: tuple[Reference, ...]


async def map_reduce(
    asking: Asking, records: Sequence[Record], budget: int, prompt: str, placeholder: str
) -> Final | None:
    """Cut records into groups of ``budget`` tokens, and reduce what each says: :func:`reduced`."""
    groups = await asking.retrieve(lambda: op.groups(asking.index, records, budget))
    return await reduced(asking, groups, budget, prompt, placeholder)


async def reduced(
    asking: Asking,
    groups: Sequence[Sequence[Record]],
    budget: int,
    prompt: str,
    placeholder: str,
    more: Sequence[Scored] = (),
    **values: str,
) -> Final | None:
    """Return the call that merges the best points of groups of records; None if there is no point.

    ``prompt`` is what the names of both prompts begin with, ``placeholder`` that of the map prompt
    for a group, ``budget`` the tokens of the points; ``more`` are points from elsewhere, ``values``
    what both prompts are told besides.
    """
    name = f"{prompt}_map"
    mapped = await asking.each(
        "map", [partial(_map, asking, group, name, placeholder, **values) for group in groups]
    )
    points = best_first([*(point for of_group in mapped for point in of_group or ()), *more])
    best = within(points, budget, asking.index.encoding)
    if not best:
        return None
    shown_records = Shown(record for group in groups for record in group).only(
        reference for point in best for reference in point.cited
    )
    words = asking.index.settings.query.reduce_words
    values |= {"answers": render_answers(best), "max_words": str(words)}
    return Final("reduce", f"{prompt}_reduce", values, shown_records, shown_records.records)


async def _map(
    asking: Asking, group: Sequence[Record], prompt: str, placeholder: str, **values: str
) -> list[Scored]:
    values |= {placeholder: shown_to_model(group)}
    return await points_of(asking, prompt, Shown(group), **values)


async def points_of(
    asking: Asking, prompt: str, shown_records: Shown, **values: str
) -> list[Scored]:
    """Return the points that a map prompt finds in what it is shown."""
    words = asking.index.settings.query.map_words
    points = await asking.read(
        "map", parse_points, POINTS_SCHEMA, prompt, max_words=str(words), **values
    )
    return [checked(asking, point.description, point.score, shown_records) for point in points]


def checked(asking: Asking, text: str, score: float, shown_records: Shown) -> Scored:
    """Return part of an answer without references to what the model was not shown."""
    references = check_references(text, shown_records.allowed())
    asking.references_removed += references.n_removed
    return Scored(references.text, score, references.cited)


def best_first(parts: Iterable[Scored]) -> list[Scored]:
    """Return parts that help at all, in order of score; those that tie stay in their order."""
    return sorted((part for part in parts if part.score > 0), key=lambda part: -part.score)


def within(parts: Sequence[Scored], budget: int, encoding: str) -> list[Scored]:
    """Return the first parts that fit in a budget of tokens together, at least one, if cut."""
    fitting: list[Scored] = []
    at_most = 0
    for part in parts:
        at_most += count_tokens([render_answers([part])], encoding)[0] + _BETWEEN
        # To count all together each time takes longer than all else; it is left for the last few.
        if at_most > budget and (
            count_tokens([render_answers([*fitting, part])], encoding)[0] > budget
        ):
            break
        fitting.append(part)
    return fitting or [_cut(part, budget, encoding) for part in parts[:1]]


def render_answers(parts: Sequence[Scored]) -> str:
    """Return parts as the final prompt shows them."""
    return "\n\n".join(
        f"Answer {place}, helpfulness {part.score:g} of 100:\n{part.text}"
        for place, part in enumerate(parts, start=1)
    )


def _cut(part: Scored, budget: int, encoding: str) -> Scored:
    while part.text and count_tokens([render_answers([part])], encoding)[0] > budget:
        part = replace(part, text=part.text[: len(part.text) * 9 // 10])
    return part
