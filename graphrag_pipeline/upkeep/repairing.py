"""Repairs that pay no model: from a release, from the cache, or from the index.

A file that is replaced stays beside its place, with ``damaged`` in its name. Nothing is deleted but
what can be made again, and what killed processes have left.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import duckdb

from graphrag_pipeline.core.errors import GraphRAGError, StorageError
from graphrag_pipeline.core.hardening.files import replacing, told_of_disk
from graphrag_pipeline.core.rows import sql_literal
from graphrag_pipeline.core.text import counted
from graphrag_pipeline.graph.communities import forget_state
from graphrag_pipeline.graph.fold import outdate_graph
from graphrag_pipeline.ingest.stages import IMPORTED
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.pipeline.updating import run_stages
from graphrag_pipeline.query.published_arrays import carry_arrays
from graphrag_pipeline.releases.kept_releases import (
    changing_releases,
    is_withdrawn,
    keep_published,
    published_release,
    put_back,
    whole_releases,
)
from graphrag_pipeline.releases.older_releases import each_release, release_file, set_free
from graphrag_pipeline.releases.publishing import publish_copy, refresh_needed
from graphrag_pipeline.store.file_sums import sums_file
from graphrag_pipeline.store.frames import value_of
from graphrag_pipeline.store.hashing import rows_hash
from graphrag_pipeline.store.hierarchy import GRAPH
from graphrag_pipeline.store.index_store import connect_published, told_of_files
from graphrag_pipeline.store.migrations import ensure_schema
from graphrag_pipeline.store.spending import needs_model
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import known_vector_tables, made_structures
from graphrag_pipeline.structures.structure import VectorTable
from graphrag_pipeline.structures.updating import embed_table
from graphrag_pipeline.structures.vector_tables import forget_vectors, rows_of
from graphrag_pipeline.upkeep.index_tables import (
    compared_tables,
    is_of_this_schema,
    is_older,
    is_unchanged,
    release_of_index,
)
from graphrag_pipeline.upkeep.other_files import ledger_position, leftovers_of
from graphrag_pipeline.upkeep.problems import Problem
from graphrag_pipeline.upkeep.release_files import (
    faults_of,
    is_wrong_in_release,
    named_versions,
    newest_of_index,
)
from graphrag_pipeline.upkeep.salvaging import put_aside, salvage
from graphrag_pipeline.upkeep.vector_tables import (
    UNREADABLE,
    VectorFaults,
    embedding_is_free,
    reading_vectors,
    set_aside,
    version_of,
)

_OWN_META = ("schema_version", "comments", "published_sql")
_OF_GRAPH = frozenset(
    ["entities", "relationships", "entity_chunks", "relationship_chunks", "chunk_titles",
     "record_links", "entity_aliases", "identifiers"]
)  # fmt: skip
_OF_CHUNKS = ("extractions", "entity_mentions", "relationship_mentions", "claims", "chunk_names")
_MISCOUNTED = """
DELETE FROM extractions WHERE chunk_id IN (
    SELECT x.chunk_id FROM extractions x
    LEFT JOIN (SELECT chunk_id, count(*) AS n FROM entity_mentions GROUP BY ALL) e USING (chunk_id)
    LEFT JOIN (SELECT chunk_id, count(*) AS n FROM relationship_mentions GROUP BY ALL) r
        USING (chunk_id)
    WHERE coalesce(e.n, 0) <> x.n_entities OR coalesce(r.n, 0) <> x.n_relationships)
"""


def bring_up(workspace: Workspace) -> list[str]:
    """Bring an index that an older program made to this program's schema; say if that was so."""
    try:
        if not workspace.exists or not is_older(workspace):
            return []
        with workspace.store.read():
            return ["brought index.duckdb to this program's schema"]
    except (StorageError, duckdb.Error):
        # What is damaged is found by the checks.
        return []


def remove_leftovers(workspace: Workspace, problems: Sequence[Problem]) -> list[str]:
    """Remove what killed processes have left."""
    paths = leftovers_of(workspace)
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return [f"removed {counted(len(paths), 'file')} that a killed process had left"]


def salvage_calls(workspace: Workspace, problems: Sequence[Problem]) -> list[str]:
    """Put what can be read of the cache of answers in a new file."""
    return salvage(workspace.paths.calls, ledger_position(workspace))


