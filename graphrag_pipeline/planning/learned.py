"""What more chunks change in an index, learned from the chunks it has.

Chunks of the index are looked at as if they were the new ones: what rests on them alone would be
new, what rests on others too would change by their share of its evidence. So a corpus in which all
speak of the same people is told from one in which each document has its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import polars as pl

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.extraction.extractors import extraction_version
from graphrag_pipeline.reports.model_writer import report_writer
from graphrag_pipeline.structures.estimate import Chunks

_DRAWS = 7
_MOST_TAKEN = 0.5
_BYTES_PER_TOKEN = 4
_TAKEN = """
CREATE OR REPLACE TEMP TABLE taken AS
SELECT id FROM (
    SELECT id, row_number() OVER (ORDER BY md5(document_id || $draw), ordinal) AS place
    FROM chunks SEMI JOIN extractions x ON x.chunk_id = chunks.id AND x.extractor = 'llm')
WHERE place <= $number
"""
_GAINED = """
CREATE OR REPLACE TEMP TABLE gained AS
SELECT 'entity' AS kind, entity_id AS id, count(DISTINCT chunk_id) AS number
FROM entity_chunks SEMI JOIN taken ON taken.id = chunk_id GROUP BY ALL
UNION ALL SELECT 'relationship', relationship_id, count(DISTINCT chunk_id)
FROM relationship_chunks SEMI JOIN taken ON taken.id = chunk_id GROUP BY ALL
UNION ALL SELECT 'claim', claims.id, 1 FROM claims SEMI JOIN taken ON taken.id = chunk_id
"""
_TEXTS = """
SELECT count(*), coalesce(sum(strlen(text)), 0) FROM (
    SELECT title || description AS text FROM entities SEMI JOIN gained USING (id))
"""
_PAIRS = """
SELECT count(*), coalesce(sum(strlen(text)), 0) FROM (
    SELECT source || target || description AS text FROM relationships SEMI JOIN gained USING (id))
"""
_MERGED = "SELECT count(*) FROM description_summaries SEMI JOIN gained USING (id)"
# How much of each element of a report would have changed; that of a report in it comes later.
_ELEMENTS = """
SELECT r.level, e.community_id, e.kind, e.element_id, e.n_tokens, e.support,
       least(coalesce(g.number, 0), e.support) AS gained
FROM report_elements e JOIN community_reports r USING (community_id)
LEFT JOIN gained g ON g.kind = e.kind AND g.id = e.element_id
"""
_REPORTS = """
SELECT community_id, level, context_tokens, outdated, n_tokens, strlen(full_content) AS n_bytes
FROM community_reports
"""
_EXTRACTED = """
SELECT count(*), avg(n_tokens), avg(prompt_tokens), avg(completion_tokens)
FROM extractions JOIN chunks ON chunks.id = chunk_id
WHERE version = $version AND status = 'ok' AND prompt_tokens > 0
"""
_CALL = """
SELECT avg(prompt_tokens) FROM llm_calls WHERE stage = 'extractions' AND error IS NULL
"""


@dataclass(frozen=True)
class Amount:
    """A number of texts or calls, and the tokens of all of them."""

    number: float = 0.0
    tokens: float = 0.0

    def times(self, factor: float) -> Amount:
        """Return so many times as much."""
        return Amount(self.number * factor, self.tokens * factor)


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What so many chunks bring: elements that are new or change, and what is written for them.

    The tokens of ``reports`` are those of their contexts, of ``report_texts`` the texts'.
    """

    entities: Amount
    relationships: Amount
    merges: float
    reports: Amount
    report_texts: Amount


@dataclass(frozen=True)
class ExtractedChunk:
    """What extracting from a chunk of ``size`` tokens has taken, on average."""

    size: float
    calls: float
    prompt: float
    completion: float


