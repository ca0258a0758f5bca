"""Nothing but what the index holds: all traces of what was removed are taken off the disk.

Rows that are deleted stay in DuckDB's free blocks, in LanceDB's files and in SQLite's pages; names
stay in manifests, texts in older releases, in cached answers and in the history of runs. So tables
are written anew, published as a new release, and whatever only what is gone needed goes.

Each step can be done twice. A mark says that a purge has begun, so that one that was killed is
completed by the next. What names documents goes last: until then they can be named.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from graphrag_pipeline.core import progress, showing
from graphrag_pipeline.core.errors import InputError, StorageError
from graphrag_pipeline.core.sharing import sharing_of
from graphrag_pipeline.pipeline.updating import run_stages
from graphrag_pipeline.query.published_arrays import carry_arrays
from graphrag_pipeline.releases.kept_releases import (
    changing_releases,
    keep_only,
    release_ids,
    rolled_back_from,
)
from graphrag_pipeline.releases.older_releases import each_release
from graphrag_pipeline.releases.publishing import publish_while_changing
from graphrag_pipeline.store.index_store import connect_published
from graphrag_pipeline.store.spending import uses_model
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.vector_tables import note_versions
from graphrag_pipeline.upkeep.answers import (
    KeptAnswers,
    drop_unused,
    shared_elsewhere,
    unused_answers,
)
from graphrag_pipeline.upkeep.document_names import check_gone, named_sources
from graphrag_pipeline.upkeep.home_files import Experiments, KeptExperiments, check_extras, files
from graphrag_pipeline.upkeep.leftovers import drop_leftovers, made_again
from graphrag_pipeline.upkeep.run_histories import (
    finished_runs,
    histories_elsewhere,
    wipe_history,
)
from graphrag_pipeline.upkeep.tables import (
    done_batches,
    take_out_batches,
    take_out_gone,
    waiting_batches,
)

_ELSEWHERE = (
    "the folder the documents came from, and its backups",
    "exports, pages and reports written with this program, and copies of its home",
    "audit/ of a home that served it: ids of its chunks, names, questions if audit_text is set; "
    "it is kept for server.audit_days",
    "conversations.sqlite of such a home: the questions of its callers, not the answers",
    "aliases.csv and files of questions, which are yours",
    "snapshots of the file system, and free blocks of the disk that nothing has overwritten",
    "programs that have an older release open: until they close it, the system keeps the file",
)
_MODEL_LOGS = "the logs of the model's server"
_SHARED = "the paid answers of {}, which this index shares: purge the index there, too"
_POSTGRES = "dumps, replicas and archived logs of Postgres"
_LOOK_SECONDS = 0.2
_CONTENTS = "SELECT id, content_hash FROM documents"
_STEPS = ("tables", "vectors", "publish", "releases", "answers", "evaluations", "history", "files")


@dataclass(frozen=True, kw_only=True)
class Purge:
    """The work of a purge, planned or done.

    ``sources`` are the files forgotten by name, ``removed`` those of them that were still in the
    index. ``release`` is the one made now, None where nothing was done. ``elsewhere`` names the
    places where copies may be that this program cannot reach.
    """

    sources: Sequence[str] = ()
    removed: Sequence[str] = ()
    release: str | None
    dropped_releases: Sequence[str] = ()
    answers: KeptAnswers
    experiments: KeptExperiments
    dropped_files: Sequence[str] = ()
    dropped_runs: int | None = None
    """Runs taken out of Dagster's history; None where that was not looked at."""
    bytes_before: int = 0
    bytes_after: int = 0
    elsewhere: Sequence[str] = ()

    __repr__ = showing.brief