def rebuild_index_file(workspace: Workspace, problems: Sequence[Problem]) -> list[str]:
    """Make ``index.duckdb`` anew from the newest release that is whole."""
    path = workspace.paths.index
    for release in each_release(workspace.home):
        if release.path is None or faults_of(release.path, release.id, workspace.settings):
            continue
        with told_of_disk(f"cannot write {path}"), replacing(path) as beside:
            _copy_release(release.path, beside, workspace)
            aside = put_aside(path, ".wal")
        kept = f"; the damaged file is {aside}" if aside else ""
        return [f"made index.duckdb anew from release {release.id}{kept}"]
    return []


def restore_rows(workspace: Workspace, problems: Sequence[Problem]) -> list[str]:
    """Restore tables from the release that was made of them, or let the next run make them."""
    source, release = release_of_index(workspace), newest_of_index(workspace) or ""
    if source is not None and not faults_of(source, release, workspace.settings):
        restored = _restore_tables(workspace, source)
        if restored:
            return [f"restored {', '.join(restored)} from release {release}"]
        if restored is not None:
            return []
    return _outdate(workspace, {problem.where.partition(", ")[2] for problem in problems})


def set_changed_aside(workspace: Workspace, problems: Sequence[Problem]) -> list[str]:
    """Put tables of vectors aside whose files were changed, if others can be made without paying.

    What was hashed wrongly, or not at all, is hashed once more when the repair ends.
    """
    done = []
    tables = known_vector_tables()
    for problem in problems:
        if not problem.where.endswith(".lance"):
            sums_file(workspace.home).unlink(missing_ok=True)
            done.append(f"noted anew the hashes of the files of vectors: {problem.where}")
            continue
        name = _table_of(problem)
        texts: list[str] = []
        if name in tables and workspace.exists:
            with workspace.store.read() as con:
                texts = rows_of(con, tables[name])["text"].to_pylist()
        if embedding_is_free(workspace, texts):
            done.append(f"put the damaged vectors of {name} aside, as {set_aside(workspace, name)}")
    return done


def embed_again(workspace: Workspace, problems: Sequence[Problem]) -> list[str]:
    """Embed rows that have no vector, or a wrong one, and remove vectors of no row."""
    tables = known_vector_tables()
    done = []
    for name in dict.fromkeys(_table_of(problem) for problem in problems):
        own = [problem for problem in problems if _table_of(problem) == name]
        if any(problem.check == UNREADABLE for problem in own):
            done.append(f"put the damaged vectors of {name} aside, as {set_aside(workspace, name)}")
        anew = f"noted anew which version of the vectors of {name} is the index's"
        done.append(_embed(workspace, tables[name]) or anew)
    return done


def publish_again(workspace: Workspace, problems: Sequence[Problem]) -> list[str]:
    """Write the newest release once more, from the index."""
    newest = newest_of_index(workspace)
    if newest is None:
        return []
    with changing_releases(workspace.home):
        aside = put_aside(release_file(workspace.home, newest))
        publish_copy(workspace.store, workspace.home)
        keep_published(workspace.home)
    return [f"published release {newest} again; the damaged file is {aside}"]


def carry_again(workspace: Workspace, problems: Sequence[Problem]) -> list[str]:
    """Remove damaged arrays of releases, and write those of what is published once more."""
    for problem in problems:
        (workspace.home / problem.where).unlink(missing_ok=True)
    carry_arrays(workspace.home, workspace.settings)
    return [f"removed {problem.where}, and wrote what readers need of it" for problem in problems]


def put_published_in_place(workspace: Workspace, problems: Sequence[Problem]) -> list[str]:
    """Let readers see the newest release that was not rolled back; where all were, the newest."""
    home = workspace.home
    with changing_releases(home):
        aside = "" if published_release(home) else put_aside(workspace.paths.published)
        whole = whole_releases(home)
        stay = [release for release in whole if not is_withdrawn(home, release)]
        newest = max(stay or whole, default="")
        if newest:
            put_back(home, newest)
    done = [f"published release {newest}, which is kept"] if newest else finish(workspace)
    return [*done, *([f"the damaged file is {aside}"] if aside else [])]


