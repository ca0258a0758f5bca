"""The releases that are kept, verified: their files, their rows, and the vectors they name."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.releases.kept_releases import (
    changes_files,
    file_of,
    is_withdrawn,
    published_release,
    release_ids,
    whole_releases,
)
from graphrag_pipeline.releases.older_releases import OpenedRelease, each_release
from graphrag_pipeline.releases.publishing import (
    COUNTS,
    VIEWS_MADE_BY,
    config_hash,
    content_hash,
    made_by,
)
from graphrag_pipeline.releases.row_changes import facts_of
from graphrag_pipeline.store.hierarchy import GRAPH
from graphrag_pipeline.store.index_store import connect_published, get_meta
from graphrag_pipeline.store.migrations import comments_current
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import known_vector_tables, made_structures
from graphrag_pipeline.structures.structure import VectorTable
from graphrag_pipeline.structures.vector_tables import count_of
from graphrag_pipeline.upkeep.index_tables import scan, structure_violations
from graphrag_pipeline.upkeep.problems import REPAIR, Problem, problem_of_some, unreadable
from graphrag_pipeline.upkeep.row_checks import (
    DOCUMENT_CHECKS,
    GRAPH_CHECKS,
    HIERARCHY_CHECKS,
    MENTION_CHECKS,
    REPORT_CHECKS,
    Broken,
    broken_chunks,
    broken_rows,
    checks_of,
)
from graphrag_pipeline.upkeep.vector_tables import VectorFaults, reading_vectors, wanted_hashes

RELEASE = "release_file"
PUBLISHED = "published"
RELEASE_VECTORS = "release_vectors"
TAGS = "tags"

_PUBLISHED_RELEASE = (
    "it cannot be made again: go back to another with graphrag-pipeline rollback, publish one with "
    "the next change, or restore it from a backup"
)
_OLDER_RELEASE = (
    "it cannot be made again, and readers do not see it: restore it from a backup, or delete the "
    f"file and run {REPAIR}"
)
_FACTS = """
SELECT id, content_hash, config_hash, embedder, vector_versions::VARCHAR, n_documents, n_chunks,
       n_entities, n_relationships, n_communities, n_reports