def plan_purge(workspace: Workspace, names: Sequence[str] = ()) -> Purge:
    """Return what :func:`purge` would do, and do nothing.

    What follows from a removal is not counted: answers from which reports were made that must be
    written again. Raises what `purge` raises.
    """
    sources = _checked(workspace, names)
    removed = _present(workspace, sources)
    clean = clean_releases(workspace, removed)
    return Purge(
        sources=sources,
        removed=removed,
        release=None,
        dropped_releases=release_ids(workspace.home),
        answers=unused_answers(workspace, removed),
        experiments=unused_experiments(workspace, clean),
        dropped_files=made_again(workspace, removed),
        dropped_runs=finished_runs(workspace.settings),
        bytes_before=_size(workspace.home),
        elsewhere=_elsewhere(workspace),
    )


def purge(workspace: Workspace, names: Sequence[str] = ()) -> Purge:
    """Take off the disk all that the index does not hold, and first some documents, by name.

    These leave the index as if their files had been deleted and it had been updated: a model may be
    asked to write again what rested on them.

    Readers who have a release open keep its rows, and lose its vectors: they must open the new
    one. Raises InputError for a document that is not known or whose file is still there, where
    batches wait to be indexed, and after a rollback; what an update and publishing raise. A purge
    that was killed or failed is completed by the next.
    """
    _check_there(workspace)
    with workspace.turn():
        # From here on nobody goes back to an older release, which holds what is removed.
        with changing_releases(workspace.home):
            sources = _checked(workspace, names)
            is_begun = workspace.paths.purge_mark.exists()
            workspace.paths.purge_mark.touch()
        before, releases = _size(workspace.home), release_ids(workspace.home)
        removed = _remove(workspace, sources, is_begun=is_begun)
        clean = clean_releases(workspace)
        done = _sweep(workspace, clean)
        workspace.paths.purge_mark.unlink(missing_ok=True)
    return replace(
        done,
        sources=sources,
        removed=removed,
        # Not the one that the removal itself has published: nobody has seen it.
        dropped_releases=releases,
        bytes_before=before,
        bytes_after=_size(workspace.home),
        elsewhere=_elsewhere(workspace),
    )


@contextlib.contextmanager
def between_purges(workspace: Workspace) -> Iterator[None]:
    """Wait until no purge is at work, then let none begin, nor any publish, within the context."""
    while True:
        with changing_releases(workspace.home):
            if not workspace.is_purging:
                yield
                return
        time.sleep(_LOOK_SECONDS)


def clean_releases(workspace: Workspace, removed: Collection[str] = ()) -> set[str]:
    """Return the ids of releases all of whose documents are in the index, as they were then.

    Those of the indexes that experiments have made are among them.

    Of a release that is not kept any more nobody knows. Documents of ``removed`` files count as
    gone.
    """
    with workspace.store.read() as con:
        rows = con.execute(f"{_CONTENTS} WHERE source NOT IN (SELECT unnest(?))", [list(removed)])
        now = set(rows.fetchall())
    clean: set[str] = set()
    paths = workspace.paths
    homes = (workspace.home, *paths.indexes_of_documents(), *paths.variants_of_index())
    for release in (each for home in homes for each in each_release(home)):
        with contextlib.suppress(StorageError, duckdb.Error):
            if release.path is None:
                continue
            with connect_published(release.path) as con:
                contents = con.execute(_CONTENTS).fetchall()
            if now.issuperset(contents):
                clean.add(release.id)
    return clean


def unused_experiments(workspace: Workspace, clean: Collection[str]) -> KeptExperiments:
    """Return what :func:`drop_experiments` would drop."""
    counts = (each.unused(workspace, clean) for each in _experiments(workspace.home))
    return sum(counts, KeptExperiments())


def drop_experiments(workspace: Workspace, clean: Collection[str], release: str) -> KeptExperiments:
    """Remove evaluations of releases that are not ``clean``; ``release`` is published now."""
    counts = (each.drop(workspace, clean, release) for each in _experiments(workspace.home))
    return sum(counts, KeptExperiments())


def _experiments(home: Path) -> list[Experiments]:
    there = (file for name, file in files().items() if (home / name).exists())
    return [file.experiments for file in there if file.experiments]