def embed_releases_again(workspace: Workspace, problems: Sequence[Problem]) -> list[str]:
    """Make vectors that releases name and that are gone from the texts in these releases."""
    done, changed = [], dict[str, VectorTable]()
    with changing_releases(workspace.home):
        named = named_versions(workspace)
        for release in each_release(workspace.home):
            versions = dict(named.get(release.id, {}))
            made = _embed_release(workspace, release.path, versions) if release.path else {}
            if made:
                set_free(workspace.home, [release.id])
                path = release_file(workspace.home, release.id)
                _name_versions(workspace, release.id, path, {**versions, **made})
                changed |= {table: known_vector_tables()[table] for table in made}
                done.append(f"embedded {', '.join(made)} of release {release.id} again")
    return [*done, *filter(None, (_embed(workspace, table) for table in changed.values()))]


def set_tags(workspace: Workspace, problems: Sequence[Problem]) -> list[str]:
    """Protect the versions of vectors that releases name, and let go of others."""
    named, vectors = named_versions(workspace), workspace.vectors
    orphans = sorted(vectors.tags().keys() - named.keys())
    vectors.drop_tags(orphans)
    tags, set_anew = vectors.tags(), 0
    for release, versions in named.items():
        for table, version in versions.items():
            if tags.get(release, {}).get(table) != version:
                with contextlib.suppress(StorageError), reading_vectors():
                    vectors.at({table: version}).count(table)
                    vectors.tag_version(release, table, version)
                    set_anew += 1
    done = [f"let go of {counted(len(orphans), 'release')} no longer kept"] if orphans else []
    if set_anew:
        done.append(f"protected {counted(set_anew, 'version')} of vectors")
    return done


def finish(workspace: Workspace) -> list[str]:
    """Bring up to date what was marked, where no model has to be asked; else say who will."""
    if not workspace.exists or not refresh_needed(workspace):
        return []
    if needs_model(workspace.settings):
        return ["what is behind is made by the next graphrag-pipeline index, from what was bought"]
    _, release = run_stages(workspace)
    return [f"brought the index up to date; release {release.id} is published"]


def _table_of(problem: Problem) -> str:
    return Path(problem.where).stem


def _embed(workspace: Workspace, table: VectorTable) -> str:
    """Bring a vector table up to date; return what that took, nothing where it was."""
    with workspace.store.read() as con:
        wanted = rows_of(con, table)
        version = version_of(con, table.name)
    faults = VectorFaults(workspace, table.name, version, "")
    with contextlib.suppress(StorageError):
        faults.read()
        workspace.vectors.forget(table.name, faults.not_numbers)
    with workspace.store.transaction() as con:
        forget_vectors(con, table)
    if not embedding_is_free(workspace, wanted["text"].to_pylist()):
        return f"marked {table.name}: graphrag-pipeline index embeds it again, and may pay for it"
    try:
        changes = embed_table(workspace, table)
    except StorageError:
        raise
    except GraphRAGError as error:
        return f"marked {table.name}: graphrag-pipeline index embeds it again ({error})"
    changed = []
    if changes.embedded:
        changed.append(f"embedded {counted(changes.embedded, 'row')} of {table.name} again")
    if changes.removed:
        changed.append(f"removed {counted(changes.removed, 'vector')} of {table.name}")
    return ", and ".join(changed)


def _embed_release(workspace: Workspace, path: Path, versions: dict[str, int]) -> dict[str, int]:
    """Embed the tables of a release whose vectors are not there; return their new versions."""
    embedder = configured_embedder(workspace.settings)
    made = {}
    tables = known_vector_tables()
    try:
        with connect_published(path) as con:
            for name, version in versions.items():
                table = tables.get(name)
                if table is None or not is_wrong_in_release(workspace, con, table, version):
                    continue
                rows = rows_of(con, table)
                if embedding_is_free(workspace, rows["text"].to_pylist()):
                    made[name] = workspace.vectors.sync(name, rows, embedder).version
    except StorageError:
        return made
    return made


