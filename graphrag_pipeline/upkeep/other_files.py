"""The other files of a home folder, verified: manifests, answers, evaluations, marts, leftovers."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import duckdb

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.hardening.temporary import abandoned
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.rows import one_line
from graphrag_pipeline.releases.kept_releases import changes_files, whole_releases
from graphrag_pipeline.store.array_file import is_whole
from graphrag_pipeline.store.batches import Batch, read_manifest
from graphrag_pipeline.store.index_store import get_meta
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.upkeep.home_files import faults, sqlite_fault
from graphrag_pipeline.upkeep.index_tables import FILE
from graphrag_pipeline.upkeep.problems import REPAIR, RESTORE, Problem, problem_of_some
from graphrag_pipeline.upkeep.salvaging import count_changed

MANIFESTS = "manifests"
LEDGER = "batch_ledger"
CALLS = "calls"
LEFTOVERS = "leftovers"
ARRAYS = "arrays"
HISTORY = "history"

_OF_BATCHES = """
SELECT batch, uri, sha256 FROM batch_sources WHERE batch IN (SELECT batch FROM batches)
"""
_STAGES_WITHOUT_BATCH = """
SELECT batch FROM batch_stages ANTI JOIN batches USING (batch) UNION
SELECT batch FROM graph_batches ANTI JOIN batches USING (batch)
"""
_ANOTHER_VERSION_STAGED = """
SELECT g.batch FROM graph_batches g LEFT JOIN batch_stages s
ON s.batch = g.batch AND s.stage = 'extractions'
WHERE NOT coalesce(s.staged, false) AND s.version IS DISTINCT FROM g.version
  AND s.version IS NOT NULL
"""
_POSITION = "llm_calls_position"
_LOOKED_IN = ("", "releases", "batches", "pictures", "web", "ocr", "dbt", "dbt_parsed", "dagster")
_MOST_SAID = 200


def read_manifests(workspace: Workspace) -> tuple[dict[str, Batch], dict[str, str]]:
    """Return the manifests that can be read, by key, and why others cannot, by the file's name."""
    batches: dict[str, Batch] = {}
    broken: dict[str, str] = {}
    for path in sorted(workspace.batches.folder.glob("*.json")):
        try:
            batch = read_manifest(path)
        except StorageError as error:
            broken[path.name] = str(error).partition(": ")[2] or str(error)
            continue
        if batch.key == path.stem:
            batches[batch.key] = batch
        else:
            broken[path.name] = f"it says that it is {batch.key}"
    return batches, broken


def find_wrong_manifests(workspace: Workspace) -> Iterator[Problem]:
    """Yield manifests that cannot be read, and where they and the index say different things."""
    batches, broken = read_manifests(workspace)
    for name, why in broken.items():
        yield Problem(
            check=MANIFESTS,
            where=f"batches/{name}",
            what=f"the manifest cannot be read ({why[:_MOST_SAID]})",
            can_repair=False,
        )
    if not workspace.exists:
        return
    with workspace.store.look() as con:
        known = {batch for (batch,) in con.execute("SELECT batch FROM batches").fetchall()}
        sources = con.execute(_OF_BATCHES).fetchall()
        stray = [row[0] for row in con.execute(_STAGES_WITHOUT_BATCH).fetchall()]
        other = [row[0] for row in con.execute(_ANOTHER_VERSION_STAGED).fetchall()]
    unread = {name.removesuffix(".json") for name in broken}
    yield from problem_of_some(
        known - batches.keys() - unread,
        check=MANIFESTS,
        where="batches",
        what="batches of the index have no manifest",
        can_repair=False,
    )
    yield from _other_sources(batches, sources)
    ledger = partial(problem_of_some, check=LEDGER, where=f"{FILE}, batch_stages")
    yield from ledger(stray, what="stages of a batch that is not there")
    yield from ledger(other, what="batches in the graph of another version than was extracted")


def _other_sources(
    batches: dict[str, Batch], rows: list[tuple[str, str, str | None]]
) -> Iterator[Problem]:
    listed = {(batch, uri): sha256 for batch, uri, sha256 in rows}
    taken_in = {batch for batch, _ in listed}
    last = {change.uri: key for key in sorted(batches) for change in batches[key].changes}
    lacking, other = [], []
    for key in batches.keys() & taken_in:
        for change in batches[key].changes:
            if (key, change.uri) not in listed:
                # A purge by programs before this one has left the names of earlier versions.
                if change.sha256 or (last[change.uri], change.uri) not in listed:
                    lacking.append(change.uri)
            elif change.sha256 and listed[key, change.uri] not in (change.sha256, None):
                other.append(change.uri)
    of_files = partial(problem_of_some, check=LEDGER, where=f"{FILE}, batch_sources")
    yield from of_files(lacking, what="files of manifests that their batch lacks")
    yield from of_files(
        other,
        what="files whose bytes are not those of their manifest",
        remedy=f"run graphrag-pipeline index on their folder; if that changes nothing, {RESTORE}",
        can_repair=False,
    )


