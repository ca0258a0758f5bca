"""A purge takes of evaluations what rests on text that is gone, and leaves the rest."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from evaluation_fixture import WHEN, Filled, fill, put_row
from graphrag_evaluation.purging import drop_experiments, unused_experiments
from graphrag_evaluation.question_writing.generating import Generated, kept_set
from graphrag_evaluation.questions.question import Assertion, Question
from graphrag_evaluation.store import EvaluationStore
from query_fixture import publish, settings_for

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.releases.kept_releases import release_ids
from graphrag_pipeline.store.workspace import Workspace

CLEAN, DIRTY = "clean?", "dirty?"


@pytest.fixture
def workspace(plain_stores: None, tmp_path: Path) -> Workspace:
    return Workspace(settings_for(publish(tmp_path / "home")))


def evaluated(workspace: Workspace, release: str, name: str, question: str) -> None:
    """Write an experiment whose answers are of a release."""
    fill(workspace.home, Filled(name, ["basic"], [Question(question)]))
    with EvaluationStore(workspace.home).transaction() as con:
        for table, key in (("conditions", "experiment"), ("answers", "question")):
            value = name if key == "experiment" else question
            con.execute(f"UPDATE {table} SET release = ? WHERE {key} = ?", [release, value])


def put_assertions(con: duckdb.DuckDBPyConnection, set_id: str, chunks: list[str] | None) -> None:
    put_row(con, "assertion_sets", set_id=set_id, question=CLEAN, assertions=[], model="m",
            made_at=WHEN, chunk_ids=chunks)  # fmt: skip


def rows(workspace: Workspace, sql: str) -> list[tuple]:
    with EvaluationStore(workspace.home).read() as con:
        return con.execute(sql).fetchall()


def test_assertions_and_labels_of_chunks_that_stay_are_kept(workspace: Workspace) -> None:
    (release,) = release_ids(workspace.home)
    evaluated(workspace, release, "now", CLEAN)
    evaluated(workspace, "29990101T000000-gone", "gone", DIRTY)
    chunk, other = "c1", "c2"
    with workspace.store.transaction() as con:
        con.execute(
            """INSERT INTO chunks SELECT id, 1, 'd', 0, 0, 1, 1, 'It is.', 'b'
               FROM (VALUES ('c1'), ('c2')) v(id)"""
        )
    shown = {"kept": [chunk, other], "gone": [chunk, "c-gone"], "older": None, "none": []}
    with EvaluationStore(workspace.home).transaction() as con:
        for set_id, chunks in shown.items():
            put_assertions(con, set_id, chunks)
        for subject in (chunk, "c-gone"):
            put_row(con, "gradings", grading_id=f"label of {subject}", kind="relevance",
                    question=CLEAN, answer_id="", subject=subject, replicate=0, model="m", value=1,
                    reason="", made_at=WHEN)  # fmt: skip
    told = unused_experiments(workspace, {release})
    assert (told.kept, told.dropped) == (1, 1)
    assert drop_experiments(workspace, {release}, release) == told
    assert rows(workspace, "SELECT experiment FROM experiments") == [("now",)]
    assert rows(workspace, "SELECT set_id FROM assertion_sets ORDER BY 1") == [
        ("kept",), ("none",),
    ]  # fmt: skip
    assert rows(workspace, "SELECT subject FROM gradings") == [(chunk,)]


def test_labels_of_answers_that_go_go_with_them(workspace: Workspace) -> None:
    (release,) = release_ids(workspace.home)
    evaluated(workspace, release, "now", CLEAN)
    evaluated(workspace, "29990101T000000-gone", "gone", DIRTY)
    with EvaluationStore(workspace.home).transaction() as con:
        con.execute(
            """INSERT INTO human_labels BY NAME
               SELECT 'ana' AS labeller, 'score' AS kind, 'tone' AS criterion, x.question_id,
                      md5(a.text) AS first_answer, '' AS second_answer, 1 AS value,
                      a.question AS note, now() AS labelled_at
               FROM experiment_answers x JOIN answers a USING (answer_id)"""
        )
    drop_experiments(workspace, {release}, release)
    assert rows(workspace, "SELECT note FROM human_labels") == [(CLEAN,)]


def test_where_nothing_is_gone_all_stays(workspace: Workspace) -> None:
    (release,) = release_ids(workspace.home)
    evaluated(workspace, release, "now", CLEAN)
    with EvaluationStore(workspace.home).transaction() as con:
        put_assertions(con, "s", None)
    drop_experiments(workspace, {release}, release)
    assert rows(workspace, "SELECT set_id FROM assertion_sets") == [("s",)]


def test_questions_that_a_model_wrote_of_a_release_go_with_it_and_what_they_were_asked_for(
    workspace: Workspace,
) -> None:
    (release,) = release_ids(workspace.home)
    store = EvaluationStore(workspace.home)
    for name, of, text in (("old", "29990101T000000-gone", DIRTY), ("new", release, CLEAN)):
        asked = Question(text, assertions=(Assertion("It is so.", ("It is.",)),))
        kept_set(store, name, "hash", lambda asked=asked: Generated((asked,)), of)
        evaluated(workspace, release, name, text)
        with store.transaction() as con:
            put_row(con, "question_assertions", question_set=name, question_id=asked.id,
                    position=0, statement="It is.", sources=[])  # fmt: skip
    told = unused_experiments(workspace, {release})
    assert (told.kept, told.dropped) == (1, 1)
    drop_experiments(workspace, {release}, release)
    assert rows(workspace, "SELECT question FROM questions") == [(CLEAN,)]
    assert rows(workspace, "SELECT question_set FROM question_assertions") == [("new",)]
    assert rows(workspace, "SELECT experiment FROM experiments") == [("new",)]


def test_tables_of_an_older_program_are_read_on(tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path))
    settings.home_path.mkdir(exist_ok=True)
    with duckdb.connect(str(tmp_path / "evaluation.duckdb")) as con:
        con.execute(
            """CREATE TABLE assertion_sets (set_id VARCHAR PRIMARY KEY, question VARCHAR NOT NULL,
               assertions STRUCT(statement VARCHAR, sources VARCHAR[])[] NOT NULL,
               model VARCHAR NOT NULL, made_at TIMESTAMPTZ NOT NULL);
               INSERT INTO assertion_sets VALUES ('s', 'q', [], 'm', now())"""
        )
    with EvaluationStore(tmp_path).read() as con:
        assert con.execute("SELECT set_id, chunk_ids FROM assertion_sets").fetchall() == [
            ("s", None)
        ]
