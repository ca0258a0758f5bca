"""Global search: what all community reports at a level say to the question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, number
from graphrag_pipeline.query.results import Record

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_RATING_WEIGHT = 0.2
_HIGHEST_RATING = 10.0


@dataclass(frozen=True)
class GlobalParameters:
    """GraphRAG's global search: map over the reports of a level, reduce by score (paper, 3.1.6).

    The reports read are those of each entity's community at ``level``, each once. Without a model
    the findings of the reports are the partial answers that the map step gives.
    """

    level: int = number(2, least=0)
    candidates: int = number(256)
    findings_per_report: int = number(3)
    max_context_tokens: int = number(12_000)


def global_search(index: Release, question: str, p: GlobalParameters) -> list[Record]:
    """Return the findings that bear most on the question, at most a few of each report."""
    candidates = op.findings_at(index, p.level, question, p.candidates)
    ranked = _scored(index, question, candidates)
    kept = list(_at_most_each(ranked, p.findings_per_report))
    return op.fill(index, kept, p.max_context_tokens)


def _scored(index: Release, question: str, findings: list[Record]) -> list[Record]:
    relevant = op.relevance(index, question, [finding.text for finding in findings])
    scored = [
        replace(finding, score=value + _RATING_WEIGHT * finding.score / _HIGHEST_RATING)
        for finding, value in zip(findings, relevant, strict=True)
    ]
    return sorted(scored, key=lambda finding: -finding.score)


def _at_most_each(findings: Iterable[Record], most: int) -> Iterator[Record]:
    taken: Counter[str] = Counter()
    for finding in findings:
        report = finding.attributes["report_id"]
        taken[report] += 1
        if taken[report] <= most:
            yield finding


GLOBAL = Method(
    "global", "findings of all community reports at a level", GlobalParameters, global_search
)