def find_damaged_calls(workspace: Workspace) -> Iterator[Problem]:
    """Yield what SQLite's own check says of the cache of answers, and whether it lost its end."""
    path = workspace.paths.calls
    if not path.is_file():
        return
    fault, changed, last_call = sqlite_fault(path), 0, 0
    try:
        if not fault:
            with contextlib.closing(sqlite3.connect(path)) as con:
                changed = count_changed(con)
                last = con.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'llm_calls'")
                last_call = last.fetchone()[0] or 0
    except sqlite3.Error as error:
        fault = one_line(str(error))
    if fault:
        what = f"the answers of models are damaged ({fault})"
        yield Problem(check=CALLS, where=path.name, what=what)
        return
    if changed:
        yield Problem(
            check=CALLS,
            where=path.name,
            what="answers and vectors that are not what was bought",
            number=changed,
            remedy=f"run {REPAIR}: they are dropped, and bought again when they are needed",
        )
    if ledger_position(workspace) > last_call:
        yield Problem(
            check=CALLS,
            where=path.name,
            what="the ledger ends before the last call that the index has of it",
        )


def ledger_position(workspace: Workspace) -> int:
    """Return the number of the last call that the index has; 0 where it cannot be read."""
    if workspace.exists:
        with contextlib.suppress(StorageError, duckdb.Error), workspace.store.look() as con:
            return int(get_meta(con, _POSITION) or 0)
    return 0


def find_damaged_history(workspace: Workspace) -> Iterator[Problem]:
    """Yield the databases of Dagster's history, in the home, in which SQLite finds a fault."""
    folder = Home(workspace.home).dagster
    for path in sorted(folder.rglob("*.db")) if folder.is_dir() else ():
        if fault := sqlite_fault(path):
            yield Problem(
                check=HISTORY,
                where=path.relative_to(workspace.home).as_posix(),
                what=f"the history of runs is damaged ({fault})",
                remedy="move the file away: it tells of past runs, and the index needs none of it",
                can_repair=False,
            )


def find_damaged_files(workspace: Workspace) -> Iterator[Problem]:
    """Yield the files of evaluations, of marts and of other packages that are not whole."""
    for name, fault, remedy in faults(workspace.home):
        yield Problem(
            check=Path(name).stem,
            where=name,
            what=fault,
            remedy=remedy,
            can_repair=False,
        )


def find_damaged_arrays(workspace: Workspace) -> Iterator[Problem]:
    """Yield the files of arrays that releases carry for questions whose bytes are damaged."""
    for path in sorted(Home(workspace.home).releases.glob("*.arrays")):
        if not is_whole(path):
            where = path.relative_to(workspace.home).as_posix()
            yield Problem(check=ARRAYS, where=where, what="its bytes are damaged")


def find_leftovers(workspace: Workspace) -> Iterator[Problem]:
    """Yield what a killed process has left, if no process that may need it is there."""
    swept = _swept(workspace.home)
    others = [path for path in leftovers_of(workspace) if path not in swept]
    of_killed = partial(
        problem_of_some,
        check=LEFTOVERS,
        where=str(workspace.home),
        what="files that a killed process has left",
    )
    yield from of_killed(
        [_named(workspace, path) for path in swept],
        remedy="the next run removes them",
        passes=True,
    )
    yield from of_killed([_named(workspace, path) for path in others])


def leftovers_of(workspace: Workspace) -> list[Path]:
    """Return the files and folders that killed processes have left."""
    found = _swept(workspace.home)
    if workspace.is_busy:
        return found
    kept = {*whole_releases(workspace.home), *changes_files(workspace.home)}
    releases = Home(workspace.home).releases
    marks = sorted(path for end in ("withdrawn", "arrays") for path in releases.glob(f"*.{end}"))
    return found + [path for path in marks if path.stem not in kept]


def _swept(home: Path) -> list[Path]:
    """Return the temporary folders that the next run removes before it begins."""
    folders = [folder for name in _LOOKED_IN if (folder := home / name).is_dir()]
    return [path for folder in folders for path in abandoned(folder)]


def _named(workspace: Workspace, path: Path) -> str:
    return path.relative_to(workspace.home).as_posix()
