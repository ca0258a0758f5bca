"""The vector tables brought up to date with the index: what is embedded, and from which text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.settings import EmbeddingSettings
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.store.hashing import rows_hash
from graphrag_pipeline.store.index_store import get_meta, set_meta
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.structure import VectorTable

if TYPE_CHECKING:
    import pyarrow as pa

_AROUND_ENTITIES = frozenset({"local", "auto", "selection", "integration", "drift"})
_KEY, _ANEW = "vectors:", "vectors_written_anew:"
_CHUNKS_ALONE = frozenset(
    ["basic", "bm25", "hybrid", "kg_triplets", "kg_triplets_text", "hipporag",
     "hipporag2", "raptor", "lazy", "text_summary", "ircot", "zero_shot", "cot"]
)  # fmt: skip

CHUNKS = VectorTable(
    "chunks",
    """SELECT c.id, d.title || chr(10) || c.text AS text, NULL::INTEGER AS level, c.batch
       FROM chunks c JOIN documents d ON d.id = c.document_id""",
    made_from=("chunks",),
    about="Vectors and full text of chunks, in LanceDB.",
)
ENTITIES = VectorTable(
    "entities",
    """SELECT id, title || chr(10) || description AS text, NULL::INTEGER AS level,
       NULL::VARCHAR AS batch FROM entities""",
    made_from=("entities",),
    about="Vectors and full text of entities, in LanceDB.",
    read_by=_AROUND_ENTITIES | {"lightrag", "fast_graphrag", "hirag", "archrag"},
)
RELATIONSHIPS = VectorTable(
    "relationships",
    """SELECT id, source || ' ' || target || chr(10) || description AS text,
       NULL::INTEGER AS level, NULL::VARCHAR AS batch FROM relationships""",
    made_from=("relationships",),
    about="Vectors and full text of relationships, in LanceDB.",
    read_by=frozenset({"ppr", "auto", "lightrag", "archrag", "kag"}),
)
REPORTS = VectorTable(
    "community_reports",
    "SELECT id, full_content AS text, level, NULL::VARCHAR AS batch FROM community_reports",
    made_from=("community_reports",),
    about="Vectors and full text of community reports, in LanceDB.",
    read_by=_AROUND_ENTITIES | {"global"},
)
TABLES = (CHUNKS, ENTITIES, RELATIONSHIPS, REPORTS)
"""The vector tables of every index."""


def tables_read(settings: EmbeddingSettings, others: Collection[str]) -> tuple[VectorTable, ...]:
    """Return those of :data:`TABLES` that the chosen methods read, or that ``others`` names.

    Raises ConfigError for a chosen method that is none of this package's, as nobody knows what it
    reads.
    """
    chosen = set(settings.methods)
    known = _CHUNKS_ALONE.union(*(table.read_by for table in TABLES))
    if strangers := sorted(chosen - known):
        raise ConfigError(
            f"embeddings.methods: {strangers[0]!r} is none of {', '.join(sorted(known))}; "
            "name methods without parameters, or leave the list empty for a method of your own"
        )
    if not chosen or settings.embedder == "hashing":
        return TABLES
    return tuple(
        table
        for table in TABLES
        if not table.read_by or chosen & table.read_by or table.name in others
    )


@dataclass(frozen=True)
class VectorChanges:
    """Rows of a vector table kept, embedded and removed; ``version`` is LanceDB's."""

    reused: int
    embedded: int
    removed: int
    version: int


def update_vectors(workspace: Workspace, table: VectorTable) -> VectorChanges:
    """Make a vector table hold one row per row of the index; embed only what changed.

    Does nothing when neither rows nor embedder changed.
    """
    embedder = configured_embedder(workspace.settings)
    with workspace.store.read() as con:
        state = f"{embedder.name}:{texts_hash(con, table)}"
        rows = count_of(con, table)
        stored_state = get_meta(con, _key(table))
        folder = workspace.paths.vectors / f"{table.name}.lance"
        if (
            stored_state
            and stored_state.rsplit("@", 1)[0] == state
            and (folder.is_dir() or not rows)
        ):
            return VectorChanges(rows, 0, 0, int(stored_state.rsplit("@", 1)[1]))
        rows_to_embed = rows_of(con, table)
    changes = workspace.vectors.sync(table.name, rows_to_embed, embedder)
    with workspace.store.transaction() as con:
        set_meta(con, _key(table), f"{state}@{changes.version}")
    return VectorChanges(changes.reused, changes.embedded, changes.removed, changes.version)


