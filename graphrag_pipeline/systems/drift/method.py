"""Drift search: from the nearest reports to follow-up questions, each answered by local search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.local_search import LocalParameters, local_search
from graphrag_pipeline.query.methods.method import Method, hierarchy_level, number
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.asking import Final
from graphrag_pipeline.query.writing.map_reduce import (
    Scored,
    best_first,
    checked,
    render_answers,
    within,
)
from graphrag_pipeline.query.writing.references import Shown, shown_to_model
from graphrag_pipeline.reports.parsing import DRIFT_SCHEMA, DriftAnswer, parse_drift
from graphrag_pipeline.reports.references import check_references

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking


@dataclass(frozen=True)
class DriftParameters:
    """GraphRAG's DRIFT search: a primer over the reports nearest to the question, then rounds.

    Each of ``depth`` rounds answers the ``width`` best follow-up questions still open, by local
    search at ``level`` from ``top_k`` entities. At most 2 + ``depth`` x ``width`` calls, and one
    for each group of the ``reports`` nearest reports; an answer that cannot be read costs another.
    """

    reports: int = number(20)
    depth: int = number(2, least=0)
    width: int = number(4)
    top_k: int = number(10)
    level: int = hierarchy_level(2)
    max_context_tokens: int = number(12_000)


def drift_search(index: Release, question: str, p: DriftParameters) -> list[Record]:
    """Return the reports nearest to the question: as far as drift goes without a model."""
    return op.fill(index, nearest_reports(index, question, p.reports), p.max_context_tokens)


def nearest_reports(index: Release, text: str, n: int) -> list[Record]:
    """Return the reports most similar to a text."""
    return op.report_records(index, op.nearest(index, "community_reports", text, n))


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
        questions, self._open = self._open[:n], self._open[n:]
        return [question for _, _, question in questions]


async def drift_answer(asking: Asking, p: DriftParameters) -> Final | None:
    """Prime with the reports nearest to an imagined answer, follow up, and reduce."""
    shown_records = Shown()
    steps = await _primer(asking, p, shown_records)
    waiting = _FollowUps(asking.question)
    waiting.add(steps)
    questions = waiting.take(p.width) if steps else [asking.question]
    for _ in range(p.depth):
        steps_made = await asking.each(
            "follow up",
            [partial(_follow_up, asking, question, p) for question in questions],
            one_at_least=not steps,
        )
        new = [step for step in steps_made if step is not None]
        steps += new
        for step in new:
            shown_records.add(step.shown)
        waiting.add(new)
        questions = waiting.take(p.width)
        if not questions:
            break
    fitting = within(
        best_first(step.answer for step in steps),
        p.max_context_tokens,
        asking.index.encoding,
    )
    if not fitting:
        return None
    cited_records = shown_records.only(reference for part in fitting for reference in part.cited)
    values = {"answers": render_answers(fitting)}
    return Final("reduce", "drift_reduce", values, cited_records, cited_records.records)


async def _primer(asking: Asking, p: DriftParameters, shown_records: Shown) -> list[_Step]:
    near = await _imagine(asking, p)
    reports = await asking.retrieve(lambda: nearest_reports(asking.index, near, p.reports))
    groups = await asking.retrieve(lambda: op.groups(asking.index, reports, p.max_context_tokens))
    shown_records.add(reports)
    answers = await asking.each("primer", [partial(_prime, asking, group, p) for group in groups])
    return [step for step in answers if step is not None]


async def _imagine(asking: Asking, p: DriftParameters) -> str:
    """Return a report as it might answer the question, in the form of one there is (HyDE)."""
    template = await asking.retrieve(lambda: _template(asking, p))
    if not template:
        return asking.search_text
    report = check_references(template[0].text, {}).text
    imagined = await asking.tried("hyde", asking.say("hyde", "drift_hyde", report=report))
    return asking.search_text if imagined is None else imagined


def _template(asking: Asking, p: DriftParameters) -> list[Record]:
    roots = [c["report_id"] for c in op.root_communities(asking.index) if c["report_id"]]
    reports = op.report_records(asking.index, dict.fromkeys(roots[:1], 1.0))
    return op.fill(asking.index, reports, p.max_context_tokens)


async def _prime(asking: Asking, group: Sequence[Record], p: DriftParameters) -> _Step:
    reply = await asking.read(
        "primer",
        parse_drift,
        DRIFT_SCHEMA,
        "drift_primer",
        reports=shown_to_model(group),
        n_follow_ups=str(p.width),
    )
    return _step(asking, reply, group)


async def _follow_up(asking: Asking, question: str, p: DriftParameters) -> _Step:
    local = LocalParameters(
        top_k=p.top_k,
        level=p.level,
        reranked=asking.index.settings.query.reranked,
        max_context_tokens=p.max_context_tokens,
    )
    records = await asking.retrieve(lambda: local_search(asking.index, question, local))
    if not records:
        return _Step(Scored("", 0.0, ()), ())
    reply = await asking.read(
        "follow up",
        parse_drift,
        DRIFT_SCHEMA,
        "drift_local",
        context=shown_to_model(records),
        question=question,
        global_question=asking.question,
        n_follow_ups=str(p.width),
    )
    return _step(asking, reply, records)


def _step(asking: Asking, reply: DriftAnswer, records: Sequence[Record]) -> _Step:
    answer = checked(asking, reply.answer, reply.score, Shown(records))
    return _Step(answer, reply.follow_ups, records)


def _plain(question: str) -> str:
    return " ".join(question.casefold().split())


DRIFT = Method(
    name="drift",
    summary="nearest reports, then follow-up questions by local search",
    parameters=DriftParameters,
    retrieve=drift_search,
    needs_model=True,
    answer=drift_answer,
    readings=lambda p: 2 + p.width * p.depth,
)
