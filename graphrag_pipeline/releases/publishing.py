"""Publishing: a consistent copy of the index and its vectors, put in place in one step.

Readers open ``published.duckdb`` and the LanceDB versions it names; they never wait for a writer
and never see a half-made index. A run that dies half-way leaves the last release as it was.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from importlib import resources
from pathlib import Path

import duckdb

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.hardening.files import forbid_writing
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.languages import analysis_version
from graphrag_pipeline.core.model_settings import ROLES
from graphrag_pipeline.core.settings import InputSettings, Settings, fingerprint
from graphrag_pipeline.graph.communities import communities_current
from graphrag_pipeline.graph.fold import GRAPH_VERSION, graph_current
from graphrag_pipeline.graph.resolution.resolving import aliases_changed, resolution_current
from graphrag_pipeline.ingest.staging import is_staged
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.llm.errors import TooManyFailuresError
from graphrag_pipeline.releases.kept_releases import (
    changing_releases,
    is_rolled_back,
    keep_published,
    published_release,
)
from graphrag_pipeline.releases.labels import label_documents
from graphrag_pipeline.releases.older_releases import drop_old, release_file, store_as_changes
from graphrag_pipeline.releases.quality import (
    ModelQuality,
    check_floor,
    model_quality,
    record_quality,
)
from graphrag_pipeline.releases.row_changes import VIEWS_MADE_BY
from graphrag_pipeline.releases.sources import record_sources
from graphrag_pipeline.reports.levels import reports_current
from graphrag_pipeline.reports.model_writer import report_writer
from graphrag_pipeline.store.file_sums import record_sums
from graphrag_pipeline.store.hash_memory import remembering_hashes
from graphrag_pipeline.store.hashing import hash_of
from graphrag_pipeline.store.index_store import (
    IndexStore,
    connect_published,
    copying,
    fill_copy,
)
from graphrag_pipeline.store.limits import DatabaseLimits, parts_within
from graphrag_pipeline.store.migrations import schema_sql
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import (
    clear_unwanted,
    content_tables,
    late_structures,
    made_vector_tables,
    vector_tables,
)
from graphrag_pipeline.structures.vector_tables import stale_tables

_LATE_READERS_DAYS = 1.0
"""How long vectors of a release that was let go stay for who has it open still."""
_CONTENT = (
    "documents",
    "document_names",
    "document_labels",
    "blocks",
    "chunks",
    "entities",
    "relationships",
    "communities",
    "community_members",
    "community_reports",
    "claims",
    "entity_aliases",
    "entities_kept_apart",
    "quarantine",
)
_ANSWERS_DEPEND_ON = {
    "base_url",
    "model",
    "embedding_model",
    "embedding_dimensions",
    "temperature",
    "extra",
    "prompts",
}
COUNTS = """
SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM chunks),
       (SELECT count(*) FROM entities), (SELECT count(*) FROM relationships),
       (SELECT count(*) FROM communities), (SELECT count(*) FROM community_reports)