def rows_of(con: duckdb.DuckDBPyConnection, table: VectorTable) -> pa.Table:
    """Return the rows that a vector table should hold, as a vector store takes them."""
    # Their order decides which call embeds what; tables have none that two builds share.
    return con.sql(
        f"""SELECT id, text, level, batch, sha256(text) AS content_hash FROM ({table.texts})
            ORDER BY id"""
    ).to_arrow_table()


def forget_vectors(con: duckdb.DuckDBPyConnection, table: VectorTable) -> None:
    """Let the next update compare a vector table with its rows, whatever is known of it."""
    con.execute("DELETE FROM meta WHERE key = ?", [_key(table)])


def note_versions(con: duckdb.DuckDBPyConnection, versions: Mapping[str, int]) -> None:
    """Note which versions of LanceDB's tables hold the same rows, written anew.

    The state of the tables stays as it is, for what was made from them is not made again.
    """
    for name, version in versions.items():
        set_meta(con, f"{_ANEW}{name}", f"{get_meta(con, f'{_KEY}{name}')}>{version}")


def version_of(con: duckdb.DuckDBPyConnection, table: VectorTable) -> int:
    """Return the version of a vector table that holds what the index held when it was made."""
    return _version(con, table.name)


def noted_versions(con: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Return the version of every vector table that the index knows, by the table's name."""
    rows = con.execute("SELECT key FROM meta WHERE starts_with(key, ?)", [_KEY]).fetchall()
    names = sorted(key.removeprefix(_KEY) for (key,) in rows)
    return {name: _version(con, name) for name in names}


def _version(con: duckdb.DuckDBPyConnection, name: str) -> int:
    state = get_meta(con, f"{_KEY}{name}") or "@0"
    of, _, version = (get_meta(con, f"{_ANEW}{name}") or "").rpartition(">")
    return int(version if of == state else state.rsplit("@", 1)[1])


def texts_hash(con: duckdb.DuckDBPyConnection, table: VectorTable) -> str:
    """Return a hash of the rows that a vector table should hold."""
    texts = rows_hash(f"({table.texts})", "id, text, level, batch")
    row = con.execute(f"SELECT {texts}").fetchone()
    return row[0] if row else ""


def stale_tables(
    con: duckdb.DuckDBPyConnection, embedder_name: str, tables: Sequence[VectorTable]
) -> list[VectorTable]:
    """Return those of the vector tables that do not hold what the index holds now."""
    return [
        table
        for table in tables
        if (get_meta(con, _key(table)) or "").rsplit("@", 1)[0]
        != f"{embedder_name}:{texts_hash(con, table)}"
    ]


def texts_of(con: duckdb.DuckDBPyConnection, table: VectorTable) -> list[str]:
    """Return the texts of the rows that a vector table should hold."""
    return [text for (text,) in con.execute(f"SELECT text FROM ({table.texts})").fetchall()]


def ids_of(con: duckdb.DuckDBPyConnection, table: VectorTable) -> list[str]:
    """Return the ids of the rows that a vector table should hold."""
    return [key for (key,) in con.execute(f"SELECT id FROM ({table.texts})").fetchall()]


def count_of(con: duckdb.DuckDBPyConnection, table: VectorTable) -> int:
    """Return the number of rows that a vector table should hold."""
    row = con.execute(f"SELECT count(*) FROM ({table.texts})").fetchone()
    return row[0] if row else 0


def _key(table: VectorTable) -> str:
    return f"{_KEY}{table.name}"
