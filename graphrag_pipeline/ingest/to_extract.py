"""What is to be extracted: the chunks without an extraction, and what an extractor is given.

A model reads the text of a chunk. An extractor by rule also reads what its blocks are, what its
record is called and where its document ends; where these change, it reads a chunk again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import polars as pl

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.extraction.extractors import extraction_version
from graphrag_pipeline.ingest.chunk_blocks import chunk_blocks
from graphrag_pipeline.ingest.staging import of_batch

EXTRACTED = """
SELECT chunk_id AS id FROM extractions
WHERE extractor = 'import' OR (tried_version = $version AND status = 'ok')
"""
"""The chunks of which nothing is to be extracted under a version (parameter ``version``)."""
_TODO = f"""
SELECT c.id, c.document_id, c.start_char, c.end_char, c.text, d.title,
       d.metadata::VARCHAR AS metadata
FROM ({of_batch("chunks")}) c JOIN ({of_batch("documents")}) d ON d.id = c.document_id
ANTI JOIN ({EXTRACTED} EXCEPT FROM read_otherwise) done ON c.id = done.id
ORDER BY c.human_readable_id
"""
_READ_AGAIN = f"""
SELECT id, document_id, start_char, end_char FROM ({of_batch("chunks")}) c
SEMI JOIN ({EXTRACTED}) done USING (id)
WHERE document_id IN (SELECT id FROM staging.documents WHERE batch = $key)
"""
# Another batch that waits for the graph may have extracted from a chunk under other blocks.
_STAGED_ELSEWHERE = "SELECT chunk_id AS id FROM staging.extractions WHERE batch <> $key"
# What a record is called: the value of the line that names it.
_SUBJECTS = """
SELECT document_id, trim(regexp_replace(regexp_replace(
           substr(text, start_char + 1, end_char - start_char), '^.*?: ', ''), '\\s+', ' ', 'g')
       ) AS subject
FROM ({blocks}) b JOIN (SELECT id AS document_id, text FROM ({documents})) d USING (document_id)
WHERE kind = 'title'
"""
_TAKEN_IN = {
    "documents": "SELECT * FROM main.documents WHERE id IN (SELECT unnest($ids))",
    "blocks": "SELECT * FROM main.blocks WHERE document_id IN (SELECT unnest($ids))",
}
_NOT_BY_RULE = ("llm", "import")


@dataclass(frozen=True)
class Marks:
    """What is known of documents beside their text.

    ``lengths`` are (document_id, n_chars), ``subjects`` (document_id, subject), ``blocks`` rows of
    the table of that name.
    """

    lengths: pl.DataFrame
    subjects: pl.DataFrame
    blocks: pl.DataFrame


def chunks_to_extract(
    con: duckdb.DuckDBPyConnection, settings: Settings, key: str, version: str
) -> pl.DataFrame:
    """Return a batch's chunks to extract from, with the columns that ``extract`` is given."""
    batch = {"key": key}
    marks = _marks(con, of_batch("documents"), of_batch("blocks"), batch)
    otherwise = pl.DataFrame(schema={"id": pl.String})
    if settings.extraction.extractor not in _NOT_BY_RULE:
        again = con.sql(_READ_AGAIN, params={**batch, "version": version}).pl()
        staged = con.sql(_STAGED_ELSEWHERE, params=batch).pl()
        otherwise = pl.concat([_read_otherwise(con, again, marks), staged])
    con.register("read_otherwise", otherwise)
    todo = con.sql(_TODO, params={**batch, "version": version}).pl()
    con.unregister("read_otherwise")
    fields, about = settings.chunks.prepend_metadata, todo["title", "metadata"].rows()
    contexts = [shown_metadata(fields, title, metadata) for title, metadata in about]
    return _given(todo, marks).with_columns(
        text=todo["text"], context=pl.Series(contexts, dtype=pl.String)
    )


def chunks_extracted(
    con: duckdb.DuckDBPyConnection,
    settings: Settings,
    chunks: pl.DataFrame,
    documents: pl.DataFrame,
    blocks: pl.DataFrame,
) -> pl.DataFrame:
    """Return the chunks (id) that need no extraction once documents are as they were read now.

    ``chunks`` are theirs; ``documents`` have ``id``, ``n_chars`` and ``text``.
    """
    extracted = con.sql(EXTRACTED, params={"version": extraction_version(settings)}).pl()
    if settings.extraction.extractor in _NOT_BY_RULE:
        return extracted
    con.register("read_documents", documents)
    con.register("read_blocks", blocks)
    marks = _marks(con, "FROM read_documents", "FROM read_blocks", {})
    for name in ("read_documents", "read_blocks"):
        con.unregister(name)
    again = chunks.join(extracted, on="id", how="semi")
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
    lengths = f"SELECT id AS document_id, n_chars FROM ({documents})"
    subjects = _SUBJECTS.format(documents=documents, blocks=blocks)
    return Marks(
        lengths=con.sql(lengths, params=given).pl(),
        subjects=con.sql(subjects, params=given).pl(),
        blocks=con.sql(f"FROM ({blocks})", params=given).pl(),
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
    """Return (id, subject, is_first, is_last, blocks) of chunks, in their order."""
    with_marks = chunks.join(marks.lengths, "document_id", how="left", maintain_order="left").join(
        marks.subjects, "document_id", how="left", maintain_order="left"
    )
    return with_marks.select(
        "id",
        "subject",
        is_first=pl.col("start_char") == 0,
        is_last=pl.col("end_char") == pl.col("n_chars"),
        blocks=chunk_blocks(chunks, marks.blocks),
    )