def _elsewhere(workspace: Workspace) -> list[str]:
    """Return the places where copies may be that no command of this program can reach."""
    own = histories_elsewhere(workspace.settings)
    asked = uses_model(workspace.settings) or workspace.paths.calls.is_file()
    shared = [_SHARED.format(place) for place in shared_elsewhere(workspace)]
    postgres = [_POSTGRES] if workspace.settings.storage.url else []
    return [*own, *shared, *postgres, *([_MODEL_LOGS] if asked else []), *_ELSEWHERE]


def _checked(workspace: Workspace, names: Sequence[str]) -> list[str]:
    """Return the files of these names.

    Raises InputError where they, or all, cannot be purged, and ConfigError where an extra is
    lacking that can.
    """
    _check_there(workspace)
    check_extras(workspace.home)
    if newest := rolled_back_from(workspace.home):
        raise InputError(
            f"readers see an older release than the index holds: graphrag-pipeline rollback "
            f"{newest} first, then this again"
        )
    is_begun = workspace.paths.purge_mark.exists()
    sources = named_sources(workspace, names, may_be_unknown=is_begun)
    if not is_begun and waiting_batches(workspace):
        raise InputError(
            "changes are waiting to be indexed: run graphrag-pipeline index FOLDER first, "
            "then this again"
        )
    check_gone(workspace, sources)
    return sources


def _check_there(workspace: Workspace) -> None:
    if not workspace.exists:
        raise InputError(f"there is no index in {workspace.home}")


def _present(workspace: Workspace, sources: Collection[str]) -> list[str]:
    return sorted(workspace.batches.sources().keys() & set(sources))


def _remove(workspace: Workspace, sources: Sequence[str], *, is_begun: bool) -> list[str]:
    """Remove from the index the files that it still holds; return them.

    A purge that was stopped may have taken them out of some tables and not of those made from them.
    """
    present = _present(workspace, sources)
    batches = [batch.key for batch in workspace.batches.remove(present)] if present else []
    batches = sorted({*batches, *waiting_batches(workspace)})
    if batches or is_begun:
        run_stages(workspace, batches)
    return present


def _sweep(workspace: Workspace, clean: Collection[str]) -> Purge:
    done = _clean_tables(workspace)
    _say("publish")
    with changing_releases(workspace.home):
        release = publish_while_changing(workspace, anew=True).id
        _say("releases")
        keep_only(workspace.home, release)
        workspace.vectors.drop_tags(sorted(workspace.vectors.tags().keys() - {release}))
        workspace.vectors.keep_last()
    carry_arrays(workspace.home, workspace.settings)
    sharing_of(workspace.settings).forget()
    _say("answers")
    answers = drop_unused(workspace)
    _say("evaluations")
    experiments = drop_experiments(workspace, clean, release)
    _say("history")
    runs = wipe_history(workspace.settings)
    _say("files")
    files = drop_leftovers(workspace)
    workspace.batches.forget_gone(done)
    return Purge(
        release=release,
        answers=answers,
        experiments=experiments,
        dropped_files=files,
        dropped_runs=runs,
    )


def _clean_tables(workspace: Workspace) -> set[str]:
    """Write tables and vectors anew without what is gone; return the batches they hold."""
    _say("tables")
    with workspace.store.transaction() as con:
        done = done_batches(con)
        take_out_batches(con, workspace, workspace.batches.without_gone(done))
        take_out_gone(con)
    _say("vectors")
    versions = workspace.vectors.write_anew()
    with workspace.store.transaction() as con:
        note_versions(con, versions)
    workspace.store.write_anew()
    return done


def _say(step: str) -> None:
    progress.report(step, _STEPS.index(step), len(_STEPS))


def _size(folder: Path) -> int:
    """Return the bytes of all files in a folder, each counted once, whatever names it has."""
    sizes: dict[tuple[int, int], int] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                stat = os.lstat(os.path.join(place, name))
            except OSError:
                continue
            sizes[stat.st_dev, stat.st_ino] = stat.st_size
    return sum(sizes.values())
