"""The vector tables brought up to date with the index: what is embedded, and from which text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import duckdb

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.languages import analysis_version
from graphrag_pipeline.core.settings import EmbeddingSettings
from graphrag_pipeline.core.systems import systems
from graphrag_pipeline.llm.embedders import Embedder
from graphrag_pipeline.store.frames import put_rows, value_of
from graphrag_pipeline.store.hashing import hash_of
from graphrag_pipeline.store.index_store import IndexStore, get_meta, set_meta
from graphrag_pipeline.store.vector_store import VectorChanges, VectorStore
from graphrag_pipeline.structures.structure import VectorTable

if TYPE_CHECKING:
    import pyarrow as pa

_AROUND_ENTITIES = frozenset({"local", "auto", "selection", "integration"})
_KEY, _ANEW = "vectors:", "vectors_written_anew:"
_BY = "terms:"
_IS_KNOWN = "SELECT 1 FROM staging.embedded_texts WHERE vectors = ? LIMIT 1"
_FIND_CHANGED = """
CREATE OR REPLACE TEMP TABLE changed_texts AS
SELECT * FROM (SELECT id, hash(text, level, batch) AS digest FROM ({texts})) ANTI JOIN (
    SELECT id, digest FROM staging.embedded_texts WHERE vectors = $vectors AND $is_as_left)
USING (id, digest)
"""
_GONE = """
SELECT id FROM (SELECT id FROM staging.embedded_texts WHERE vectors = $vectors AND $is_as_left)
ANTI JOIN ({texts}) USING (id)
"""
_FORGET_CHANGED = """
DELETE FROM staging.embedded_texts WHERE vectors = $vectors AND (
    NOT $is_as_left OR id IN (SELECT id FROM changed_texts UNION SELECT id FROM gone_texts))
"""
_REMEMBER_CHANGED = """
INSERT INTO staging.embedded_texts BY NAME SELECT ? AS vectors, id, digest FROM changed_texts
"""
_CHUNKS_ALONE = frozenset({"basic", "bm25", "hybrid", "text_summary", "zero_shot", "cot"})

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
    read_by=_AROUND_ENTITIES,
)
RELATIONSHIPS = VectorTable(
    "relationships",
    """SELECT id, source || ' ' || target || chr(10) || description AS text,
       NULL::INTEGER AS level, NULL::VARCHAR AS batch FROM relationships""",
    made_from=("relationships",),
    about="Vectors and full text of relationships, in LanceDB.",
    read_by=frozenset({"ppr", "auto"}),
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
    read_by = {table.name: table.read_by | _systems_reading(table.name) for table in TABLES}
    known = _CHUNKS_ALONE.union(*read_by.values(), *(s.methods for s in systems().values()))
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
        if not table.read_by or chosen & read_by[table.name] or table.name in others
    )


def _systems_reading(table: str) -> set[str]:
    """Return the methods of systems that search one of :data:`TABLES`."""
    return {
        method
        for system in systems().values()
        for method, tables in system.reads.items()
        if table in tables
    }


def update_vectors(
    store: IndexStore, vectors: VectorStore, embedder: Embedder, table: VectorTable
) -> VectorChanges:
    """Make a vector table hold one row per row of the index; embed only what changed.

    Does nothing when neither rows nor embedder changed. Where the vectors are as the last update
    left them, only rows are looked at whose text, level or batch has changed since. Where another
    program made their search terms, all are, and those whose terms differ are written anew.
    """
    with store.read() as con:
        state = f"{embedder.name}:{texts_hash(con, table)}"
        n_rows = count_of(con, table)
        before = get_meta(con, _key(table)) or "@0"
        is_by = get_meta(con, terms_key(table.name)) == analysis_version()
        is_same = is_by and before.rsplit("@", 1)[0] == state
        if is_same and (vectors.holds(table.name) or not n_rows):
            return VectorChanges(n_rows, 0, 0, int(before.rsplit("@", 1)[1]))
        is_as_left = (
            is_by
            and before.startswith(f"{embedder.name}:")
            and vectors.version(table.name) == version_of(con, table.name)
            and con.execute(_IS_KNOWN, [table.name]).fetchone() is not None
        )
        values = {"vectors": table.name, "is_as_left": is_as_left}
        con.execute(_FIND_CHANGED.format(texts=table.texts), values)
        changed = con.sql("FROM changed_texts").to_arrow_table()
        gone = con.sql(_GONE.format(texts=table.texts), params=values).to_arrow_table()
        rows = rows_of(con, table, "SEMI JOIN changed_texts USING (id)")
    removed = gone["id"].to_pylist() if is_as_left else None
    changes = vectors.sync(table.name, rows, embedder, removed)
    with store.transaction() as con:
        for name, table_rows in (("changed_texts", changed), ("gone_texts", gone)):
            put_rows(con, name, table_rows)
        con.execute(_FORGET_CHANGED, values)
        con.execute(_REMEMBER_CHANGED, [table.name])
        set_meta(con, _key(table), f"{state}@{changes.version}")
        set_meta(con, terms_key(table.name), analysis_version())
    return changes


def rows_of(con: duckdb.DuckDBPyConnection, table: VectorTable, only: str = "") -> pa.Table:
    """Return the rows that a vector table should hold, as a vector store takes them.

    ``only`` is the project's own SQL, behind the relation of these rows.
    """
    # Their order decides which call embeds what; tables have none that two builds share.
    return con.sql(
        f"""SELECT id, text, level, batch, sha256(text) AS content_hash
            FROM ({table.texts}) {only} ORDER BY id"""
    ).to_arrow_table()


def forget_vectors(con: duckdb.DuckDBPyConnection, table: VectorTable) -> None:
    """Let the next update compare a vector table with its rows, whatever is known of it."""
    con.execute("DELETE FROM meta WHERE key = ?", [_key(table)])


def forget_texts(con: duckdb.DuckDBPyConnection, spared: Sequence[str]) -> None:
    """Forget what all vector tables but some were made from."""
    con.execute("DELETE FROM staging.embedded_texts WHERE NOT list_contains(?, vectors)", [spared])


def note_versions(con: duckdb.DuckDBPyConnection, versions: Mapping[str, int]) -> None:
    """Note which versions of LanceDB's tables hold the same rows, written anew.

    The state of the tables stays as it is, for what was made from them is not made again.
    """
    for name, version in versions.items():
        set_meta(con, f"{_ANEW}{name}", f"{get_meta(con, f'{_KEY}{name}')}>{version}")


def noted_versions(con: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Return the version of every vector table that the index knows, by the table's name."""
    rows = con.execute("SELECT key FROM meta WHERE starts_with(key, ?)", [_KEY]).fetchall()
    names = sorted(key.removeprefix(_KEY) for (key,) in rows)
    return {name: version_of(con, name) for name in names}