def learn_effect(
    con: duckdb.DuckDBPyConnection, settings: Settings, chunks: Chunks
) -> Effect | None:
    """Return what new chunks will change; None if the index has too little to learn from."""
    rows = con.execute("SELECT count(*) FROM extractions WHERE extractor = 'llm'").fetchall()
    number, there = min(chunks.number, int(_MOST_TAKEN * rows[0][0])), rows[0][0]
    if not chunks.number or there < 2 * _DRAWS:
        return None
    draws = [_draw(con, settings, number, draw) for draw in range(_DRAWS)]
    return _mean(draws, chunks.number / number)


def learn_extraction(con: duckdb.DuckDBPyConnection, settings: Settings) -> ExtractedChunk | None:
    """Return what extracting from a chunk took as the settings are; None if none has been yet."""
    [(number, size, prompt, completion)] = con.execute(
        _EXTRACTED, {"version": extraction_version(settings)}
    ).fetchall()
    [(of_a_call,)] = con.execute(_CALL).fetchall()
    if not number or not of_a_call:
        return None
    return ExtractedChunk(size, prompt / of_a_call, prompt, completion)


def _draw(con: duckdb.DuckDBPyConnection, settings: Settings, number: int, draw: int) -> Effect:
    con.execute(_TAKEN, {"draw": str(draw), "number": number})
    con.execute(_GAINED)
    entities, relationships = (con.execute(sql).fetchall()[0] for sql in (_TEXTS, _PAIRS))
    [(merges,)] = con.execute(_MERGED).fetchall()
    reports = _rewritten(con, settings)
    return Effect(
        entities=Amount(entities[0], entities[1] / _BYTES_PER_TOKEN),
        relationships=Amount(relationships[0], relationships[1] / _BYTES_PER_TOKEN),
        merges=merges,
        reports=Amount(len(reports), int(reports["context_tokens"].sum())),
        report_texts=Amount(len(reports), int(reports["n_bytes"].sum()) / _BYTES_PER_TOKEN),
    )


def _rewritten(con: duckdb.DuckDBPyConnection, settings: Settings) -> pl.DataFrame:
    """Return the reports (of ``_REPORTS``) of which more than may be outdated would have changed.

    Deepest level first, for a report may be part of another.
    """
    elements, reports = con.sql(_ELEMENTS).pl(), con.sql(_REPORTS).pl()
    writer = report_writer(settings)
    most = settings.reports.max_outdated if writer and writer.is_paid else 0.0
    changes = pl.DataFrame(schema={"element_id": pl.String, "change": pl.Float64})
    rewritten = []
    for level in sorted(reports["level"].unique(), reverse=True):
        own = elements.filter(pl.col("level") == level)
        own = own.join(changes, on="element_id", how="left").with_columns(
            pl.when(pl.col("kind") == "report")
            .then(pl.col("change").fill_null(0.0))
            .otherwise(pl.col("gained") / pl.col("support"))
            .alias("change")
        )
        shares = own.group_by("community_id").agg(
            share=(pl.col("n_tokens") * pl.col("change")).sum() / pl.col("n_tokens").sum(),
            change=pl.col("gained").sum() / pl.col("support").sum(),
        )
        late = reports.filter(pl.col("level") == level).join(shares, on="community_id")
        late = late.filter((pl.col("share") > 0) & (pl.col("share") + pl.col("outdated") > most))
        changes = pl.concat(
            [changes, late.select(element_id="community_id", change=pl.col("change"))]
        )
        rewritten.append(late.select(reports.columns))
    return pl.concat(rewritten) if rewritten else reports


def _mean(draws: Sequence[Effect], factor: float) -> Effect:
    def mean(amounts: Sequence[Amount]) -> Amount:
        number = sum(amount.number for amount in amounts) / len(amounts)
        tokens = sum(amount.tokens for amount in amounts) / len(amounts)
        return Amount(number, tokens).times(factor)

    return Effect(
        entities=mean([draw.entities for draw in draws]),
        relationships=mean([draw.relationships for draw in draws]),
        merges=factor * sum(draw.merges for draw in draws) / len(draws),
        reports=mean([draw.reports for draw in draws]),
        report_texts=mean([draw.report_texts for draw in draws]),
    )
