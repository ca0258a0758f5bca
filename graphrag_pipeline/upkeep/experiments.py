"""Evaluations: those of releases that held nothing but what is still in the index."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import duckdb

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.evaluation.store import EvaluationStore
from graphrag_pipeline.releases.kept import release_file, release_ids
from graphrag_pipeline.store.index_store import connect_published, get_meta, set_meta
from graphrag_pipeline.store.workspace import Workspace

_CONTENTS = "SELECT id, content_hash FROM documents"
_RELEASES = "SELECT DISTINCT release FROM conditions UNION SELECT DISTINCT release FROM answers"
_DIRTY_RELEASES = (
    "CREATE OR REPLACE TEMP TABLE dirty_releases AS SELECT unnest(?::VARCHAR[]) AS release"
)
_DIRTY = """
CREATE OR REPLACE TEMP TABLE dirty_answers AS
SELECT answer_id FROM answers WHERE release IN (FROM dirty_releases);
CREATE OR REPLACE TEMP TABLE dirty_experiments AS
SELECT experiment FROM conditions WHERE release IN (FROM dirty_releases) UNION
SELECT experiment FROM experiment_answers SEMI JOIN dirty_answers USING (answer_id);
"""
_DROPPED = "SELECT (SELECT count(*) FROM dirty_experiments), (SELECT count(*) FROM experiments)"
_DROP = """
DELETE FROM experiment_answers WHERE experiment IN (FROM dirty_experiments);
DELETE FROM answers WHERE answer_id IN (FROM dirty_answers)
    OR answer_id NOT IN (SELECT answer_id FROM experiment_answers);
DELETE FROM experiments WHERE experiment IN (FROM dirty_experiments);
DELETE FROM conditions WHERE experiment IN (FROM dirty_experiments);
DELETE FROM comparisons WHERE experiment IN (FROM dirty_experiments);
DELETE FROM questions WHERE question_set NOT IN (SELECT question_set FROM experiments);
DELETE FROM scores WHERE answer_id NOT IN (SELECT answer_id FROM answers);
DELETE FROM claims WHERE answer_id NOT IN (SELECT answer_id FROM answers);
DELETE FROM claim_extractions WHERE answer_id NOT IN (SELECT answer_id FROM answers);
DELETE FROM unanswered WHERE experiment NOT IN (SELECT experiment FROM experiments);
DELETE FROM agreements WHERE experiment NOT IN (SELECT experiment FROM experiments);
DELETE FROM gradings WHERE answer_id NOT IN (SELECT answer_id FROM answers UNION ALL SELECT '')
    OR question NOT IN (SELECT question FROM questions);
-- They quote documents, and nobody noted which.
DELETE FROM assertion_sets WHERE EXISTS (FROM dirty_releases)
    OR question NOT IN (SELECT question FROM questions);
DELETE FROM gradings WHERE answer_id = '' AND EXISTS (FROM dirty_releases);
DELETE FROM differences WHERE first_answer NOT IN (SELECT answer_id FROM answers)
    OR second_answer NOT IN (SELECT answer_id FROM answers);
DELETE FROM judgments WHERE first_answer NOT IN (SELECT answer_id FROM answers)
    OR second_answer NOT IN (SELECT answer_id FROM answers);
"""


# Of evaluations: what all releases held that were asked before this one was made.
_HOLDS_ALL = "holds_all"


@dataclass(frozen=True)
class KeptExperiments:
    """How many evaluations stay, and how many go."""

    kept: int = 0
    dropped: int = 0


def clean_releases(workspace: Workspace, removed: Collection[str] = ()) -> set[str]:
    """Return the ids of releases all of whose documents are in the index, as they were then.

    Of a release that is not kept any more nobody knows. Documents of ``removed`` files count as
    gone.
    """
    with workspace.store.read() as con:
        rows = con.execute(f"{_CONTENTS} WHERE source NOT IN (SELECT unnest(?))", [list(removed)])
        now = set(rows.fetchall())
    clean: set[str] = set()
    for release in release_ids(workspace.home):
        with contextlib.suppress(StorageError, duckdb.Error):
            con = connect_published(release_file(workspace.home, release))
            try:
                if now.issuperset(con.execute(_CONTENTS).fetchall()):
                    clean.add(release)
            finally:
                con.close()
    return clean


def unused_experiments(workspace: Workspace, clean: Collection[str]) -> KeptExperiments:
    """Return what :func:`drop_experiments` would drop."""
    if not workspace.paths.evaluation.is_file():
        return KeptExperiments()
    with EvaluationStore(workspace.home).read() as con:
        return _marked(con, clean)


def drop_experiments(workspace: Workspace, clean: Collection[str], release: str) -> KeptExperiments:
    """Remove evaluations, with their questions and answers, of releases that are not ``clean``.

    ``release`` is the one that is published now: those that stay held no more than it. Means by
    metric, which are numbers alone, stay.
    """
    if not workspace.paths.evaluation.is_file():
        return KeptExperiments()
    store = EvaluationStore(workspace.home)
    with store.transaction() as con:
        summary = _marked(con, clean)
        con.execute(_DROP)
        set_meta(con, _HOLDS_ALL, release)
    store.write_anew()
    return summary


def _marked(con: duckdb.DuckDBPyConnection, clean: Collection[str]) -> KeptExperiments:
    holds_all = get_meta(con, _HOLDS_ALL) or ""
    before = holds_all if holds_all in clean else ""
    others = _others(con.execute(_RELEASES).fetchall(), clean, before)
    con.execute(_DIRTY_RELEASES, [others])
    con.execute(_DIRTY)
    dropped, n_all = con.execute(_DROPPED).fetchone() or (0, 0)
    return KeptExperiments(n_all - dropped, dropped)


def _others(rows: Iterable[tuple[str]], clean: Collection[str], before: str) -> list[str]:
    """Return the releases that are not clean, and not older than a clean one that holds all."""
    return [release for (release,) in rows if release not in clean and release >= before]