FROM releases ORDER BY created_at DESC, id DESC LIMIT 1
"""


def find_broken_releases(workspace: Workspace) -> Iterator[Problem]:
    """Yield what is wrong with the files of releases: each is read from beginning to end.

    What is wrong with the vectors that they name is looked for meanwhile, and remembered for
    :func:`find_wrong_release_vectors`: a release that is kept as changes is made whole only once.
    """
    published, files = Home(workspace.home).published, _files(workspace.home)
    of_vectors: list[Problem] = []
    for opened in each_release(workspace.home):
        release, path = opened.id, opened.path
        name = _name(workspace.home, file_of(workspace.home, release))
        is_seen = bool(path) and published.is_file() and published.samefile(path)
        lost = _PUBLISHED_RELEASE if is_seen else _OLDER_RELEASE
        found = [Broken("", opened.fault)]
        if path is not None:
            found = faults_of(path, release, workspace.settings)
            of_vectors += _wrong_vectors(workspace, opened)
        can_repair = bool(found) and is_made_of_index(workspace, release)
        for broken in found:
            remedy = "" if can_repair else lost
            yield broken.problem(RELEASE, name, remedy=remedy, can_repair=can_repair)
    workspace.store.remember(RELEASE_VECTORS, (files, of_vectors))


def _files(home: Path) -> list[tuple[str, int, int]]:
    """Return how releases and versions of vectors look: those that look as before are so."""
    versions = Home(home).vectors.glob("*.lance/_versions/*")
    files = [Home(home).published, *Home(home).releases.glob("*"), *versions]
    stats = [(file.name, file.stat()) for file in files if file.is_file()]
    return sorted((name, stat.st_ino, stat.st_mtime_ns) for name, stat in stats)


def find_wrong_published(workspace: Workspace) -> Iterator[Problem]:
    """Yield whether readers see another release than they should."""
    home, file = workspace.home, workspace.paths.published
    published, whole = published_release(home), whole_releases(home)
    newest, what = max(whole, default=None), ""
    if newest and not file.is_file():
        what = "the file is not there, and releases are kept"
    elif file.is_file() and not published and not any(map(file.samefile, whole.values())):
        what = "the file cannot be read"
    elif newest and published and published < newest and not is_withdrawn(home, newest):
        what = f"it is release {published}, and the newest, {newest}, was not rolled back"
    if what:
        yield Problem(check=PUBLISHED, where="published.duckdb", what=what)


def find_wrong_release_vectors(workspace: Workspace) -> Iterator[Problem]:
    """Yield what is wrong with the vectors that releases name: all of those of the published one.

    Of the others, each table must be there with as many rows as it should have.
    """
    known = workspace.store.recall(RELEASE_VECTORS)
    if isinstance(known, tuple) and known[0] == _files(workspace.home):
        yield from known[1]
        return
    for release in each_release(workspace.home):
        yield from _wrong_vectors(workspace, release)


def _wrong_vectors(workspace: Workspace, release: OpenedRelease) -> list[Problem]:
    """Return what is wrong with the vectors of a release; a broken file is told of as that."""
    found: list[Problem] = []
    if release.path is not None:
        whole = release.id == published_release(workspace.home)
        name = _name(workspace.home, file_of(workspace.home, release.id))
        with (
            contextlib.suppress(StorageError, duckdb.Error),
            connect_published(release.path) as con,
        ):
            found.extend(_vector_faults(workspace, con, name, whole))
    return found


def find_wrong_tags(workspace: Workspace) -> Iterator[Problem]:
    """Yield versions of vector tables that no release needs and are held, or the other way."""
    if workspace.is_busy:
        return
    named = named_versions(workspace)
    try:
        with reading_vectors():
            tags = workspace.vectors.tags()
    except StorageError as error:
        yield Problem(check="vector_files", where="vectors", what=f"cannot be read ({error})")
        return
    of_tags = partial(problem_of_some, check=TAGS, where="vectors")
    yield from of_tags(
        tags.keys() - named.keys(),
        what="tags of releases that are not kept",
        remedy="the next publish lets go of them",
        passes=True,
    )
    untagged = [
        f"{release} of {table}"
        for release, versions in named.items()
        for table, version in versions.items()
        if tags.get(release, {}).get(table) != version
    ]
    yield from of_tags(untagged, what="versions that releases name and no tag protects")


def is_made_of_index(workspace: Workspace, release: str) -> bool:
    """Whether a release is the newest, and the index holds just what was published as it."""
    newest = _newest_row(workspace)
    if newest is None or release not in (newest[0], PUBLISHED):
        return False
    with contextlib.suppress(StorageError, duckdb.Error), workspace.store.look() as con:
        return newest[1] == content_hash(con)
    return False


def newest_of_index(workspace: Workspace) -> str | None:
    """Return the newest release that the index knows; None where it cannot be read."""
    row = _newest_row(workspace)
    return row[0] if row else None


def _newest_row(workspace: Workspace) -> tuple[Any, ...] | None:
    if workspace.exists:
        with contextlib.suppress(StorageError, duckdb.Error), workspace.store.look() as con:
            return con.execute(_FACTS).fetchone()
    return None


def release_paths(home: Path) -> dict[str, Path]:
    """Return the file of each whole release, and of what is published, each file once."""
    published = Home(home).published
    paths = dict(sorted(whole_releases(home).items()))
    if published.is_file() and not any(published.samefile(path) for path in paths.values()):
        paths[published_release(home) or PUBLISHED] = published
    return paths


def named_versions(workspace: Workspace) -> dict[str, Mapping[str, int]]:
    """Return the versions of vector tables that each release names, as :func:`versions_named`.

    Among them is the newest of the index, which a publish that was killed is still to put in place.
    """
    named, newest = versions_named(workspace.home), _newest_row(workspace)
    return {newest[0]: json.loads(newest[4]), **named} if newest else named


def versions_named(home: Path) -> dict[str, Mapping[str, int]]:
    """Return the versions of vector tables that each release names, as far as it can be read."""
    named: dict[str, Mapping[str, int]] = {release: {} for release in release_ids(home)}
    for release, path in release_paths(home).items():
        with contextlib.suppress(StorageError, duckdb.Error), connect_published(path) as con:
            if row := con.execute(_FACTS).fetchone():
                named[release] = json.loads(row[4])
    for release, path in changes_files(home).items():
        with contextlib.suppress(StorageError):
            named[release] = json.loads(str(facts_of(path)["vector_versions"]))
    return named


def faults_of(path: Path, release: str, settings: Settings) -> list[Broken]:
    """Return what is wrong with the file of a release."""
    try:
        return list(_faults(path, release, settings))
    except (StorageError, duckdb.Error) as error:
        return [Broken("", unreadable(path, error))]


def is_wrong_in_release(
    workspace: Workspace, con: duckdb.DuckDBPyConnection, table: VectorTable, version: int
) -> bool:
    """Whether a release's version of a vector table is not what its rows ask for."""
    facts = con.execute(_FACTS).fetchone()
    faults = VectorFaults(workspace, table.name, version, facts[3] if facts else "")
    return any(True for _ in faults.problems(wanted_hashes(con, table), ""))


