"""Chunks that are still to be extracted, as an extractor is given them.

A model reads the text of a chunk. An extractor by rule also reads what its blocks are, what its
record and its document are called and where this ends; where these change, it reads a chunk again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import duckdb
import polars as pl

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.extraction.extractors import extraction_version
from graphrag_pipeline.ingest.chunk_blocks import chunk_blocks
from graphrag_pipeline.ingest.staging import of_batch
from graphrag_pipeline.store.frames import drop_rows, put_rows

EXTRACTED = """
SELECT chunk_id AS id FROM extractions
WHERE extractor = 'import' OR (tried_version = $version AND status = 'ok')
"""
"""The chunks of which nothing is to be extracted under a version (parameter ``version``)."""
# What its document is called counts for a chunk that links to others.
_HAS_LINKS = "contains(c.text, '](') AS has_links"
_DOCUMENTS, _CHUNKS, _BLOCKS = (
    f"SELECT * FROM ({of_batch(table)}) WHERE {key} >= $first AND ($last = '' OR {key} < $last)"
    for table, key in (("documents", "id"), ("chunks", "document_id"), ("blocks", "document_id"))
)
_TODO = f"""
SELECT c.id, c.document_id, c.start_char, c.end_char, c.text, d.title,
       d.metadata::VARCHAR AS metadata, {_HAS_LINKS}
FROM ({_CHUNKS}) c JOIN ({_DOCUMENTS}) d ON d.id = c.document_id
ANTI JOIN ({EXTRACTED} EXCEPT FROM read_otherwise) done ON c.id = done.id
ORDER BY c.human_readable_id
"""
_READ_AGAIN = f"""
SELECT id, document_id, start_char, end_char, {_HAS_LINKS} FROM ({_CHUNKS}) c
SEMI JOIN ({EXTRACTED}) done USING (id)
WHERE document_id IN (SELECT id FROM staging.documents WHERE batch = $key)
"""
# Another batch that waits for the graph may have extracted from a chunk under other blocks.
_STAGED_ELSEWHERE = "SELECT chunk_id AS id FROM staging.extractions WHERE batch <> $key"
# What a record is called: the value of the line that names it; of facts, the document's title.
_SUBJECTS = """
SELECT document_id, trim(regexp_replace(regexp_replace(
           substr(text, start_char + 1, end_char - start_char), '^.*?: ', ''), '\\s+', ' ', 'g')
       ) AS subject
