"""Evaluations in a purge: those stay whose releases held nothing but what is still there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb

from graphrag_evaluation.documents import outdated_indexes
from graphrag_evaluation.question_writing.generating import generated_key, release_key
from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.core.errors import NothingPublishedError
from graphrag_pipeline.query.release import open_release
from graphrag_pipeline.store.frames import drop_rows, put_rows
from graphrag_pipeline.store.index_store import get_meta, set_meta
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.upkeep import home_files
from graphrag_pipeline.upkeep.home_files import Experiments, KeptExperiments

_RELEASES = f"""
SELECT release FROM conditions WHERE release <> '' UNION SELECT release FROM answers UNION
SELECT value FROM meta WHERE starts_with(key, '{release_key("")}') AND value <> ''
"""
_DIRTY_RELEASES = (
    "CREATE OR REPLACE TEMP TABLE dirty_releases AS SELECT unnest(?::VARCHAR[]) AS release"
)
_DIRTY = f"""
CREATE OR REPLACE TEMP TABLE dirty_answers AS
SELECT answer_id FROM answers WHERE release IN (FROM dirty_releases);
-- Of a set that an older program has let a model write, nobody noted the release.
CREATE OR REPLACE TEMP TABLE dirty_sets AS
SELECT s.question_set FROM (SELECT DISTINCT question_set FROM questions) s
JOIN meta g ON g.key = '{generated_key("")}' || s.question_set
LEFT JOIN meta r ON r.key = '{release_key("")}' || s.question_set
WHERE (r.value <> '' AND r.value IN (FROM dirty_releases))
    OR (r.value IS NULL AND EXISTS (FROM dirty_releases));
CREATE OR REPLACE TEMP TABLE dirty_experiments AS
-- That of answers made elsewhere, and of conditions that are asked of many, is empty.
SELECT experiment FROM conditions WHERE release IN (FROM dirty_releases) AND release <> '' UNION
SELECT experiment FROM experiments SEMI JOIN dirty_sets USING (question_set) UNION
SELECT experiment FROM experiment_answers SEMI JOIN dirty_answers USING (answer_id);
"""
_DROPPED = "SELECT (SELECT count(*) FROM dirty_experiments), (SELECT count(*) FROM experiments)"
_DROP = """
DELETE FROM experiment_answers WHERE experiment IN (FROM dirty_experiments);
DELETE FROM answer_samples WHERE answer_id NOT IN (SELECT answer_id FROM experiment_answers)
    OR sample_id IN (FROM dirty_answers);
DELETE FROM answers WHERE answer_id IN (FROM dirty_answers)
    OR answer_id NOT IN (SELECT answer_id FROM experiment_answers UNION ALL
                         SELECT sample_id FROM answer_samples);
DELETE FROM experiments WHERE experiment IN (FROM dirty_experiments);
DELETE FROM conditions WHERE experiment IN (FROM dirty_experiments);
DELETE FROM comparisons WHERE experiment IN (FROM dirty_experiments);
DELETE FROM questions WHERE question_set NOT IN (SELECT question_set FROM experiments);
DELETE FROM question_assertions WHERE question_set NOT IN (SELECT question_set FROM questions);
DELETE FROM scores WHERE answer_id NOT IN (SELECT answer_id FROM answers);
DELETE FROM claims WHERE answer_id NOT IN (SELECT answer_id FROM answers);
DELETE FROM claim_extractions WHERE answer_id NOT IN (SELECT answer_id FROM answers);
DELETE FROM experiment_models WHERE experiment NOT IN (SELECT experiment FROM experiments);
DELETE FROM unanswered WHERE experiment NOT IN (SELECT experiment FROM experiments);
-- Labels are of texts, which they name by hash, and may quote them in notes.
DELETE FROM human_labels WHERE question_id NOT IN (SELECT question_id FROM questions)
    OR first_answer NOT IN (SELECT md5(text) FROM answers)
    OR (second_answer <> '' AND second_answer NOT IN (SELECT md5(text) FROM answers));
DELETE FROM agreements WHERE experiment NOT IN (SELECT experiment FROM experiments);
DELETE FROM gradings WHERE answer_id NOT IN (SELECT answer_id FROM answers UNION ALL SELECT '')
    OR question NOT IN (SELECT question FROM questions);
-- Of those of an older program nobody noted which chunks they quote.
DELETE FROM assertion_sets WHERE question NOT IN (SELECT question FROM questions)
    OR (EXISTS (FROM dirty_releases) AND (chunk_ids IS NULL OR set_id IN (
        SELECT set_id FROM (SELECT set_id, unnest(chunk_ids) AS id FROM assertion_sets)
        ANTI JOIN held_chunks USING (id))));
DELETE FROM gradings WHERE answer_id = '' AND EXISTS (FROM dirty_releases)
    AND subject NOT IN (SELECT id FROM held_chunks);
DELETE FROM differences WHERE first_answer NOT IN (SELECT answer_id FROM answers)
    OR second_answer NOT IN (SELECT answer_id FROM answers);
DELETE FROM judgments WHERE first_answer NOT IN (SELECT answer_id FROM answers)
    OR second_answer NOT IN (SELECT answer_id FROM answers);
"""


# Of evaluations: what all releases held that were asked before this one was made.
_HOLDS_ALL = "holds_all"


def unused_experiments(workspace: Workspace, clean: Collection[str]) -> KeptExperiments:
    """Return what :func:`drop_experiments` would drop."""
    if not workspace.paths.evaluation.is_file():
        return KeptExperiments()
    with EvaluationStore(workspace.home).read() as con:
        return _marked(con, clean)


def drop_experiments(workspace: Workspace, clean: Collection[str], release: str) -> KeptExperiments:
    """Remove evaluations, with their questions and answers, of releases that are not ``clean``.

    Questions that a model wrote of such a release go, and so do assertions and labels of chunks
    that are not in the index any more. ``release`` is the one that is published now: those that
    stay held no more than it. Means by metric, which are numbers alone, stay.
    """
    if not workspace.paths.evaluation.is_file():
        return KeptExperiments()
    store = EvaluationStore(workspace.home)
    with workspace.store.read() as index:
        chunks = index.execute("SELECT id FROM chunks").pl()
    with store.transaction() as con:
        summary = _marked(con, clean)
        put_rows(con, "held_chunks", chunks)
        con.execute(_DROP)
        drop_rows(con, "held_chunks")
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


def outdated(workspace: Workspace, removed: Collection[str]) -> Sequence[Path]:
    """Return the folders of indexes of single documents that are gone or have changed.

    Documents of ``removed`` files count as gone.
    """
    folders = workspace.paths.indexes_of_documents()
    if not folders:
        return []
    try:
        with open_release(workspace.home, settings=workspace.settings) as release:
            return outdated_indexes(release, folders, removed)
    except NothingPublishedError:
        return folders


EVALUATIONS = replace(
    home_files.EVALUATIONS,
    experiments=Experiments(unused=unused_experiments, drop=drop_experiments),
    extra="",
)
DOCUMENT_INDEXES = replace(home_files.DOCUMENT_INDEXES, outdated=outdated, extra="")