"""
"""Rows of a release, in the order of the columns of ``releases`` that hold their numbers."""
_COUNTED = """
SELECT n_documents, n_chunks, n_entities, n_relationships, n_communities, n_reports
FROM releases WHERE id = ?
"""
_TEXT_BYTES = "SELECT coalesce(sum(strlen(text)), 0)::BIGINT FROM documents"
_COPIES = 8
_MODULARITY = "SELECT arg_max_null(modularity, updated_at) FROM community_updates"
_FEW_FAILURES = 2
_FAILED_CHUNKS = """
SELECT count(*) FILTER (status IN ('failed', 'outdated')), count(*) FROM extractions
"""
_FAILED_REPORTS = """
SELECT count(*), (SELECT count(*) FROM community_reports) + count(*) FROM report_failures
"""
_VECTORS = "SELECT embedder, vector_versions::VARCHAR FROM releases WHERE id = ?"
_NEWEST = "SELECT id, content_hash, config_hash FROM releases ORDER BY created_at DESC LIMIT 1"


@dataclass(frozen=True)
class PublishedRelease:
    """A published release: its id, whether it was made now, its counts, what a model made of it."""

    id: str
    created: bool
    counts: dict[str, int]
    quality: ModelQuality | None = None


def publish(workspace: Workspace, *, anew: bool = False) -> PublishedRelease:
    """Publish the index as it stands, unless it is what the newest release holds already.

    After a rollback that means: readers stay on the older release until something changes in the
    index, whichever version of the program looks. With ``anew`` a new release is made all the same.

    Raises StorageError when graph, communities, reports and vectors do not belong together
    (another run changed the index meanwhile), or when the disk is full or read-only, and
    TooManyFailuresError when the model failed at too much of it, and GarbageError when what it made
    says too little. The last release then stays.
    """
    with changing_releases(workspace.home):
        return publish_while_changing(workspace, anew=anew)


def publish_while_changing(workspace: Workspace, *, anew: bool) -> PublishedRelease:
    """Do what :func:`publish` does. Call it while :func:`changing_releases`."""
    store, home, settings = workspace.store, workspace.home, workspace.settings
    embedder = configured_embedder(settings)
    keep_published(home)
    remembering = remembering_hashes(workspace.paths, is_read_only=False)
    with remembering, store.transaction() as con:
        clear_unwanted(con, settings)
        label_documents(con, settings.access)
        record_sources(con, settings.access)
        _check_failures(con, settings.releases.max_failed_share)
        quality = model_quality(con)
        check_floor(quality, settings.releases.max_garbage_share)
        _check_consistent(con, settings, embedder.name)
        content = content_hash(con)
        config = config_hash(settings)
        newest = con.execute(_NEWEST).fetchone()
        is_same = (
            not anew
            and newest is not None
            and (newest[1:] == (content, config) or _is_as_withdrawn(con, workspace, newest[0]))
        )
    before = published_release(home)
    same = newest[0] if newest and is_same else None
    release = same or _new_release(workspace, content, config, quality)
    stays = is_same and is_rolled_back(home, release)
    if stays or before == release:
        return replace(_published(store, before or release, created=False), quality=quality)
    published = replace(_published(store, release, created=True), quality=quality)
    publish_copy(store, home)
    keep_published(home)
    _let_go_of_old(workspace, before)
    record_sums(home)
    store_as_changes(home, store.limits)
    return published


@cache
def published_sql() -> str:
    """Return the SQL that makes the views and macros of a release, with their comments."""
    return resources.files("graphrag_pipeline.releases").joinpath("published.sql").read_text()


def made_by() -> str:
    """Return a hash of what makes the views of a release, and its tables that are not hashed.

    Those follow from the others by rules, as the titles of chunks do.
    """
    return fingerprint(published_sql(), GRAPH_VERSION)


def config_hash(settings: Settings) -> str:
    """Return a hash of the settings that shape an index."""
    not_shaping = {"home", "storage", "workers", "batches"}
    not_shaping |= {"query", "schedule", "evaluation", "releases", "llm", "models", "roles"}
    looking = {name for name in InputSettings.model_fields if name.startswith("urls")}
    looking |= {"folder", "settle_seconds", "poll_seconds", "verify_days"}
    index = settings.model_dump(exclude={**dict.fromkeys(not_shaping, True), "input": looking})
    models = [settings.llm]
    if settings.models:
        models = [settings.llm_for(role) for role in ROLES if role != "judging"]
    return fingerprint(index, *(model.model_dump(include=_ANSWERS_DEPEND_ON) for model in models))


def content_hash(con: duckdb.DuckDBPyConnection) -> str:
    """Return a hash of everything a release holds, its comments, views and macros included.

    And of how its texts became search terms, which stand with the vectors.
    """
    return fingerprint([schema_sql(), made_by(), analysis_version(), *_row_hashes(con).values()])


def _row_hashes(con: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Return a hash of the rows of each table that a release is made of."""
    (n_bytes,) = con.execute(_TEXT_BYTES).fetchone() or (0,)
    # Whole texts: as JSON a vector of them may be larger than the memory.
    parts = {"documents": parts_within(con, _COPIES * n_bytes)}
    return {
        table: str((hash_of(con, table, parts=parts.get(table, 1)),))
        for table in hashed_tables(con)
    }


