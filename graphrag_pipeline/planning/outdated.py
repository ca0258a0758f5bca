"""Contents of an index, and the parts of it that the next run will make again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import duckdb
import polars as pl

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.extraction.estimate import chunks_of, guess_entities, learn_extraction
from graphrag_pipeline.extraction.extractors import extraction_version
from graphrag_pipeline.graph.communities import communities_current
from graphrag_pipeline.graph.descriptions import Descriptions, descriptions_to_merge
from graphrag_pipeline.ingest.documents import BatchDocuments
from graphrag_pipeline.ingest.to_extract import EXTRACTED, chunks_extracted
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.llm.estimates import Chunks, Growth
from graphrag_pipeline.planning.learned import learn_effect
from graphrag_pipeline.reports.inputs import MIN_SIZE
from graphrag_pipeline.reports.levels import outdated_reports, reports_current
from graphrag_pipeline.reports.model_writer import report_writer
from graphrag_pipeline.store.frames import value_of
from graphrag_pipeline.store.index_store import count_rows
from graphrag_pipeline.structures.registry import (
    counts,
    current_structures,
    made_vector_tables,
    wanted_structures,
)
from graphrag_pipeline.structures.vector_tables import stale_tables, texts_of

_STAGED = """
SELECT c.id, c.n_tokens FROM staging.chunks c JOIN staging.extractions x ON x.chunk_id = c.id
WHERE x.version = $version AND x.status <> 'failed'
"""
_STAGED_SOURCES = """
SELECT uri FROM batch_sources SEMI JOIN (
    SELECT batch FROM batch_stages WHERE stage = 'extractions' AND staged) USING (batch)
"""
_LOST = """
SELECT c.id, c.n_tokens FROM chunks c JOIN documents d ON d.id = c.document_id
WHERE d.source IN (SELECT unnest($sources)) AND c.id NOT IN (SELECT unnest($kept))
"""
_REPORTED = f"SELECT id FROM communities WHERE size >= {MIN_SIZE}"
_OF_CHUNKS = f"""
SELECT DISTINCT m.community_id FROM entity_chunks JOIN community_members m USING (entity_id)
SEMI JOIN ({_REPORTED}) c ON c.id = m.community_id
WHERE chunk_id IN (SELECT unnest($ids))
"""
_OF_DESCRIPTIONS = f"""
SELECT DISTINCT m.community_id FROM community_members m
SEMI JOIN ({_REPORTED}) c ON c.id = m.community_id
WHERE m.entity_id IN (
    SELECT unnest($ids) UNION
    SELECT source_id FROM relationships WHERE id IN (SELECT unnest($ids)))
