"""Global search: what all community reports at a level say to the question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from graphrag_pipeline.core.text import terms
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, flag, number
from graphrag_pipeline.query.results import Record

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_RATING_WEIGHT = 0.2
_HIGHEST_RATING = 10.0
_REPETITION = 0.9
"""Each further finding of one report counts so much less, to let others speak."""

_ABOUT_ANY_CORPUS = frozenset(
    terms(
        "main top key major central important overall general theme topic subject idea trend "
        "insight overview summary summarize describe document text corpus collection dataset data "
        "report article story book discuss cover mention tell say find give list"
    )
)
"""Words that ask for what documents say as a whole: finding them in a text means nothing."""


@dataclass(frozen=True)
class GlobalParameters:
    """GraphRAG's global search: map over the reports of a level, reduce by score (paper, 3.1.6).

    The reports read are those of each entity's community at ``level``, each once. Without a model
    the findings of the reports are the partial answers that the map step gives. With one,
    ``seed`` shuffles the reports; ``dynamic`` has it rate reports from the root downwards, at most
    ``max_ratings`` of them, and reads those rated at least ``threshold`` (0 to 5).
    """

    level: int = number(2, least=0)
    candidates: int = number(256)
    findings_per_report: int = number(3)
    max_context_tokens: int = number(12_000)
    seed: int = number(86, least=0)
    dynamic: bool = flag(False)
    threshold: int = number(1, least=0)
    max_ratings: int = number(200)


def global_search(index: Release, question: str, p: GlobalParameters) -> list[Record]:
    """Return the findings that bear most on the question, at most a few of each report.

    Of a question that names nothing in particular, such as one for the main themes, the findings
    of the highest rated reports are the answer.
    """
    asked = _particulars(question)
    candidates = op.findings_at(index, p.level, asked, p.candidates)
    ranked = _spread(_scored(index, asked, candidates), p.findings_per_report)
    return op.fill(index, ranked, p.max_context_tokens)


def _particulars(question: str) -> str:
    words = question.split()
    return " ".join(word for word in words if not _ABOUT_ANY_CORPUS.issuperset(terms(word)))


def _scored(index: Release, asked: str, findings: Sequence[Record]) -> list[Record]:
    texts = [f"{finding.title}: {finding.text}" for finding in findings]
    relevant = op.relevance(index, asked, texts) if asked else [0.0] * len(texts)
    return [
        replace(finding, score=value + _RATING_WEIGHT * finding.score / _HIGHEST_RATING)
        for finding, value in zip(findings, relevant, strict=True)
    ]


def _spread(findings: Sequence[Record], most: int) -> list[Record]:
    """Return findings best first, at most ``most`` of a report, its later ones held back."""
    taken: Counter[str] = Counter()
    kept: list[Record] = []
    for finding in sorted(findings, key=_by_score):
        report = finding.attributes["report_id"]
        if taken[report] < most:
            kept.append(replace(finding, score=finding.score * _REPETITION ** taken[report]))
            taken[report] += 1
    return sorted(kept, key=_by_score)


def _by_score(finding: Record) -> float:
    return -finding.score


GLOBAL = Method(
    "global", "findings of all community reports at a level", GlobalParameters, global_search
)
