"""Going back to a release that is kept: its rows and its vectors, together and in one step."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from graphrag_pipeline.core.errors import (
    BusyError,
    InputError,
    NothingPublishedError,
    StorageError,
)
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.sharing import sharing_of
from graphrag_pipeline.releases.kept_releases import (
    changing_releases,
    find_release,
    keep_published,
    nothing_published,
    published_release,
    put_back,
    release_before,
    release_ids,
)
from graphrag_pipeline.releases.older_releases import release_file
from graphrag_pipeline.store.index_store import connect_published, told_of_files
from graphrag_pipeline.store.vector_store import VectorSnapshot
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import known_vector_tables
from graphrag_pipeline.structures.vector_tables import CHUNKS, count_of

_VERSIONS = """
SELECT id, vector_versions::VARCHAR FROM releases ORDER BY created_at DESC, id DESC LIMIT 1
"""


@dataclass(frozen=True)
class Rollback:
    """The result of a rollback."""

    before: str | None
    """The release readers saw before; None when its file could not be read."""
    now: str
    """The release readers see now."""


def rollback(workspace: Workspace, given: str | None = None) -> Rollback:
    """Make a release that is kept the published one: in one step, rows and vectors together.

    ``given`` is its id or the beginning of it; None: the one before what is published. A newer
    release may be named too, to take a rollback back. Readers who have a release open stay on it.
    A run goes on beside it: it waits only while one puts its release in place, and then goes back
    from that. Of a shared index it does not: only one process coordinates.

    Raises InputError when there is no such release or it is published already, BusyError while a
    purge takes older releases away, or where one was stopped before it had,
    NothingPublishedError when there is none at all, StorageError when it cannot be read in full or
    put in place; what was published then stays.
    """
    home = workspace.home
    if not release_ids(home):
        raise NothingPublishedError(nothing_published(home))
    with workspace.coordinating():
        with changing_releases(home):
            keep_published(home)
            before = published_release(home)
            target = find_release(home, given) if given else _default_target(home, before)
            if target == before:
                raise InputError(f"release {target} is the published one already")
            _check_no_purge(home, target)
            _check_readable(home, target)
            put_back(home, target)
        sharing_of(workspace.settings).publish()
    return Rollback(before, target)


def _check_no_purge(home: Path, target: str) -> None:
    if Home(home).purge_mark.exists() and target != release_ids(home)[0]:
        raise BusyError(
            "a purge is at work or was interrupted, and older releases still hold what it "
            "removes: wait until it has ended, or run graphrag-pipeline purge to finish it"
        )


def _default_target(home: Path, published: str | None) -> str:
    target = release_before(home, published) if published else release_ids(home)[0]
    if target is None:
        raise InputError(
            f"there is no release before {published}: graphrag-pipeline releases lists what is kept"
        )
    return target


def _check_readable(home: Path, release: str) -> None:
    path = release_file(home, release)
    with connect_published(path) as con, told_of_files(f"cannot read {path}"):
        row = con.execute(_VERSIONS).fetchone()
        newest, versions = row or (None, "{}")
        vectors = VectorSnapshot(Home(home).vectors, json.loads(versions))
        required = {CHUNKS.name} | vectors.versions.keys()
        lacking = [
            name
            for name, table in known_vector_tables().items()
            if name in required and count_of(con, table) != vectors.count(name)
        ]
    if newest != release or lacking:
        what = (
            f"the vectors of {', '.join(lacking)} are not there" if lacking else f"it is {newest}"
        )
        raise StorageError(f"release {release} cannot be used: {what}; {path} stays as it is")
