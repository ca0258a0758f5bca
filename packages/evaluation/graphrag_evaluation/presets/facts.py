"""Facts of the index for the tables of the papers, recorded when an experiment is run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from graphrag_evaluation.metrics.index import measure_index
from graphrag_evaluation.presets.construction import origin_of, stage_seconds
from graphrag_evaluation.presets.storage import parts_of
from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.store.index_store import insert

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

LEVELS = 4
TEXT = "TS"
"""Levels of the GraphRAG paper, C0 to C3, and the units of its comparison without a graph."""

_CORPUS = """
SELECT (SELECT count(*) FROM documents) AS documents, count(*) AS chunks,
       sum(n_tokens) AS tokens, (SELECT count(*) FROM entities) AS entities,
       (SELECT count(*) FROM relationships) AS relationships,
       (SELECT sum(n_entities) FROM extractions) AS references FROM chunks
"""
# A call that was cached was paid for when it was made.
_INDEXING = """
SELECT count(*) FILTER (NOT cached) AS calls, count(*) FILTER (cached) AS cached_calls,
       sum(prompt_tokens + completion_tokens) FILTER (NOT cached) AS tokens
FROM llm_calls WHERE stage NOT IN ('query', 'tune')
"""
Fact = tuple[str, str, float]
"""A fact, what it is of, and its value."""


def note_facts(store: EvaluationStore, release: Release) -> None:
    """Measure a release, and keep what tables say of it; earlier facts of it are replaced."""
    measure_index(release, store)
    rows = [(release.facts.id, *fact) for fact in _facts(release)]
    table = pl.DataFrame(rows, schema=["release", "fact", "item", "value"], orient="row")
    with store.transaction() as con:
        con.execute("DELETE FROM release_facts WHERE release = ?", [release.facts.id])
        insert(con, "release_facts", table)


def _facts(release: Release) -> Iterator[Fact]:
    (corpus,) = release.rows(_CORPUS)
    yield from (("corpus", name, float(value or 0)) for name, value in corpus.items())
    (indexing,) = release.rows(_INDEXING)
    yield from (("indexing", name, float(value or 0)) for name, value in indexing.items())
    yield from (("indexing", name, value) for name, value in origin_of(release).items())
    yield from (("seconds", stage, value) for stage, value in stage_seconds(release).items())
    yield from (("bytes", part, size) for part, size in parts_of(release).items())
    for level in range(LEVELS):
        reports = op.report_records(release, op.reports_at(release, level))
        tokens = sum(report.n_tokens for report in op.measured(release, reports))
        yield "units", f"C{level}", float(len(reports))
        yield "unit_tokens", f"C{level}", float(tokens)
    yield "units", TEXT, float(corpus["chunks"])
    yield "unit_tokens", TEXT, float(corpus["tokens"] or 0)
