"""Dynamic community selection: a model rates reports from the root downwards."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.global_search import GlobalParameters
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.asking import Asking
from graphrag_pipeline.reports.parsing import RATING_SCHEMA, parse_rating

HIGHEST = 5.0


async def select_reports(asking: Asking, p: GlobalParameters) -> list[Record]:
    """Return the reports that a model finds relevant, each in place of its parent's.

    Level by level, the reports under relevant ones are rated, 0 to 5; one rated less than the
    threshold ends its branch. A report whose rating fails is kept, and its branch ends. No more
    than ``max_ratings`` are rated; below that, the parents stay.
    """
    kept: dict[str, Record] = {}
    level = await asking.retrieve(lambda: op.root_communities(asking.index))
    left = p.max_ratings
    while level:
        level = await _with_reports(asking, level, p.level)
        rated = level[:left]
        left -= len(rated)
        ratings = await asking.each("rate", [partial(_rate, asking, c["report"], p) for c in rated])
        chosen = [
            (community, rating)
            for community, rating in zip(rated, ratings, strict=True)
            if rating is None or rating >= p.threshold
        ]
        for community, _ in chosen:
            kept.pop(community.get("parent_id") or "", None)
            kept[community["id"]] = community["report"]
        below = [community["id"] for community, rating in chosen if rating is not None]
        level = await _children(asking, below, p.level) if left else []
    return list(kept.values())


async def _with_reports(
    asking: Asking, communities: Sequence[dict[str, Any]], level: int
) -> list[dict[str, Any]]:
    """Return communities with their reports; one that has none is replaced by its children."""
    having = [c for c in communities if c["report_id"]]
    lacking = [c["id"] for c in communities if not c["report_id"]]
    while lacking:
        found = await _children(asking, lacking, level)
        having += [c for c in found if c["report_id"]]
        lacking = [c["id"] for c in found if not c["report_id"]]
    ids = dict.fromkeys((c["report_id"] for c in having), 1.0)
    records = await asking.retrieve(lambda: op.report_records(asking.index, ids))
    by_id = {record.id: record for record in records}
    return [c | {"report": by_id[c["report_id"]]} for c in having]


async def _children(asking: Asking, ids: Sequence[str], level: int) -> list[dict[str, Any]]:
    if not ids:
        return []
    return await asking.retrieve(lambda: op.child_communities(asking.index, ids, level))


async def _rate(asking: Asking, report: Record, p: GlobalParameters) -> float:
    fitted = op.fill(asking.index, [report], p.max_context_tokens) or [report]
    text = f"{report.title}\n\n{fitted[0].text}"
    return await asking.read("rate", _read_rating, RATING_SCHEMA, "rate_community", report=text)


def _read_rating(text: str) -> float:
    rating = parse_rating(text, HIGHEST)
    if rating is None:
        raise ModelOutputError('the answer must be a JSON object with a "rating" from 0 to 5')
    return rating
