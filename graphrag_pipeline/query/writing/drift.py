"""Drift answers: a first answer from reports, then rounds of follow-up questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from graphrag_pipeline.llm.errors import ModelError
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.drift_search import DriftParameters, nearest_reports
from graphrag_pipeline.query.methods.local_search import LocalParameters, local_search
from graphrag_pipeline.query.results import Record, render_context
from graphrag_pipeline.query.writing.asking import Asking, Final
from graphrag_pipeline.query.writing.map_reduce import (
    Scored,
    best_first,
    checked,
    render_answers,
    within,
)
from graphrag_pipeline.query.writing.references import Shown
from graphrag_pipeline.reports.parsing import DRIFT_SCHEMA, DriftAnswer, parse_drift


@dataclass(frozen=True)
class _Step:
    answer: Scored
    follow_ups: tuple[str, ...]
    shown: Sequence[Record] = ()


class _FollowUps:
    """Questions still open: those of the most helpful answers first, each asked once."""

    def __init__(self, question: str) -> None:
        self._known = {_plain(question)}
        self._open: list[tuple[float, int, str]] = []

    def add(self, steps: Sequence[_Step]) -> None:
        for step in steps:
            for question in step.follow_ups:
                if _plain(question) not in self._known:
                    self._known.add(_plain(question))
                    self._open.append((-step.answer.score, len(self._known), question))

    def take(self, n: int) -> list[str]:
        self._open.sort()
        taken, self._open = self._open[:n], self._open[n:]
        return [question for _, _, question in taken]


async def drift_answer(asking: Asking, p: DriftParameters) -> Final | None:
    """Prime with the reports nearest to an imagined answer, follow up, and reduce."""
    shown = Shown()
    steps = await _primer(asking, p, shown)
    waiting = _FollowUps(asking.question)
    waiting.add(steps)
    asked = waiting.take(p.width) if steps else [asking.question]
    for round_ in range(p.depth):
        found = await asking.each(
            "follow up",
            [partial(_follow_up, asking, question, p) for question in asked],
            one_at_least=not steps,
        )
        new = [step for step in found if step is not None]
        steps += new
        for step in new:
            shown.add(step.shown)
        waiting.add(new)
        asked = waiting.take(p.width) if round_ + 1 < p.depth else []
        if not asked:
            break
    kept = within(
        best_first(step.answer for step in steps),
        p.max_context_tokens,
        asking.index.settings.chunks.encoding,
    )
    if not kept:
        return None
    cited = shown.only(reference for part in kept for reference in part.cited)
    values = {"answers": render_answers(kept)}
    return Final("reduce", "drift_reduce", values, cited, cited.records)


async def _primer(asking: Asking, p: DriftParameters, shown: Shown) -> list[_Step]:
    near = await _imagine(asking, p)
    reports = await asking.retrieve(lambda: nearest_reports(asking.index, near, p.reports))
    groups = await asking.retrieve(lambda: op.groups(asking.index, reports, p.max_context_tokens))
    shown.add(reports)
    found = await asking.each("primer", [partial(_prime, asking, group, p) for group in groups])
    return [step for step in found if step is not None]


async def _imagine(asking: Asking, p: DriftParameters) -> str:
    """Return a report as it might answer the question, in the form of one there is (HyDE)."""
    template = await asking.retrieve(lambda: _template(asking, p))
    if not template:
        return asking.search_text
    try:
        return await asking.say("hyde", "drift_hyde", report=template[0].text)
    except ModelError as error:
        if error.stops_everything:
            raise
        asking.failures.append(f"hyde: {error}")
        return asking.search_text


def _template(asking: Asking, p: DriftParameters) -> list[Record]:
    roots = [c["report_id"] for c in op.root_communities(asking.index) if c["report_id"]]
    reports = op.report_records(asking.index, dict.fromkeys(roots[:1], 1.0))
    return op.fill(asking.index, reports, p.max_context_tokens)


async def _prime(asking: Asking, group: Sequence[Record], p: DriftParameters) -> _Step:
    given = await asking.read(
        "primer",
        parse_drift,
        DRIFT_SCHEMA,
        "drift_primer",
        reports=render_context(group),
        n_follow_ups=str(p.width),
    )
    return _step(asking, given, group)


async def _follow_up(asking: Asking, question: str, p: DriftParameters) -> _Step:
    local = LocalParameters(top_k=p.top_k, level=p.level, max_context_tokens=p.max_context_tokens)
    records = await asking.retrieve(lambda: local_search(asking.index, question, local))
    if not records:
        return _Step(Scored("", 0.0, ()), ())
    given = await asking.read(
        "follow up",
        parse_drift,
        DRIFT_SCHEMA,
        "drift_local",
        context=render_context(records),
        question=question,
        global_question=asking.question,
        n_follow_ups=str(p.width),
    )
    return _step(asking, given, records)


def _step(asking: Asking, given: DriftAnswer, records: Sequence[Record]) -> _Step:
    answer = checked(asking, given.answer, given.score, Shown(records))
    return _Step(answer, given.follow_ups, records)


def _plain(question: str) -> str:
    return " ".join(question.casefold().split())
