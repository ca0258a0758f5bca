"""Community reports without a model: the community's most central sentences, with their places."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

EXTRACTIVE_VERSION = "1"
_TITLES_SHOWN = 3


@dataclass(frozen=True)
class Sentence:
    """A sentence of a community's evidence, and where it stands in its document."""

    text: str
    chunk_id: str | None
    start_char: int | None
    end_char: int | None
    entities: frozenset[str]
    score: float


@dataclass(frozen=True)
class Finding:
    """An insight of a report. Spans are characters of the document that holds the chunk."""

    summary: str
    explanation: str
    chunk_id: str | None
    start_char: int | None
    end_char: int | None


@dataclass(frozen=True)
class ReportText:
    """What a report says, whoever wrote it. ``rating`` is 0 to 10."""

    title: str
    summary: str
    rating: float
    rating_explanation: str
    findings: tuple[Finding, ...]

    @property
    def full_content(self) -> str:
        """The report as Markdown."""
        findings = "\n\n".join(f"## {f.summary}\n\n{f.explanation}" for f in self.findings)
        return f"# {self.title}\n\n{self.summary}\n\n{findings}".rstrip() + "\n"


def write_extractive(
    title: str,
    n_entities: int,
    n_relationships: int,
    evidence: float,
    sentences: Iterable[Sentence],
    entity_titles: dict[str, str],
    max_findings: int,
) -> ReportText:
    """Write a report from ranked evidence.

    Sentences are taken greedily by score, and by how many entities they tell of that none before
    did, so that the findings do not repeat each other. The rating grows with the logarithm of the
    number of supporting instances (``evidence``): 1000 and more rate 10.
    """
    chosen = select_sentences(list(sentences), max_findings)
    findings = tuple(_finding(sentence, entity_titles) for sentence in chosen)
    rating = round(min(10.0, 10 * math.log1p(evidence) / math.log1p(1000)), 1)
    return ReportText(
        title=title,
        summary=_summary(title, n_entities, n_relationships, findings),
        rating=rating,
        rating_explanation=f"{evidence:g} supporting instances in the text.",
        findings=findings,
    )


def select_sentences(sentences: Sequence[Sentence], most: int) -> list[Sentence]:
    """Choose up to ``most`` sentences, best first, each as new as it can be."""
    told: set[str] = set()
    texts: set[str] = set()
    left = sorted(sentences, key=lambda s: (-s.score, s.text))
    chosen: list[Sentence] = []
    while left and len(chosen) < most:
        best = max(left, key=lambda s: s.score * _novelty(s, told))
        left.remove(best)
        if best.text in texts:
            continue
        chosen.append(best)
        texts.add(best.text)
        told |= best.entities
    return chosen


def _novelty(sentence: Sentence, told: set[str]) -> float:
    if not sentence.entities:
        return 0.5
    return 0.1 + len(sentence.entities - told) / len(sentence.entities)


def _finding(sentence: Sentence, titles: dict[str, str]) -> Finding:
    named = sorted({titles[e] for e in sentence.entities if e in titles})
    return Finding(
        " – ".join(named[:_TITLES_SHOWN]) or "Evidence",
        sentence.text,
        sentence.chunk_id,
        sentence.start_char,
        sentence.end_char,
    )


def _summary(title: str, n_entities: int, n_relationships: int, findings: Sequence[Finding]) -> str:
    size = f"{n_entities} entities and {n_relationships} relationships around {title}."
    return " ".join([size, *(finding.explanation for finding in findings[:2])])
