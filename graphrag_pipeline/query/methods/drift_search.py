"""Drift search: from the nearest reports to follow-up questions, each answered by local search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, number
from graphrag_pipeline.query.results import Record

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release


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
    level: int = number(2, least=0)
    max_context_tokens: int = number(12_000)


def drift_search(index: Release, question: str, p: DriftParameters) -> list[Record]:
    """Return the reports nearest to the question: as far as drift goes without a model."""
    return op.fill(index, nearest_reports(index, question, p.reports), p.max_context_tokens)


def nearest_reports(index: Release, text: str, n: int) -> list[Record]:
    """Return the reports most similar to a text."""
    return op.report_records(index, op.vector_search(index, "community_reports", text, n))


DRIFT = Method(
    "drift",
    "nearest reports, then follow-up questions by local search",
    DriftParameters,
    drift_search,
    needs_model=True,
)