FROM ({blocks}) b JOIN (SELECT id AS document_id, text FROM ({documents})) d USING (document_id)
WHERE kind = 'title'
UNION ALL
SELECT document_id, trim(regexp_replace(title, '\\s+', ' ', 'g'))
FROM (SELECT DISTINCT document_id FROM ({blocks}) WHERE kind = 'fact') b
JOIN (SELECT id AS document_id, title FROM ({documents})) d USING (document_id)
"""
_TAKEN_IN = {
    "documents": "SELECT * FROM main.documents WHERE id IN (SELECT unnest($ids))",
    "blocks": "SELECT * FROM main.blocks WHERE document_id IN (SELECT unnest($ids))",
}
_NOT_BY_RULE = ("llm", "import")
_MOST_CHUNKS = 100_000
_MOST_PARTS = 256

Part = tuple[str, str]
"""The documents of a batch whose ids do not come before the first, but before the last if any."""
WHOLE: Part = ("", "")


@dataclass(frozen=True)
class Marks:
    """Facts known of documents beside their text.

    ``lengths`` are (document_id, n_chars, title), ``subjects`` (document_id, subject), ``blocks``
    (document_id, start_char, end_char, kind).
    """

    lengths: pl.DataFrame
    subjects: pl.DataFrame
    blocks: pl.DataFrame


def parts_of(con: duckdb.DuckDBPyConnection, settings: Settings, key: str) -> Sequence[Part]:
    """Return the parts of a batch that are read one after the other.

    Only one of very many chunks has several, if they are extracted from by rule.
    """
    chunks = con.sql(f"SELECT count(*) FROM ({of_batch('chunks')})", params={"key": key})
    ((n_chunks,),) = chunks.fetchall()
    n_parts = min(math.ceil(n_chunks / _MOST_CHUNKS), _MOST_PARTS)
    if n_parts <= 1 or settings.extraction.extractor in _NOT_BY_RULE:
        return [WHOLE]
    between = [f"{_MOST_PARTS * part // n_parts:02x}" for part in range(1, n_parts)]
    return list(pairwise(["", *between, ""]))


def chunks_to_extract(
    con: duckdb.DuckDBPyConnection, settings: Settings, key: str, version: str, part: Part = WHOLE
) -> pl.DataFrame:
    """Return the chunks of a part of a batch, with the columns that ``extract`` is given."""
    batch = {"key": key, "first": part[0], "last": part[1]}
    marks = _marks(con, _DOCUMENTS, _BLOCKS, batch)
    otherwise = pl.DataFrame(schema={"id": pl.String})
    if settings.extraction.extractor not in _NOT_BY_RULE:
        again = con.execute(_READ_AGAIN, {**batch, "version": version}).pl()
        staged = con.execute(_STAGED_ELSEWHERE, {"key": key}).pl()
        otherwise = pl.concat([_read_otherwise(con, again, marks), staged])
    put_rows(con, "read_otherwise", otherwise)
    todo = con.execute(_TODO, {**batch, "version": version}).pl()
    drop_rows(con, "read_otherwise")
    return _given(todo, marks).with_columns(
        text=todo["text"], context=_contexts(todo, settings.chunks.prepend_metadata)
    )


def _contexts(chunks: pl.DataFrame, fields: Sequence[str]) -> pl.Series | pl.Expr:
    if not fields:
        return pl.lit("")
    about = chunks.select("title", "metadata").iter_rows()
    return pl.Series([shown_metadata(fields, *row) for row in about], dtype=pl.String)


def chunks_extracted(
    con: duckdb.DuckDBPyConnection,
    settings: Settings,
    chunks: pl.DataFrame,
    documents: pl.DataFrame,
    blocks: pl.DataFrame,
) -> pl.DataFrame:
    """Return the chunks (id) that need no extraction once documents are as they were read now.

    ``chunks`` are theirs; ``documents`` have ``id``, ``n_chars``, ``title``, ``text``.
    """
    extracted = con.execute(EXTRACTED, {"version": extraction_version(settings)}).pl()
    if settings.extraction.extractor in _NOT_BY_RULE:
        return extracted
    is_titled = pl.col("id").is_in(blocks.filter(kind="title")["document_id"].implode())
    text = pl.when(is_titled).then("text").otherwise(pl.lit(""))
    put_rows(con, "read_documents", documents.select("id", "n_chars", "title", text.alias("text")))
    put_rows(con, "read_blocks", blocks)
    marks = _marks(con, "FROM read_documents", "FROM read_blocks", {})
    drop_rows(con, "read_documents", "read_blocks")
    has_links = pl.col("text").str.contains("](", literal=True)
    again = chunks.join(extracted, on="id", how="semi").with_columns(has_links=has_links)
    return extracted.join(_read_otherwise(con, again, marks), on="id", how="anti")


def shown_metadata(fields: Sequence[str], title: str, metadata: str) -> str:
    """Return the lines of metadata that a model is shown before a chunk."""
    values = {**json.loads(metadata), "title": title} if fields else {}
    return "".join(f"{name}: {values[name]}\n" for name in fields if name in values)


def _marks(
    con: duckdb.DuckDBPyConnection, documents: str, blocks: str, params: Mapping[str, object]
) -> Marks:
    """Return the marks of the documents that two queries give."""
    given = dict(params)
    lengths = f"SELECT id AS document_id, n_chars, title FROM ({documents})"
    subjects = _SUBJECTS.format(documents=documents, blocks=blocks)
    spans = "document_id, start_char, end_char, kind"
    return Marks(
        lengths=con.execute(lengths, given).pl(),
        subjects=con.execute(subjects, given).pl(),
        blocks=con.execute(f"SELECT {spans} FROM ({blocks})", given).pl(),
    )


def _read_otherwise(
    con: duckdb.DuckDBPyConnection, chunks: pl.DataFrame, marks: Marks
) -> pl.DataFrame:
    """Return those of the chunks (id) whose marks are not those that the graph has."""
    if chunks.is_empty():
        return chunks.select("id")
    ids = {"ids": chunks["document_id"].unique().to_list()}
    before, now = _given(chunks, _marks(con, **_TAKEN_IN, params=ids)), _given(chunks, marks)
    about = [side.drop("blocks") for side in (before, now)]
    blocks = [
        side.select("id", "blocks").explode("blocks").unnest("blocks") for side in (before, now)
    ]
    differing = [
        side.join(other, on=side.columns, how="anti", nulls_equal=True).select("id")
        for pair in (about, blocks)
        for side, other in (pair, pair[::-1])
    ]
    return pl.concat(differing).unique()


def _given(chunks: pl.DataFrame, marks: Marks) -> pl.DataFrame:
    """Return (id, subject, title, is_first, is_last, blocks) of chunks, in their order.

    The title is null where a chunk links to nothing.
    """
    with_marks = (
        chunks.drop("title", strict=False)
        .join(marks.lengths, "document_id", how="left", maintain_order="left")
        .join(marks.subjects, "document_id", how="left", maintain_order="left")
    )
    return with_marks.select(
        "id",
        "subject",
        title=pl.when("has_links").then("title"),
        is_first=pl.col("start_char") == 0,
        is_last=pl.col("end_char") == pl.col("n_chars"),
        blocks=chunk_blocks(chunks, marks.blocks),
    )