def _faults(path: Path, release: str, settings: Settings) -> Iterator[Broken]:
    with connect_published(path) as con:
        scan(con)
        facts = con.execute(_FACTS).fetchone()
        if facts is None or facts[0] != release:
            yield Broken("releases", f"its newest row is not {release}")
            return
        if con.execute(COUNTS).fetchone() != facts[5:]:
            yield Broken("releases", "its counts are not those of its tables")
        if is_verifiable(con):
            if content_hash(con) != facts[1]:
                yield Broken("", "its content is not that of its hash")
            else:
                # All but what the hash does not cover is proven by it.
                yield from broken_rows(con, (*MENTION_CHECKS, *GRAPH_CHECKS))
                return
        yield from broken_rows(con, (*DOCUMENT_CHECKS, *MENTION_CHECKS, *GRAPH_CHECKS))
        yield from broken_chunks(con)
        yield from broken_rows(con, checks_of(GRAPH, HIERARCHY_CHECKS))
        yield from broken_rows(con, checks_of(GRAPH, REPORT_CHECKS))
        if facts[2] == config_hash(settings):
            for structure in made_structures(con, settings):
                yield from structure_violations(con, structure, structure.steps, is_clustered=True)


def is_verifiable(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether a release was made with views and rules of this program, which are in its hash."""
    return get_meta(con, VIEWS_MADE_BY) == made_by() and comments_current(con)


def _vector_faults(
    workspace: Workspace, con: duckdb.DuckDBPyConnection, name: str, whole: bool
) -> Iterator[Problem]:
    facts = con.execute(_FACTS).fetchone()
    if facts is None:
        return
    tables = known_vector_tables()
    embedder = facts[3]
    for table, version in json.loads(facts[4]).items():
        if table not in tables:
            continue
        if whole:
            faults = VectorFaults(workspace, table, version, embedder)
            for problem in faults.problems(wanted_hashes(con, tables[table]), name):
                yield replace(problem, check=RELEASE_VECTORS)
            continue
        try:
            with reading_vectors():
                held = workspace.vectors.at({table: version}).count(table)
            expected = count_of(con, tables[table])
            what = f"{held} vectors in place of {expected} of {name}" if held != expected else ""
        except StorageError as error:
            what = f"version {version} of {name} cannot be read ({error})"
        if what:
            where = f"vectors/{table}.lance"
            yield Problem(check=RELEASE_VECTORS, where=where, what=what)


def _name(home: Path, path: Path) -> str:
    return path.relative_to(home).as_posix()
