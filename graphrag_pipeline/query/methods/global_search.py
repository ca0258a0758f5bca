"""Global search: what all community reports at a level say to the question."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.asked_themes import asked_types, particulars
from graphrag_pipeline.query.evidence.themes import told_well
from graphrag_pipeline.query.evidence.types_told import told_of_types
from graphrag_pipeline.query.methods.method import (
    Method,
    choice,
    flag,
    hierarchy_level,
    number,
)
from graphrag_pipeline.query.question import AnalysedQuestion
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.map_reduce import map_reduce
from graphrag_pipeline.query.writing.single import from_records
from graphrag_pipeline.reports.parsing import RATING_SCHEMA, parse_rating
from graphrag_pipeline.reports.references import check_references

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking, Final

MAP_REDUCE, SIMILARITY = "map_reduce", "similarity"
GRAPH, ATTRIBUTED = "graph", "attributed"
_RATING_WEIGHT = 0.2
_HIGHEST_RATING = 10.0
_HIGHEST_BY_MODEL = 5.0
_THEMES = 100
_LEVEL = 2
_REPETITION = 0.9
"""Each further finding of one report counts so much less, to let others speak."""


@dataclass(frozen=True)
class GlobalParameters:
    """GraphRAG's global search: map over the reports of a level, reduce by score (paper, 3.1.6).

    The reports read are those of each entity's community at ``level``, each once. Without a model
    the findings of the reports are the partial answers that the map step gives. With one,
    ``seed`` shuffles the reports; ``dynamic`` has it rate reports from the root downwards, at most
    ``max_ratings`` of them, and reads those rated at least ``threshold`` (0 to 5).

    ``mode`` ``similarity`` is Community-GraphRAG (Global) of Han et al., 2025, 3.2: of the reports
    of the highest level, the root, whatever ``level`` says, the ``reports`` most similar to the
    question are the context of one call.

    ``hierarchy`` ``attributed`` reads the reports on ArchRAG's communities in place of Leiden's,
    ``level`` counted from their top (GraphRAG+AC: Wang et al., 2025, table 4).
    """

    mode: str = choice(MAP_REDUCE, (MAP_REDUCE, SIMILARITY))
    hierarchy: str = choice(GRAPH, (GRAPH, ATTRIBUTED))
    level: int = hierarchy_level(_LEVEL)
    reports: int = number(10)
    candidates: int = number(256)
    findings_per_report: int = number(3)
    max_context_tokens: int = number(12_000)
    seed: int = number(86, least=0)
    dynamic: bool = flag(False)
    threshold: int = number(1, least=0)
    max_ratings: int = number(200)

    def __post_init__(self) -> None:
        if self.dynamic and self.mode == SIMILARITY:
            raise InputError("dynamic = True: has no meaning with mode = similarity")
        if self.hierarchy == ATTRIBUTED and (self.dynamic or self.mode == SIMILARITY):
            raise InputError(
                "hierarchy = attributed: has no meaning with dynamic, or mode = similarity"
            )


def global_search(index: Release, question: str, p: GlobalParameters) -> list[Record]:
    """Return the findings that bear most on the question, at most a few of each report.

    Of a question that names nothing in particular, such as one for the main themes, the answer are
    findings of the communities that documents tell most of, at first one of each root; of the
    root's communities, unless another level than the default is asked for. Of one for people,
    places or the like, the best connected are told, each with what introduces it.
    """
    if p.mode == SIMILARITY:
        return _findings_of_nearest(index, question, p)
    analysed = AnalysedQuestion.of(question)
    asked = analysed.read(particulars)
    if not asked:
        return op.fill(index, _themes(index, question, p), p.max_context_tokens)
    types = analysed.read(asked_types)
    if types and (told := told_of_types(index, question, types)):
        return op.fill(index, told, p.max_context_tokens)
    findings_at = op.attributed_findings_at if p.hierarchy == ATTRIBUTED else op.findings_at
    candidates = findings_at(index, p.level, asked, p.candidates)
    scores = _scores(index, asked, candidates)
    ranking = _spread(candidates, scores, p.findings_per_report)
    return op.fill(index, ranking, p.max_context_tokens)


def reports_to_read(index: Release, p: GlobalParameters) -> list[Record]:
    """Return the reports that the map step reads."""
    if p.hierarchy == ATTRIBUTED:
        reports = op.attributed_reports_at(index, p.level)
        return op.attributed_report_records(index, reports)
    return op.report_records(index, op.reports_at(index, p.level))


def _themes(index: Release, question: str, p: GlobalParameters) -> list[Record]:
    if p.hierarchy == ATTRIBUTED:
        return op.attributed_findings_at(index, p.level, "", _THEMES)
    level = 0 if p.level == _LEVEL else p.level
    return told_well(index, question, op.themes_at(index, level, _THEMES))


def _findings_of_nearest(index: Release, question: str, p: GlobalParameters) -> list[Record]:
    """Return the findings of the reports nearest to the question, in the order of these."""
    reports = _nearest_reports(index, question, p)
    findings = {key: [] for key in reports}
    for finding in op.findings_of(index, list(reports)):
        findings[finding.attributes["report_id"]].append(finding)
    ranking = [replace(f, score=reports[key]) for key, own in findings.items() for f in own]
    return op.fill(index, ranking, p.max_context_tokens)


def _nearest_reports(index: Release, question: str, p: GlobalParameters) -> op.Ranking:
    roots = op.reports_at(index, 0)
    return op.most_similar(index, "community_reports", question, roots, p.reports)


def _scores(index: Release, particulars: str, findings: Sequence[Record]) -> list[float]:
    texts = [f"{finding.title}: {finding.text}" for finding in findings]
    relevant = op.relevance(index, particulars, texts)
    return [
        value + _RATING_WEIGHT * finding.score / _HIGHEST_RATING
        for finding, value in zip(findings, relevant, strict=True)
    ]


def _spread(findings: Sequence[Record], scores: Sequence[float], most: int) -> list[Record]:
    """Return findings best first, at most ``most`` of a report, its later ones held back."""
    counts: Counter[str] = Counter()
    spread: list[Record] = []
    for place in sorted(range(len(findings)), key=lambda place: -scores[place]):
        report = findings[place].attributes["report_id"]
        if counts[report] < most:
            score = scores[place] * _REPETITION ** counts[report]
            spread.append(replace(findings[place], score=score))
            counts[report] += 1
    return sorted(spread, key=lambda finding: -finding.score)


async def global_answer(asking: Asking, p: GlobalParameters) -> Final | None:
    """Map over the reports of a level, or over those that a model selects, and reduce.

    Or answer from the most similar, as ``mode`` asks.
    """
    if p.mode == SIMILARITY:
        return from_records(await asking.retrieve(lambda: _most_like(asking, p)), "local_answer")
    if p.dynamic:
        reports = await _select_reports(asking, p)
    else:
        reports = await asking.retrieve(lambda: reports_to_read(asking.index, p))
    shuffled = sorted(reports, key=lambda report: report.id)
    random.Random(p.seed).shuffle(shuffled)
    return await map_reduce(asking, shuffled, p.max_context_tokens, "global", "reports")


def _most_like(asking: Asking, p: GlobalParameters) -> list[Record]:
    ranking = _nearest_reports(asking.index, asking.search_text, p)
    reports = op.report_records(asking.index, ranking)
    return op.fill(asking.index, reports, p.max_context_tokens, shorter=op.summarised)


async def _select_reports(asking: Asking, p: GlobalParameters) -> list[Record]:
    """Return the reports that a model finds relevant, each in place of its parent's.

    Level by level, the reports under relevant ones are rated, 0 to 5; one rated less than the
    threshold ends its branch. A report whose rating fails is kept, and its branch ends. No more
    than ``max_ratings`` are rated; below that, the parents stay.
    """
    selected: dict[str, Record] = {}
    level = await asking.retrieve(lambda: op.root_communities(asking.index))
    ratings_left = p.max_ratings
    while level:
        level = await _with_reports(asking, level, p.level)
        rated = level[:ratings_left]
        ratings_left -= len(rated)
        ratings = await asking.each("rate", [partial(_rate, asking, c["report"], p) for c in rated])
        selection = [
            (community, rating)
            for community, rating in zip(rated, ratings, strict=True)
            if rating is None or rating >= p.threshold
        ]
        for community, _ in selection:
            selected.pop(community.get("parent_id") or "", None)
            selected[community["id"]] = community["report"]
        below = [community["id"] for community, rating in selection if rating is not None]
        level = await _children(asking, below, p.level) if ratings_left else []
    return list(selected.values())


async def _with_reports(
    asking: Asking, communities: Sequence[dict[str, Any]], level: int
) -> list[dict[str, Any]]:
    """Return communities with their reports; one that has none is replaced by its children."""
    having = [c for c in communities if c["report_id"]]
    lacking = [c["id"] for c in communities if not c["report_id"]]
    while lacking:
        below = await _children(asking, lacking, level)
        having += [c for c in below if c["report_id"]]
        lacking = [c["id"] for c in below if not c["report_id"]]
    ids = dict.fromkeys((c["report_id"] for c in having), 1.0)
    records = await asking.retrieve(lambda: op.report_records(asking.index, ids))
    by_id = {record.id: record for record in records}
    return [c | {"report": by_id[c["report_id"]]} for c in having]


async def _children(asking: Asking, ids: Sequence[str], level: int) -> list[dict[str, Any]]:
    if not ids:
        return []
    return await asking.retrieve(lambda: op.child_communities(asking.index, ids, level))


async def _rate(asking: Asking, report: Record, p: GlobalParameters) -> float:
    fitting = op.fill(asking.index, [report], p.max_context_tokens) or [report]
    text = f"{report.title}\n\n{check_references(fitting[0].text, {}).text}"
    return await asking.read("rate", _read_rating, RATING_SCHEMA, "rate_community", report=text)


def _read_rating(text: str) -> float:
    rating = parse_rating(text, _HIGHEST_BY_MODEL)
    if rating is None:
        raise ModelOutputError('the answer must be a JSON object with a "rating" from 0 to 5')
    return rating


GLOBAL = Method(
    name="global",
    summary="findings of all community reports at a level",
    recommended=True,
    parameters=GlobalParameters,
    retrieve=global_search,
    answer=global_answer,
)
