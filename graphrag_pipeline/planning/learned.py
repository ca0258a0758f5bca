"""Growth of an index with more chunks, learned from the chunks it has.

Chunks of the index are looked at as if they were the new ones: what rests on them alone would be
new, what rests on others too would change by their share of its evidence. So a corpus in which all
speak of the same people is told from one in which each document has its own.
"""

from __future__ import annotations

import duckdb
import polars as pl

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.tokens import BYTES_PER_TOKEN
from graphrag_pipeline.llm.estimates import Amount, Chunks, Effect
from graphrag_pipeline.reports.model_writer import report_writer

_FEWEST = 14
_MOST_TAKEN = 0.5
_MOST_DRAWS = 64
_MOST_CHUNKS = 20_000
# Disjoint draws of whole documents, of so many chunks on average: the chunks of one document name
# the same things, so a part of it would find most of what it names there already.
_TAKEN = """
CREATE OR REPLACE TEMP TABLE taken AS
WITH there AS (
    SELECT id, document_id, ordinal, row_number() OVER of_document AS place
    FROM chunks SEMI JOIN extractions x ON x.chunk_id = chunks.id AND x.extractor = 'llm'
    WINDOW of_document AS (PARTITION BY document_id ORDER BY ordinal)),
in_order AS (
    SELECT id, place,
           row_number() OVER (ORDER BY md5(document_id), document_id, ordinal) AS number
    FROM there WHERE place <= $number)
SELECT id AS chunk_id, (number - place) // $number AS draw
FROM in_order WHERE (number - place) // $number < $draws
"""
_GAINED = """
CREATE OR REPLACE TEMP TABLE gained AS
SELECT draw, 'entity' AS kind, entity_id AS id, count(DISTINCT chunk_id) AS number
FROM entity_chunks JOIN taken USING (chunk_id) GROUP BY ALL
UNION ALL SELECT draw, 'relationship', relationship_id, count(DISTINCT chunk_id)
FROM relationship_chunks JOIN taken USING (chunk_id) GROUP BY ALL
UNION ALL SELECT draw, 'claim', claims.id, 1 FROM claims JOIN taken USING (chunk_id)
"""
_TEXTS = """
SELECT count(*), coalesce(sum(strlen(title) + strlen(description)), 0)
FROM gained JOIN entities USING (id) WHERE kind = 'entity'
"""
_PAIRS = """
SELECT count(*), coalesce(sum(strlen(source) + strlen(target) + strlen(description)), 0)
FROM gained JOIN relationships USING (id) WHERE kind = 'relationship'
"""
_MERGED = "SELECT count(*) FROM gained SEMI JOIN description_summaries USING (id)"
# What of each report would have changed, by tokens and by the chunks that its elements rest on.
_CHANGES = """
SELECT draw, community_id, sum(n_tokens * least(number, support) / support) AS tokens,
       sum(least(number, support))::DOUBLE AS gained
FROM report_elements e JOIN gained g ON g.kind = e.kind AND g.id = e.element_id GROUP BY ALL
"""
# The parts of communities that would have been too small to have parts.
_DIVIDED = """
WITH new_members AS (
    SELECT draw, community_id, count(DISTINCT entity_id) AS number
    FROM gained g JOIN entities e ON g.kind = 'entity' AND e.id = g.id AND g.number >= e.frequency
    JOIN community_members ON entity_id = e.id GROUP BY ALL)
SELECT draw, part.id AS community_id
FROM communities part JOIN communities c ON c.id = part.parent_id
JOIN new_members ON new_members.community_id = c.id
WHERE c.size > $most AND c.size - number <= $most
"""
_REPORTS = """
SELECT community_id, level, context_tokens, outdated, n_tokens, strlen(full_content) AS n_bytes,
       whole, support
FROM community_reports JOIN (
    SELECT community_id, sum(n_tokens) AS whole, sum(support) AS support
    FROM report_elements GROUP BY ALL) USING (community_id)
"""
_PARTS = """
SELECT community_id, element_id AS part, n_tokens AS part_tokens FROM report_elements
WHERE kind = 'report'
"""


