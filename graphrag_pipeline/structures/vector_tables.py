"""The vector tables brought up to date with the index: what is embedded, and from which text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.store.hashing import rows_hash
from graphrag_pipeline.store.index_store import IndexStore, get_meta, set_meta

VECTORS_FOLDER = "vectors"

_TEXTS = {
    "chunks": """SELECT c.id, d.title || chr(10) || c.text AS text, NULL::INTEGER AS level, c.batch
                 FROM chunks c JOIN documents d ON d.id = c.document_id""",
    "entities": """SELECT id, title || chr(10) || description AS text, NULL::INTEGER AS level,
                   NULL::VARCHAR AS batch FROM entities""",
    "relationships": """SELECT id, source || ' ' || target || chr(10) || description AS text,
                        NULL::INTEGER AS level, NULL::VARCHAR AS batch FROM relationships""",
    "community_reports": """SELECT id, full_content AS text, level, NULL::VARCHAR AS batch
                            FROM community_reports""",
    # A view that groups has no order of its own, and the order decides which call embeds what.
    "facts": """SELECT id, text, NULL::INTEGER AS level, NULL::VARCHAR AS batch FROM facts
                ORDER BY id""",
    "entity_titles": """SELECT id, title AS text, NULL::INTEGER AS level, NULL::VARCHAR AS batch
                        FROM entities""",
    "hirag_entities": """SELECT id, title || chr(10) || description AS text, layer AS level,
                         NULL::VARCHAR AS batch FROM hirag_entities""",
    "raptor_nodes": """SELECT id, text, layer AS level, NULL::VARCHAR AS batch
                       FROM raptor_nodes""",
    "attributed_communities": """SELECT id, title || chr(10) || summary AS text, level,
                                 NULL::VARCHAR AS batch
                                 FROM attributed_communities WHERE full_content IS NOT NULL""",
}
OPTIONAL = ("facts", "entity_titles", "attributed_communities", "raptor_nodes", "hirag_entities")
"""The vector tables that only some methods need: kept where the settings ask for them."""
TABLES = tuple(table for table in _TEXTS if table not in OPTIONAL)
"""The vector tables of every index."""


@dataclass(frozen=True)
class VectorChanges:
    """Rows of a vector table kept, embedded and removed; ``version`` is LanceDB's."""

    reused: int
    embedded: int
    removed: int
    version: int


def wanted_tables(settings: Settings) -> tuple[str, ...]:
    """Return the vector tables that the settings ask for."""
    given = settings.embeddings
    asked = {
        "facts": given.facts,
        "entity_titles": given.synonyms,
        "attributed_communities": settings.hierarchies.attributed,
        "raptor_nodes": settings.hierarchies.raptor,
        "hirag_entities": settings.hierarchies.hirag,
    }
    return (*TABLES, *(table for table in OPTIONAL if asked[table]))


def update_vectors(store: IndexStore, home: Path, settings: Settings, table: str) -> VectorChanges:
    """Make a vector table hold one row per row of the index; embed only what changed.

    ``table`` is one of ``TABLES`` or ``OPTIONAL``. Does nothing when neither rows nor embedder
    changed.
    """
    embedder = configured_embedder(settings)
    with store.read() as con:
        state = f"{embedder.name}:{texts_hash(con, table)}"
        rows = count_of(con, table)
        stored = get_meta(con, f"vectors:{table}")
        folder = home / VECTORS_FOLDER / f"{table}.lance"
        if stored and stored.rsplit("@", 1)[0] == state and (folder.is_dir() or not rows):
            return VectorChanges(rows, 0, 0, int(stored.rsplit("@", 1)[1]))
        wanted = con.sql(
            f"SELECT id, text, level, batch, sha256(text) AS content_hash FROM ({_TEXTS[table]})"
        ).to_arrow_table()
    from graphrag_pipeline.store.vector_store import VectorStore

    done = VectorStore(home / VECTORS_FOLDER).sync(table, wanted, embedder)
    with store.transaction() as con:
        set_meta(con, f"vectors:{table}", f"{state}@{done.version}")
    return VectorChanges(done.reused, done.embedded, done.removed, done.version)


def texts_hash(con: duckdb.DuckDBPyConnection, table: str) -> str:
    """Return a hash of the rows that a vector table should hold."""
    texts = rows_hash(f"({_TEXTS[table]})", "id, text, level, batch")
    row = con.execute(f"SELECT {texts}").fetchone()
    return row[0] if row else ""


def stale_tables(
    con: duckdb.DuckDBPyConnection, embedder_name: str, tables: Sequence[str]
) -> list[str]:
    """Return those of the vector tables that do not hold what the index holds now."""
    return [
        table
        for table in tables
        if (get_meta(con, f"vectors:{table}") or "").rsplit("@", 1)[0]
        != f"{embedder_name}:{texts_hash(con, table)}"
    ]


def texts_of(con: duckdb.DuckDBPyConnection, table: str) -> list[str]:
    """Return the texts of the rows that a vector table should hold."""
    return [text for (text,) in con.execute(f"SELECT text FROM ({_TEXTS[table]})").fetchall()]


def ids_of(con: duckdb.DuckDBPyConnection, table: str) -> list[str]:
    """Return the ids of the rows that a vector table should hold."""
    return [key for (key,) in con.execute(f"SELECT id FROM ({_TEXTS[table]})").fetchall()]


def count_of(con: duckdb.DuckDBPyConnection, table: str) -> int:
    """Return the number of rows that a vector table should hold."""
    row = con.execute(f"SELECT count(*) FROM ({_TEXTS[table]})").fetchone()
    return row[0] if row else 0