def version_of(con: duckdb.DuckDBPyConnection, name: str) -> int:
    """Return the version of a vector table that holds what the index held when it was made."""
    state = get_meta(con, f"{_KEY}{name}") or "@0"
    of, _, version = (get_meta(con, f"{_ANEW}{name}") or "").rpartition(">")
    return int(version if of == state else state.rsplit("@", 1)[1])


def texts_hash(con: duckdb.DuckDBPyConnection, table: VectorTable) -> str:
    """Return a hash of the rows that a vector table should hold."""
    return hash_of(con, f"({table.texts})", "id, text, level, batch")


def stale_tables(
    con: duckdb.DuckDBPyConnection, embedder_name: str, tables: Sequence[VectorTable]
) -> list[VectorTable]:
    """Return those of the vector tables that do not hold what the index holds now.

    Search terms that an older program made are no reason: the next update makes them anew, and
    questions are asked by them until then.
    """
    return [
        table
        for table in tables
        if (get_meta(con, _key(table)) or "").rsplit("@", 1)[0]
        != f"{embedder_name}:{texts_hash(con, table)}"
    ]


def texts_of(con: duckdb.DuckDBPyConnection, table: VectorTable) -> list[str]:
    """Return the texts of the rows that a vector table should hold."""
    return [text for (text,) in con.execute(f"SELECT text FROM ({table.texts})").fetchall()]


def count_of(con: duckdb.DuckDBPyConnection, table: VectorTable) -> int:
    """Return the number of rows that a vector table should hold."""
    return value_of(con, f"SELECT count(*) FROM ({table.texts})")


def terms_key(table: str) -> str:
    """Return the key in ``meta`` of how the search terms of a vector table were made."""
    return f"{_BY}{table}"


def _key(table: VectorTable) -> str:
    return f"{_KEY}{table.name}"