def learn_effect(
    con: duckdb.DuckDBPyConnection, settings: Settings, chunks: Chunks
) -> Effect | None:
    """Return what new chunks will change; None if the index has too little to learn from.

    Looked at are at most 64 draws, and for few chunks no more than 20,000 chunks in all.
    """
    [(there,)] = con.execute("SELECT count(*) FROM extractions WHERE extractor = 'llm'").fetchall()
    if not chunks.number or there < _FEWEST:
        return None
    number = min(chunks.number, int(_MOST_TAKEN * there))
    draws = min(_MOST_DRAWS, there // number, max(2, _MOST_CHUNKS // number))
    con.execute(_TAKEN, {"number": number, "draws": draws})
    con.execute(_GAINED)
    [(n_taken,)] = con.execute("SELECT count(*) FROM taken").fetchall()
    entities, relationships = (con.execute(sql).fetchall()[0] for sql in (_TEXTS, _PAIRS))
    [(merges,)] = con.execute(_MERGED).fetchall()
    reports = _rewritten(con, settings)
    share = chunks.number / n_taken
    contexts, written = int(reports["context_tokens"].sum()), int(reports["n_bytes"].sum())
    in_a_draw = (
        con.sql("SELECT DISTINCT draw FROM taken")
        .pl()
        .join(reports.group_by("draw").len(), on="draw", how="left")["len"]
        .fill_null(0)
    )
    few, many = (in_a_draw.quantile(q, "nearest") or 0.0 for q in (0.1, 0.9))
    return Effect(
        entities=_texts(entities, share),
        relationships=_texts(relationships, share),
        merges=merges * share,
        reports=Amount(len(reports), contexts).times(share),
        report_texts=_texts((len(reports), written), share),
        few=few * chunks.number / number,
        many=many * chunks.number / number,
    )


def _texts(rows: tuple[int, int], share: float) -> Amount:
    """Return an amount of texts, of which so many have so many bytes, times a share."""
    return Amount(rows[0], rows[1] / BYTES_PER_TOKEN).times(share)


def _rewritten(con: duckdb.DuckDBPyConnection, settings: Settings) -> pl.DataFrame:
    """Return the reports (of ``_REPORTS``), by draw, that would have been written again.

    These are those of which more than may be outdated would have changed. Deepest level first, for
    a report may be part of another.
    """
    reports, changes, parts = (con.sql(sql).pl() for sql in (_REPORTS, _CHANGES, _PARTS))
    most = settings.reports.max_outdated if report_writer(settings).is_model else 0.0
    largest = settings.communities.max_cluster_size
    divided = con.execute(_DIVIDED, {"most": largest}).pl().join(reports, on="community_id")
    made = divided.select(
        "draw", "community_id", tokens=pl.col("whole").cast(pl.Float64), gained=pl.lit(0.0)
    )
    changes = pl.concat([changes, made])
    rewritten = []
    for level in sorted(reports["level"].unique(), reverse=True):
        own = reports.filter(pl.col("level") == level)
        changed = own.join(
            changes.group_by("draw", "community_id").agg(pl.col("tokens", "gained").sum()),
            on="community_id",
        )
        share = pl.col("tokens") / pl.col("whole")
        late = changed.filter((share > 0) & (share + pl.col("outdated") > most))
        change = pl.col("part_tokens") * pl.col("gained") / pl.col("support")
        through = late.rename({"community_id": "part"}).join(parts, on="part")
        above = through.select(
            "draw", "community_id", tokens=change.cast(pl.Float64), gained=pl.lit(0.0)
        )
        changes = pl.concat([changes, above])
        rewritten.append(late)
    return pl.concat(rewritten) if rewritten else divided.clear()
