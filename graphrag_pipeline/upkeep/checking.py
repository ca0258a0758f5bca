"""An index checked: everything that it keeps against everything else, as far as it can be read."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import duckdb

from graphrag_pipeline.core import progress, showing
from graphrag_pipeline.core.errors import BusyError, StorageError
from graphrag_pipeline.core.hardening.open_files import require_open_files
from graphrag_pipeline.core.rows import one_line
from graphrag_pipeline.core.text import counted
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.releases.kept_releases import release_ids
from graphrag_pipeline.releases.publishing import behind
from graphrag_pipeline.store.file_sums import record_sums
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.upkeep import (
    index_tables,
    other_files,
    release_files,
    repairing,
    vector_tables,
)
from graphrag_pipeline.upkeep.problems import Problem, Verification
from graphrag_pipeline.upkeep.purging import between_purges

VERIFICATIONS = (
    Verification("leftovers", other_files.find_leftovers, repairing.remove_leftovers),
    Verification("calls", other_files.find_damaged_calls, repairing.salvage_calls),
    Verification("index_file", index_tables.find_unreadable, repairing.rebuild_index_file),
    Verification("schema", index_tables.find_newer_schema),
    Verification("rows", index_tables.find_broken_rows, repairing.restore_rows),
    Verification("same_as_release", index_tables.find_other_than_release, repairing.restore_rows),
    Verification("graph", index_tables.find_other_graph, repairing.restore_rows),
    Verification("manifests", other_files.find_wrong_manifests, repairing.restore_rows),
    # Before vectors: made of an index that says other versions of them, a release would have other
    # rows, and older ones are told from those.
    Verification("releases", release_files.find_broken_releases, repairing.publish_again),
    Verification("vector_files", vector_tables.find_changed_files, repairing.set_changed_aside),
    Verification("vectors", vector_tables.find_wrong_vectors, repairing.embed_again),
    Verification("arrays", other_files.find_damaged_arrays, repairing.carry_again),
    Verification("published", release_files.find_wrong_published, repairing.put_published_in_place),
    Verification(
        "release_vectors", release_files.find_wrong_release_vectors, repairing.embed_releases_again
    ),
    Verification("tags", release_files.find_wrong_tags, repairing.set_tags),
    Verification("other_files", other_files.find_damaged_files),
    Verification("history", other_files.find_damaged_history),
)
"""What is verified, in the order in which it is repaired: each rests on those before it."""

_COMPLETE = "a purge was interrupted: run graphrag-pipeline purge to finish it"
_ON_TABLES = frozenset({"rows", "same_as_release", "graph", "manifests", "vectors"})
_ON_INDEX = _ON_TABLES | {"schema"}


@dataclass(frozen=True)
class Checked:
    """Results of a check, and what was repaired before.

    ``notes`` tell what is no fault, such as tables that the next run will bring up to date, and
    what it will clear away.
    """

    problems: Sequence[Problem]
    repairs: Sequence[str] = ()
    notes: Sequence[str] = ()

    def __repr__(self) -> str:
        first = self.problems[0].line if self.problems else None
        return showing.two_lines(f"Checked: {self.verdict}", first)

    @property
    def verdict(self) -> str:
        """The last line: ok, or how many problems there are."""
        return counted(len(self.problems), "problem") if self.problems else "ok"


def check(workspace: Workspace) -> Checked:
    """Verify all that an index keeps, and change nothing.

    Runs go on meanwhile: the tables are looked at a few at a time. Raises StorageError where
    nothing can be written, for no database can be locked there.
    """
    home = workspace.home
    if home.is_dir() and not os.access(home, os.W_OK):
        raise StorageError(
            f"cannot check {home}: it cannot be written, so its databases cannot be locked; copy "
            "it to a folder you can write, and check the copy"
        )
    newest, was_busy = release_ids(home)[:1], workspace.is_busy
    problems = _problems(workspace)
    if problems and (was_busy or workspace.is_busy or release_ids(home)[:1] != newest):
        # What was looked at first may have changed since. A purge takes out one after another.
        with between_purges(workspace):
            pass
        problems = _problems(workspace)
    if _is_half_purged(workspace):
        problems = [
            replace(each, remedy=_COMPLETE) if each.can_repair else each for each in problems
        ]
    lasting = tuple(dict.fromkeys(problem for problem in problems if not problem.passes))
    passing = [problem.line for problem in problems if problem.passes]
    return Checked(lasting, notes=(*passing, *_notes(workspace, lasting)))


def _problems(workspace: Workspace) -> list[Problem]:
    problems: list[Problem] = []
    with workspace.store.session():
        for number, verification in enumerate(VERIFICATIONS):
            progress.report("check", number, len(VERIFICATIONS))
            problems += find_by(workspace, verification, problems)
    return problems


def repair(workspace: Workspace) -> Checked:
    """Verify all that an index keeps, and make again what can be made without paying a model.

    It waits until no run works on the index. What is damaged and replaced stays beside its place,
    with ``damaged`` in its name. Returns what was done and what remains.
    """
    repairs: list[str] = []
    with workspace.turn():
        repairs += repairing.bring_up(workspace)
        found: list[Problem] = []
        for number, verification in enumerate(VERIFICATIONS):
            progress.report("repair", number, len(VERIFICATIONS))
            own = list(find_by(workspace, verification, found))
            can = [problem for problem in own if problem.can_repair]
            if can and verification.repair is not None:
                repairs += _repaired(workspace, verification, can)
                own = list(find_by(workspace, verification, found))
            found += own
        repairs += repairing.finish(workspace) if repairs else []
        record_sums(workspace.home)
    remaining = check(workspace)
    return Checked(remaining.problems, tuple(repairs), remaining.notes)


def _repaired(
    workspace: Workspace, verification: Verification, problems: Sequence[Problem]
) -> Sequence[str]:
    """Repair what one verification has found; what cannot be read meanwhile stays a problem."""
    if verification.repair is None:
        return []
    with contextlib.suppress(duckdb.Error, sqlite3.Error):
        return verification.repair(workspace, problems)
    return []


def find_by(
    workspace: Workspace, verification: Verification, before: Sequence[Problem]
) -> Iterator[Problem]:
    """Yield what one verification finds, after ``before`` was found by others.

    Of an index that cannot be read nothing more is asked. Raises TooManyFilesError before sound
    files are called broken.
    """
    if not workspace.home.is_dir():
        return
    lost = any(problem.check in ("index_file", "schema_version") for problem in before)
    if verification.name in _ON_INDEX and (lost or not workspace.exists):
        if verification.name == "manifests" and not workspace.exists:
            yield from verification.find(workspace)
        return
    if verification.name in _ON_TABLES and index_tables.is_older(workspace):
        return
    require_open_files()
    try:
        yield from verification.find(workspace)
    except BusyError:
        raise
    except (StorageError, duckdb.Error, sqlite3.Error, OSError) as error:
        yield Problem(
            check=verification.name,
            where=str(workspace.home),
            what=f"{verification.name} cannot be verified: {one_line(str(error))}",
            can_repair=False,
        )


def _is_half_purged(workspace: Workspace) -> bool:
    return workspace.paths.purge_mark.exists() and not workspace.is_busy


def _notes(workspace: Workspace, problems: Sequence[Problem]) -> Iterator[str]:
    """Yield what was not looked at; where nothing is wrong, what is behind the graph."""
    if not workspace.exists:
        if not release_ids(workspace.home) and not problems:
            yield f"there is no index in {workspace.home} yet"
        return
    if apart := workspace.paths.indexes_of_documents():
        yield (
            f"not looked at: {counted(len(apart), 'index', 'indexes')} of single documents, which "
            "experiments make again where they are missing; each folder of document_indexes is a "
            "home of its own"
        )
    if problems:
        return
    if _is_half_purged(workspace):
        yield _COMPLETE
    if index_tables.is_older(workspace):
        yield (
            "index.duckdb was made by an older program, and its rows are not verified: the next "
            "graphrag-pipeline index brings it up to date, and nothing is lost"
        )
        return
    settings = workspace.settings
    with workspace.store.look() as con:
        late = behind(con, settings, configured_embedder(settings).name)
    if late:
        yield (
            f"not verified, because the next run makes them anew: {', '.join(late)} (a run was "
            "stopped, or settings have changed)"
        )
