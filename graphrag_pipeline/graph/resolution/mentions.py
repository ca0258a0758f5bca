"""What resolution reads: the mentions that the next fold of the graph will see."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from graphrag_pipeline.graph.resolution.names import take_apart
from graphrag_pipeline.graph.resolution.pairs import Entity
from graphrag_pipeline.ingest.staging import plan_take_in
from graphrag_pipeline.store.hashing import rows_hash
from graphrag_pipeline.store.index_store import IndexStore

# The type as the graph's fold chooses it; the title that most chunks give.
_ENTITIES = """
WITH titled AS (
    SELECT entity_id, arg_max(title, (n, length(title), title)) AS title FROM (
        SELECT entity_id, title, count(DISTINCT chunk_id) AS n
        FROM next_entity_mentions GROUP BY ALL)
    GROUP BY entity_id),
typed AS (
    SELECT entity_id, arg_max(type, (type NOT IN ('CONCEPT', 'DATE', 'OTHER'), n, type)) AS type
    FROM (SELECT entity_id, type, count(*) AS n FROM next_entity_mentions GROUP BY ALL)
    GROUP BY entity_id),
told AS (
    SELECT entity_id, list(DISTINCT chunk_id) AS chunks,
           list(DISTINCT document_id) AS documents,
           arg_max(m.description, (length(m.description), m.description)) AS description,
           bool_or(extractor = 'import') AS imported
    FROM next_entity_mentions m JOIN next_extractions USING (chunk_id)
    JOIN next_chunks c ON c.id = m.chunk_id
    GROUP BY entity_id)
SELECT entity_id, title, type, chunks, documents, description, imported
FROM titled JOIN typed USING (entity_id) JOIN told USING (entity_id) ORDER BY entity_id
"""
_HASHED = "chunk_id, entity_id, title, type, description"
# "World Health Organization (WHO)" and "WHO (World Health Organization)". What may stand in a name
# is asked of the few that are found: to repeat \p{L} takes longer than to search a small corpus.
_STATED = r"""
WITH before AS (
    SELECT unnest(regexp_extract_all(
        text, '(?:[^\s()]+\s+){1,8}\((?:[A-Z]\.?){2,7}s?\)')) AS phrase FROM next_chunks
), after AS (
    SELECT unnest(regexp_extract_all(
        text, '\b(?:[A-Z]\.?){2,7}\s+\([^()]{5,90}\)')) AS phrase FROM next_chunks
), found AS (
    SELECT regexp_extract(phrase, '\(([^)]*)\)', 1) AS acronym, trim(regexp_extract(
        phrase, '([\p{L}\d''’&-][\p{L}\d''’&\s-]*)\(', 1)) AS text FROM before
    UNION
    SELECT trim(regexp_extract(phrase, '^([^(]*)\(', 1)), regexp_extract(phrase, '\(([^)]*)\)', 1)
    FROM after WHERE regexp_matches(phrase, '\([\p{L}\d''’& -]+\)'))
FROM found WHERE text <> '' ORDER BY ALL
"""


@dataclass(frozen=True)
class Mentioned:
    """Every entity before merging, as rows, and the acronyms that the text explains."""

    rows: Sequence[tuple[Any, ...]]
    stated: Sequence[tuple[str, str]]

    def entities(self, *, keep_imported: bool) -> list[Entity]:
        """Return the entities; with ``keep_imported``, imported ones are closed to rules."""
        return [
            Entity(
                id=id,
                name=take_apart(title, kind),
                chunks=frozenset(chunks),
                documents=frozenset(documents),
                description=description,
                is_open=not (imported and keep_imported),
            )
            for id, title, kind, chunks, documents, description, imported in self.rows
        ]


@contextlib.contextmanager
def as_the_graph_will_see(store: IndexStore) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection to the index with views of it as it will be, finished batches taken in.

    The graph takes them in, in the transaction that rebuilds it.
    """
    with store.read() as con:
        plan_take_in(con)
        yield con


def mentions_hash(con: duckdb.DuckDBPyConnection, table: str = "entity_mentions") -> str:
    """Return a hash of all mentions of entities, in a table or view of them."""
    row = con.execute(f"SELECT {rows_hash(table, _HASHED)}").fetchone()
    return str(row[0]) if row else ""


def read_mentions(con: duckdb.DuckDBPyConnection) -> Mentioned:
    """Read what to resolve."""
    return Mentioned(con.execute(_ENTITIES).fetchall(), con.execute(_STATED).fetchall())
