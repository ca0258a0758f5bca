"""Quality of retrieval, by gold passages and gold answers.

A chunk holds a gold passage if both of these are so, where the passage has them: its title is the
document's, or how the document's address ends (a file's name, or a path); its text is in the
chunk's, or the chunk's whole text in it, whatever the white space. So each chunk of a passage that
is longer than chunks counts. A passage cut in two by chunks that each hold only a part is not held.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import polars as pl

from graphrag_evaluation.metrics.answers import (
    NO_ANSWER,
    contains,
    is_polar,
    normalized,
)
from graphrag_pipeline.store.frames import drop_rows, put_rows

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from graphrag_pipeline.query.release import Release

DEPTHS: Final = (2, 5, 10, 20)
"""Recall is measured among so many chunks, best first, as in the HippoRAG papers and beyond."""

RETRIEVAL: Final = tuple(f"{name}@{k}" for k in DEPTHS for name in ("recall", "all_gold"))
"""Scores that gold passages give: the share of them held by the first k chunks, and whether all."""

OF_DOCUMENTS: Final = "document_recall"
"""Recall where passages are documents: chunks of one document count as one."""

BY_DOCUMENT: Final = tuple(f"{OF_DOCUMENTS}@{k}" for k in DEPTHS)
"""The scores that :data:`OF_DOCUMENTS` asks for."""

IN_CONTEXT: Final = "answer_in_context"
"""The score that gold answers give to the context, whatever was answered."""

_CHUNKS = """
SELECT c.id AS chunk_id, d.title, d.uri, c.text FROM chunks c JOIN documents d
ON d.id = c.document_id WHERE c.id IN (SELECT unnest($ids::JSON::VARCHAR[]))
"""
_DOCUMENTS = """
SELECT id AS chunk_id, title, uri, text FROM documents
WHERE id IN (SELECT unnest($ids::JSON::VARCHAR[]))
"""
_DOCUMENT_OF = """
SELECT id, document_id FROM chunks WHERE id IN (SELECT unnest($ids::JSON::VARCHAR[]))
"""
# Python's white space; \s alone is that of ASCII.
_SPACE = r"[\s\pZ\x1c-\x1f\x{85}]+"
_SCORED = """
WITH gold AS (
    SELECT answer_id, chunk_ids, unnest(list_distinct(passages)) AS passage,
           len(list_distinct(passages)) AS n_gold
    FROM asked
), numbered AS MATERIALIZED (
    SELECT *, row_number() OVER () AS n,
           lower(trim(regexp_replace(passage.title, $space, ' ', 'g'))) AS wanted_title,
           trim(regexp_replace(passage."text", $space, ' ', 'g')) AS wanted_text FROM gold
), ranked AS (
    SELECT answer_id, n, wanted_title, wanted_text,
           unnest(chunk_ids) AS chunk_id, generate_subscripts(chunk_ids, 1) AS place FROM numbered
), plain AS (
    SELECT chunk_id, lower('/' || uri) AS uri,
           lower(trim(regexp_replace(title, $space, ' ', 'g'))) AS title,
           trim(regexp_replace("text", $space, ' ', 'g')) AS "text" FROM retrieved_chunks
), held AS (
    SELECT answer_id, n, min(place) AS place FROM ranked JOIN plain USING (chunk_id)
    WHERE (wanted_title = '' OR wanted_title = title OR ends_with(uri, '/' || wanted_title))
      AND (wanted_text = '' OR contains("text", wanted_text)
           OR ("text" <> '' AND contains(wanted_text, "text")))
    GROUP BY ALL
), counted AS (
    SELECT answer_id, k, any_value(n_gold) AS n_gold, count(*) FILTER (place <= k) AS n_held
    FROM numbered LEFT JOIN held USING (answer_id, n), (SELECT unnest($depths) AS k)
    GROUP BY ALL
)
SELECT answer_id, 'recall@' || k AS metric, n_held / n_gold AS value FROM counted UNION ALL
SELECT answer_id, 'all_gold@' || k, (n_held = n_gold)::INTEGER::DOUBLE FROM counted
"""


def chunks_of(release: Release, ids: Sequence[str]) -> pa.Table:
    """Return (chunk_id, title, uri, text) of chunks: title and uri are their document's."""
    return release.columns(_CHUNKS, ids=list(ids))


def document_scores(
    con: duckdb.DuckDBPyConnection, questions: pl.DataFrame, release: Release
) -> list[tuple[str, str, float]]:
    """Return (answer_id, metric, value) by the ``BY_DOCUMENT`` metrics; see below for questions.

    A document comes where the first of its chunks comes. It is a gold passage by its title and
    text, as a chunk is, whichever of its chunks were retrieved.
    """
    ids = questions["chunk_ids"].explode().drop_nulls().unique().to_list()
    of = {row["id"]: row["document_id"] for row in release.rows(_DOCUMENT_OF, ids=ids)}
    ranked = [
        [*dict.fromkeys(of[id] for id in chunk_ids if id in of)][: max(DEPTHS)]
        for chunk_ids in questions["chunk_ids"].to_list()
    ]
    documents = sorted({id for each in ranked for id in each})
    rows = questions.with_columns(chunk_ids=pl.Series(ranked, dtype=pl.List(pl.String)))
    texts = release.columns(_DOCUMENTS, ids=documents)
    return [
        (answer, metric.replace("recall", OF_DOCUMENTS), value)
        for answer, metric, value in retrieval_scores(con, rows.to_arrow(), texts)
        if metric.startswith("recall@")
    ]


def retrieval_scores(
    con: duckdb.DuckDBPyConnection, questions: pa.Table, chunks: pa.Table
) -> list[tuple[str, str, float]]:
    """Return (answer_id, metric, value) by the ``RETRIEVAL`` metrics.

    ``questions`` has answer_id, chunk_ids, best first, and passages, at least one;
    ``chunks`` are those retrieved, see :func:`chunks_of`.
    """
    put_rows(con, "asked", questions)
    put_rows(con, "retrieved_chunks", chunks)
    try:
        return con.execute(_SCORED, {"depths": list(DEPTHS), "space": _SPACE}).fetchall()
    finally:
        drop_rows(con, "asked", "retrieved_chunks")


def answer_in_context(context: str, gold: Sequence[str]) -> float | None:
    """Return whether a gold answer stands in the context, as rag_vs_graphrag's appendix A.3 asks.

    Both normalised, as whole words. None where there is no answer, or it is yes or no, which every
    text holds.
    """
    if is_polar(gold) or not set(NO_ANSWER).isdisjoint(gold):
        return None
    text = normalized(context)
    return float(any(contains(text, normalized(reference)) for reference in gold))
