"""Publishing: a consistent copy of the index and its vectors, put in place in one step.

Readers open ``published.duckdb`` and the LanceDB versions it names; they never wait for a writer
and never see a half-made index. A run that dies half-way leaves the last release as it was.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from graphrag_pipeline.communities import communities_current
from graphrag_pipeline.config import Settings, fingerprint
from graphrag_pipeline.errors import InputError, NothingPublishedError, StorageError
from graphrag_pipeline.models import report_writer
from graphrag_pipeline.reports import reports_current
from graphrag_pipeline.store import IndexStore, connect_published, get_meta
from graphrag_pipeline.vector_index import VECTORS_FOLDER, configured_embedder, stale_tables

PUBLISHED = "published.duckdb"
_KEEP_DAYS = 7.0
_CONTENT = (
    "documents",
    "chunks",
    "entities",
    "relationships",
    "communities",
    "community_members",
    "community_reports",
    "claims",
    "quarantine",
)
_COUNTS = """
SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM chunks),
       (SELECT count(*) FROM entities), (SELECT count(*) FROM relationships),
       (SELECT count(*) FROM communities), (SELECT count(*) FROM community_reports)
"""
_NEWEST = "SELECT id, content_hash, config_hash FROM releases ORDER BY created_at DESC LIMIT 1"


@dataclass(frozen=True)
class Release:
    """A published release: its id, whether it was made now, and its counts."""

    id: str
    created: bool
    counts: dict[str, int]


def publish(store: IndexStore, home: Path, settings: Settings) -> Release:
    """Publish the index as it stands, unless the newest release is the same already.

    Raises StorageError when graph, communities, reports and vectors do not belong together
    (another run changed the index meanwhile), or when the disk is full or read-only. The last
    release then stays.
    """
    embedder = configured_embedder(settings)
    with store.read() as con:
        _check_consistent(con, settings, embedder.name)
        content = content_hash(con)
        config = config_hash(settings)
        newest = con.execute(_NEWEST).fetchone()
        counts = _counts(con)
    same = newest is not None and newest[1:] == (content, config)
    release = newest[0] if newest and same else _new_release(store, home, settings, content, config)
    if published_release(home) == release:
        return Release(release, False, counts)
    _publish_copy(store, home)
    _let_go_of_old(store, home, settings.releases.keep)
    return Release(release, True, counts)


def published_release(home: Path) -> str | None:
    """Return the id of the release that readers see, or None."""
    path = home / PUBLISHED
    if not path.is_file():
        return None
    try:
        con = connect_published(path)
    except StorageError:
        return None
    try:
        newest = con.execute(_NEWEST).fetchone()
    except duckdb.Error:
        return None
    finally:
        con.close()
    return newest[0] if newest else None


def query_published(home: Path, statement: str) -> tuple[list[str], list[tuple[object, ...]]]:
    """Run one SQL query on what is published; return column names and rows.

    JSON columns come as Python values. Nothing outside the file can be read or written. Raises
    InputError for SQL that fails or is no query, NothingPublishedError when there is no release
    yet.
    """
    path = home / PUBLISHED
    if not path.is_file():
        raise NothingPublishedError(
            f"nothing published in {home} yet: run graphrag-pipeline index FOLDER"
        )
    con = connect_published(path)
    try:
        con.execute("SET lock_configuration = true")
        _check_is_query(con, statement)
        result = con.execute(statement)
        columns = result.description or []
        rows = result.fetchall()
    except (duckdb.Error, ValueError, OverflowError) as error:
        raise InputError(f"SQL: {str(error).strip()}") from None
    finally:
        con.close()
    nested = [place for place, column in enumerate(columns) if str(column[1]) == "JSON"]
    return [column[0] for column in columns], _read_json(rows, nested)


def _check_is_query(con: duckdb.DuckDBPyConnection, statement: str) -> None:
    kinds = [found.type for found in con.extract_statements(statement)]
    if not kinds:
        raise InputError("SQL: there is no statement")
    # PIVOT is parsed into the creation of a temporary type and a query.
    helpers = all(kind == duckdb.StatementType.CREATE for kind in kinds[:-1])
    if len(kinds) > 1 and not helpers:
        raise InputError("SQL: one statement at a time, please")
    if kinds[-1] not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        raise InputError(
            "SQL: only queries run on the published index: SELECT, FROM, WITH, PIVOT, SHOW, "
            "DESCRIBE, SUMMARIZE, EXPLAIN"
        )


def _read_json(rows: list[tuple[object, ...]], columns: Sequence[int]) -> list[tuple[object, ...]]:
    if not columns:
        return rows
    return [
        tuple(
            json.loads(value) if place in columns and isinstance(value, str) else value
            for place, value in enumerate(row)
        )
        for row in rows
    ]


def config_hash(settings: Settings) -> str:
    """Return a hash of the settings that shape an index."""
    not_shaping = {"home", "query", "schedule", "releases", "batches"}
    watching = {"folder", "settle_seconds", "poll_seconds"}
    return fingerprint(
        settings.model_dump(exclude={**dict.fromkeys(not_shaping, True), "input": watching})
    )


def content_hash(con: duckdb.DuckDBPyConnection) -> str:
    """Return a hash of everything a release holds."""
    parts = []
    for table in _CONTENT:
        row = con.execute(
            f"SELECT count(*), coalesce(bit_xor(hash(t)), 0) FROM {table} t"
        ).fetchone()
        parts.append(str(row))
    return fingerprint(parts)


def refresh_needed(store: IndexStore, home: Path, settings: Settings) -> bool:
    """Whether the published release lacks something that ingestion has finished."""
    with store.read() as con:
        staged = con.execute(
            "SELECT count(*) FROM batch_stages WHERE stage = 'extractions' AND staged"
        ).fetchone()
        known = con.execute("SELECT count(*) FROM graph_batches").fetchone()
        newest = con.execute(_NEWEST).fetchone()
        if staged != (0,):
            return True
        if known == (0,) and newest is None:
            return False
        current = (content_hash(con), config_hash(settings))
    return newest is None or newest[1:] != current or published_release(home) != newest[0]


def _check_consistent(
    con: duckdb.DuckDBPyConnection, settings: Settings, embedder_name: str
) -> None:
    late = []
    if not communities_current(con, settings.communities):
        late.append("communities")
    if not reports_current(con, settings.reports, report_writer(settings)):
        late.append("reports")
    late += [f"vectors of {table}" for table in stale_tables(con, embedder_name)]
    if late:
        raise StorageError(
            f"not published: {', '.join(late)} are behind the graph (another run changed the "
            "index meanwhile, or a stage was left out): run graphrag-pipeline index again"
        )


def _new_release(
    store: IndexStore, home: Path, settings: Settings, content: str, config: str
) -> str:
    from graphrag_pipeline.vectors import VectorStore

    now = datetime.now(UTC)
    release = f"{now:%Y%m%dT%H%M%S%f}-{content[:8]}"
    versions = VectorStore(home / VECTORS_FOLDER).tag(release)
    with store.transaction() as con:
        modularity = get_meta(con, "modularity")
        con.execute(
            f"""INSERT INTO releases SELECT ?, ?, ?, ?, counts.*, ?, ?, ?
                FROM ({_COUNTS}) counts""",
            [
                release,
                now,
                content,
                config,
                float(modularity) if modularity else None,
                configured_embedder(settings).name,
                json.dumps(versions),
            ],
        )
    return release


def _publish_copy(store: IndexStore, home: Path) -> None:
    def without_staging(copy: Path) -> None:
        con = duckdb.connect(str(copy))
        try:
            con.execute("DROP SCHEMA IF EXISTS staging CASCADE")
            con.execute("CHECKPOINT")
        finally:
            con.close()

    store.copy_to(home / PUBLISHED, prepare=without_staging)


def _let_go_of_old(store: IndexStore, home: Path, keep: int) -> None:
    from graphrag_pipeline.vectors import VectorStore

    with store.read() as con:
        kept = con.execute(
            "SELECT id FROM releases ORDER BY created_at DESC LIMIT ?", [keep]
        ).fetchall()
    vectors = VectorStore(home / VECTORS_FOLDER)
    old = sorted(set(vectors.tags()) - {release for (release,) in kept})
    if old:
        vectors.drop_tags(old)
        vectors.optimize(_KEEP_DAYS)


def _counts(con: duckdb.DuckDBPyConnection) -> dict[str, int]:
    names = ("documents", "chunks", "entities", "relationships", "communities", "reports")
    row = con.execute(_COUNTS).fetchone()
    return dict(zip(names, row or (), strict=True))