def hashed_tables(con: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """Return the tables of whose rows :func:`content_hash` is made."""
    return (*_CONTENT, *content_tables(con))


def _is_as_withdrawn(con: duckdb.DuckDBPyConnection, workspace: Workspace, newest: str) -> bool:
    """Whether the newest release was rolled back, and the index holds the same rows and vectors.

    Their hashes may differ all the same: another version of the program has other views, comments
    and settings.
    """
    home, settings = workspace.home, workspace.settings
    if not is_rolled_back(home, newest):
        return False
    with contextlib.suppress(StorageError, duckdb.Error):
        with connect_published(release_file(home, newest)) as release:
            made = release.execute(_VECTORS, [newest]).fetchone()
            rows = _row_hashes(release)
        tables = {table.name for table in vector_tables(settings)}
        now = (configured_embedder(settings).name, tables)
        return (
            made is not None
            and (made[0], json.loads(made[1]).keys()) == now
            and (rows == _row_hashes(con))
        )
    return False


def refresh_needed(workspace: Workspace) -> bool:
    """Whether a refresh would publish something else than what readers see.

    That is so when ingestion has finished something, when settings, ``aliases.csv`` or the program
    have changed what some stage makes, or when the release or the vectors are gone.
    """
    home, settings = workspace.home, workspace.settings
    remembering = remembering_hashes(workspace.paths, is_read_only=True)
    with remembering, workspace.store.read() as con:
        row = con.execute("SELECT count(*) FROM graph_batches").fetchone()
        newest = con.execute(_NEWEST).fetchone()
        if is_staged(con):
            return True
        if row == (0,) and newest is None:
            return False
        if not resolution_current(con, settings):
            return True
        if not graph_current(con, settings.graph, settings.chunks.encoding):
            return True
        if behind(con, settings, configured_embedder(settings).name) or _lost(con, workspace):
            return True
        current = (content_hash(con), config_hash(settings))
        if newest is None or newest[1:] != current:
            return newest is None or not _is_as_withdrawn(con, workspace, newest[0])
    return published_release(home) != newest[0] and not is_rolled_back(home, newest[0])


def reasons_to_refresh(workspace: Workspace) -> list[str]:
    """Return in words why a refresh publishes something else where no file has changed."""
    with workspace.store.read() as con:
        newest = con.execute(_NEWEST).fetchone()
        if newest is None:
            return ["nothing was published before"]
        checks = {
            "the settings have changed": newest[2] != config_hash(workspace.settings),
            "aliases.csv has changed": aliases_changed(con, workspace.settings),
            "an earlier run had not finished": is_staged(con),
            "vectors were missing": bool(_lost(con, workspace)),
        }
    reasons = [reason for reason, is_so in checks.items() if is_so]
    return reasons or ["this program is newer, or an earlier run had not finished"]


def current_release(workspace: Workspace) -> PublishedRelease | None:
    """Return the release that readers see, None where there is none."""
    release = published_release(workspace.home)
    return None if release is None else _published(workspace.store, release, created=False)


def _check_failures(con: duckdb.DuckDBPyConnection, most: float) -> None:
    """Raise TooManyFailuresError above a share of failures; one or two of many are no matter."""
    for what, table, counts in (
        ("extractions from chunks", "extractions", _FAILED_CHUNKS),
        ("reports", "report_failures", _FAILED_REPORTS),
    ):
        failed, total = con.execute(counts).fetchone() or (0, 0)
        if failed and (failed == total or failed > max(_FEW_FAILURES, most * total)):
            raise TooManyFailuresError(
                f"not published: {failed:,} of {total:,} {what} failed, more than "
                f"releases.max_failed_share allows ({most:.0%}): see the errors in the table "
                f"{table}, fix the cause and run again; readers keep the last release"
            )


def _check_consistent(
    con: duckdb.DuckDBPyConnection, settings: Settings, embedder_name: str
) -> None:
    late = behind(con, settings, embedder_name)
    if late:
        raise StorageError(
            f"not published: {', '.join(late)} are behind the graph (another run changed the "
            "index meanwhile, or a stage was left out): run graphrag-pipeline index again"
        )


def behind(con: duckdb.DuckDBPyConnection, settings: Settings, embedder_name: str) -> list[str]:
    """Return in words what was not made from the graph as it is, by this program and settings."""
    late = []
    if not communities_current(con, settings.communities):
        late.append("communities")
    if not reports_current(con, settings.reports, report_writer(settings)):
        late.append("reports")
    stale = stale_tables(con, embedder_name, made_vector_tables(con, settings))
    late += [f"vectors of {table.name}" for table in stale]
    late += late_structures(con, settings)
    return late


def _lost(con: duckdb.DuckDBPyConnection, workspace: Workspace) -> list[str]:
    """Return the vector tables that the newest release reads and that are not there any more."""
    row = con.execute(
        "SELECT vector_versions FROM releases ORDER BY created_at DESC LIMIT 1"
    ).fetchone()
    tables = json.loads(row[0]) if row else {}
    folder = workspace.paths.vectors
    return [table for table in tables if not (folder / f"{table}.lance").is_dir()]


def _new_release(
    workspace: Workspace, content: str, config: str, quality: ModelQuality | None
) -> str:
    settings = workspace.settings
    now = _next_moment(workspace.store)
    release = f"{now:%Y%m%dT%H%M%S%f}-{content[:8]}"
    tables = [table.name for table in vector_tables(settings)]
    versions = workspace.vectors.tag(release, tables)
    with workspace.store.transaction() as con:
        con.execute(
            f"""INSERT INTO releases SELECT ?, ?, ?, ?, counts.*, ({_MODULARITY}), ?, ?
                FROM ({COUNTS}) counts""",
            [
                release,
                now,
                content,
                config,
                configured_embedder(settings).name,
                json.dumps(versions),
            ],
        )
        record_quality(con, release, quality)
    return release


def _next_moment(store: IndexStore) -> datetime:
    """Return the time now, or just after the newest release where a clock has been put back."""
    now = datetime.now(UTC)
    with store.read() as con:
        last = con.execute("SELECT max(created_at) FROM releases").fetchone()
    newest = last[0] if last else None
    return max(now, newest.astimezone(UTC) + timedelta(microseconds=1)) if newest else now


def publish_copy(store: IndexStore, home: Path) -> None:
    """Put a copy of the index in place, as what readers open. Raises StorageError."""
    store.copy_to(Home(home).published, partial(_pack, limits=store.limits))


def _pack(index: Path, packed: Path, limits: DatabaseLimits) -> None:
    """Copy the index without staging and free space, and add views and macros."""
    with copying(index, packed, limits) as con:
        con.execute("COPY FROM DATABASE whole TO packed (SCHEMA)")
        con.execute("DROP SCHEMA IF EXISTS packed.staging CASCADE")
        fill_copy(con)
        con.execute("USE packed")
        # One transaction: each of many views would otherwise be synced by itself.
        con.execute(f"BEGIN; {published_sql()}\n; COMMIT")
        con.execute("INSERT INTO meta VALUES (?, ?)", [VIEWS_MADE_BY, made_by()])
    forbid_writing(packed)


def _let_go_of_old(workspace: Workspace, before: str | None) -> None:
    """Drop releases by count and age: first the file, so that none is left without its vectors."""
    options, vectors = workspace.settings.releases, workspace.vectors
    remaining = drop_old(workspace.home, {before}, options.keep, options.keep_days)
    old = sorted(vectors.tags().keys() - set(remaining))
    if old:
        vectors.drop_tags(old)
        vectors.optimize(_LATE_READERS_DAYS)
    vectors.drop_untagged(spare=[table.name for table in vector_tables(workspace.settings)])


def _published(store: IndexStore, release: str, *, created: bool) -> PublishedRelease:
    with store.read() as con:
        row = con.execute(_COUNTED, [release]).fetchone()
    names = ("documents", "chunks", "entities", "relationships", "communities", "reports")
    return PublishedRelease(
        release, created, dict(zip(names, row or [0] * len(names), strict=True))
    )