"""
_CONTEXT = "SELECT avg(context_tokens) FROM community_reports WHERE writer <> 'import'"
_COMMUNITIES_OF_A_CHUNK = f"""
SELECT count(DISTINCT (chunk_id, m.community_id)) / nullif(count(DISTINCT chunk_id), 0)
FROM entity_chunks JOIN community_members m USING (entity_id)
SEMI JOIN ({_REPORTED}) c ON c.id = m.community_id
"""


@dataclass(frozen=True, kw_only=True)
class IndexState:
    """State of an index: what is there, and what the next run finds outdated in it.

    ``net_chunks`` are the chunks to come less the ``n_lost`` ones that go.
    ``outdated`` are the communities to report on again for what is known by now; a new chunk
    touches ``of_a_chunk`` of all ``communities``, on average. ``growth`` has what needs no more to
    be known than the index.
    """

    staged: Chunks = field(default_factory=Chunks)
    n_lost: int = 0
    net_chunks: float = 0.0
    communities: int = 0
    of_a_chunk: float = 0.0
    outdated: frozenset[str] = frozenset()
    report_tokens: float | None = None
    merges: Sequence[Descriptions] = ()
    texts: Sequence[str] = ()
    failed_reports: int = 0
    growth: Growth = field(default_factory=Growth)


def look_at_index(
    con: duckdb.DuckDBPyConnection,
    settings: Settings,
    sources: Collection[str],
    unchanged: pl.DataFrame,
    todo: pl.DataFrame,
    *,
    recluster: bool,
) -> IndexState:
    """Return the state of an index before a run that reads some files.

    ``sources`` are the files that were changed or removed, ``unchanged`` the chunks (id) of their
    new versions, ``todo`` those (id, n_tokens, text) to extract from.
    """
    staged = _staged(con, settings)
    lost_chunks = con.execute(
        _LOST,
        {
            "sources": [*sources, *_ids(con, _STAGED_SOURCES)],
            "kept": [*unchanged["id"], *staged["id"]],
        },
    ).pl()
    coming = pl.concat([todo.select("id", "n_tokens"), staged])
    coming = coming.join(con.sql("SELECT id FROM chunks").pl(), on="id", how="anti")
    merges: Sequence[Descriptions] = ()
    if settings.graph.summaries == "llm":
        merges = descriptions_to_merge(con, settings.graph.max_description_tokens)
    outdated, report_tokens = _outdated(con, settings, recluster=recluster)
    outdated |= set(_ids(con, _OF_CHUNKS, ids=lost_chunks["id"].to_list()))
    outdated |= set(_ids(con, _OF_DESCRIPTIONS, ids=[merge.id for merge in merges]))
    effect = learn_effect(con, settings, chunks_of(coming))
    return IndexState(
        staged=chunks_of(staged),
        n_lost=len(lost_chunks),
        net_chunks=chunks_of(coming).full - chunks_of(lost_chunks).full,
        communities=len(_ids(con, _REPORTED)),
        of_a_chunk=value_of(con, _COMMUNITIES_OF_A_CHUNK) or 0,
        outdated=frozenset(outdated),
        report_tokens=report_tokens,
        merges=merges,
        texts=_texts_to_embed(con, settings),
        failed_reports=count_rows(con, "report_failures"),
        growth=Growth(
            indexed=chunks_of(con.sql("SELECT n_tokens FROM chunks").pl()),
            rows=counts(con, wanted_structures(settings)),
            current=current_structures(con, settings),
            effect=effect,
            entities=0.0 if effect else guess_entities(_coming_texts(con, todo, staged)),
            extracted=learn_extraction(con, settings),
            mean_context=value_of(con, _CONTEXT),
        ),
    )


def _coming_texts(
    con: duckdb.DuckDBPyConnection, todo: pl.DataFrame, staged: pl.DataFrame
) -> pl.DataFrame:
    """Return the chunks (id, text, n_tokens) that the graph will take in."""
    texts = con.sql("SELECT id, text FROM staging.chunks").pl()
    return pl.concat(
        [
            todo.select("id", "text", "n_tokens"),
            staged.join(texts.unique("id"), on="id").select("id", "text", "n_tokens"),
        ]
    )


def extracted(
    con: duckdb.DuckDBPyConnection, settings: Settings, chunks: pl.DataFrame, read: BatchDocuments
) -> pl.DataFrame:
    """Return the chunks (id) that have an extraction, in the graph or waiting for it.

    ``chunks`` are those of what was ``read`` now: where an extractor by rule is given another
    thing than before, they have none.
    """
    documents = read.documents.select("id", "n_chars", "title", "text")
    extracted_before = chunks_extracted(con, settings, chunks, documents, read.blocks)
    return pl.concat([extracted_before, _staged(con, settings).select("id")])


def _staged(con: duckdb.DuckDBPyConnection, settings: Settings) -> pl.DataFrame:
    """Return the chunks (id, n_tokens) that are extracted and that the graph has not taken in."""
    version = {"version": extraction_version(settings)}
    extracted_before = con.execute(EXTRACTED, version).pl()
    return con.execute(_STAGED, version).pl().join(extracted_before, on="id", how="anti")


def _outdated(
    con: duckdb.DuckDBPyConnection, settings: Settings, *, recluster: bool
) -> tuple[set[str], float | None]:
    """Return the communities to report on again, and the tokens of a context on average."""
    writer = report_writer(settings)
    tokens = value_of(con, _CONTEXT)
    if recluster or not communities_current(con, settings.communities):
        return set(_ids(con, _REPORTED)), tokens
    if reports_current(con, settings.reports, writer):
        return set(_ids(con, "SELECT community_id FROM report_failures")), tokens
    outdated = outdated_reports(con, settings.reports, writer)
    if outdated:
        tokens = sum(outdated.values()) / len(outdated)
    return set(outdated), tokens


def _texts_to_embed(con: duckdb.DuckDBPyConnection, settings: Settings) -> list[str]:
    """Return the texts of the vector tables that are not those of the configured model."""
    if settings.embeddings.embedder == "hashing":
        return []
    tables = made_vector_tables(con, settings)
    stale = stale_tables(con, configured_embedder(settings).name, tables)
    return [text for table in stale for text in texts_of(con, table)]


def _ids(con: duckdb.DuckDBPyConnection, query: str, **values: list[str]) -> list[str]:
    return [id for (id,) in con.execute(query, values).fetchall()]