def _name_versions(
    workspace: Workspace, release: str, path: Path, versions: dict[str, int]
) -> None:
    """Write into a release, and into the index, which versions of vectors belong to it."""
    update = "UPDATE releases SET vector_versions = ? WHERE id = ?"
    values = [json.dumps(versions), release]
    published = workspace.paths.published
    is_published = published.is_file() and published.samefile(path)
    with told_of_disk(f"cannot write {path}"), replacing(path) as beside:
        mode = path.stat().st_mode
        shutil.copyfile(path, beside)
        with duckdb.connect(str(beside)) as con:
            con.execute(update, values)
            con.execute("CHECKPOINT")
        beside.chmod(mode)
        for table, version in versions.items():
            workspace.vectors.tag_version(release, table, version)
    if is_published and not published.samefile(path):
        put_back(workspace.home, release)
    with workspace.store.transaction() as con:
        con.execute(update, values)


def _restore_tables(workspace: Workspace, source: Path) -> list[str] | None:
    """Make tables those of a release; return which, or None where a stage was done since."""
    with workspace.store.read() as con:
        con.execute(f"ATTACH {sql_literal(source)} AS release (READ_ONLY)")
        try:
            own = value_of(con, "SELECT current_database()")
            if not is_of_this_schema(con, "release") or not is_unchanged(con, own):
                return None
            tables = [*compared_tables(con, own), "identifiers"]
            different = [table for table in tables if not _is_same(con, table)]
            con.execute("BEGIN")
            try:
                for table in different:
                    con.execute(f'DELETE FROM "{table}"')
                    con.execute(f'INSERT INTO "{table}" BY NAME FROM release.main."{table}"')
                con.execute("COMMIT")
            except BaseException:
                con.execute("ROLLBACK")
                raise
        finally:
            con.execute("DETACH release")
    return different


def _is_same(con: duckdb.DuckDBPyConnection, table: str) -> bool:
    hashes = [rows_hash(f'{prefix}"{table}"') for prefix in ("", "release.main.")]
    return value_of(con, f"SELECT {' = '.join(hashes)}")


def _outdate(workspace: Workspace, tables: set[str]) -> list[str]:
    """Let the next run make the tables that are wrong from what they are made from."""
    outdated = []
    with workspace.store.transaction() as con:
        if tables & {"chunks", "blocks", "batch_stages", "graph_batches", *_OF_CHUNKS}:
            _outdate_chunks(con)
            outdated.append("chunks")
        if outdated or tables & _OF_GRAPH:
            outdate_graph(con)
            outdated.append("graph")
        if outdated or tables & {"hierarchy_communities", "hierarchy_members"}:
            forget_state(con, GRAPH)
            outdated.append("communities")
        if outdated or tables & {"hierarchy_reports", "report_elements", "hierarchy_failures"}:
            con.execute("DELETE FROM meta WHERE starts_with(key, 'graph:reports_state:')")
            outdated.append("reports")
        for structure in made_structures(con, workspace.settings):
            own = {step.table for step in structure.steps}
            shared = bool(structure.hierarchy) and any(
                table.startswith("hierarchy_") for table in tables
            )
            if own & tables or shared:
                structure.clear(con)
                outdated.append(structure.name)
    return [f"marked {', '.join(outdated)} to be made again"] if outdated else []


def _outdate_chunks(con: duckdb.DuckDBPyConnection) -> None:
    for table in _OF_CHUNKS:
        con.execute(f"DELETE FROM {table} WHERE chunk_id NOT IN (SELECT id FROM chunks)")
    con.execute(_MISCOUNTED)
    con.execute(
        "DELETE FROM batch_stages WHERE stage IN ('chunks', 'extractions') AND version <> ?",
        [IMPORTED],
    )


def _copy_release(source: Path, target: Path, workspace: Workspace) -> None:
    """Make an index of the rows of a release."""
    with told_of_files(f"cannot write {target}"), duckdb.connect(str(target)) as con:
        ensure_schema(con, target)
        for structure in made_structures(con, workspace.settings):
            con.execute(structure.schema)
        con.execute(f"ATTACH {sql_literal(source)} AS release (READ_ONLY)")
        own = value_of(con, "SELECT current_database()")
        tables = [*compared_tables(con, own), "releases", "identifiers", "llm_calls"]
        for table in (*tables, "description_summaries"):
            con.execute(f'INSERT INTO "{table}" BY NAME FROM release.main."{table}"')
        con.execute("INSERT INTO meta FROM release.meta WHERE key NOT IN ?", [list(_OWN_META)])
        con.execute("DETACH release")
        con.execute("CHECKPOINT")
