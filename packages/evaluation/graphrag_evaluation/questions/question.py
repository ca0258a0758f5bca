"""Questions, with the gold answers and gold passages that are known for them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.store.index_store import get_meta, insert, set_meta

_REMEMBER = """CREATE OR REPLACE TEMP TABLE gold_before AS
SELECT question_set, question, document, answers, passages FROM questions WHERE question_set = ?
"""
_FORGET = """DELETE FROM scores WHERE question_set = ? AND answer_id IN (
    SELECT a.answer_id FROM answers a JOIN gold_before b USING (question, document)
    JOIN questions q USING (question_set, question, document)
    WHERE b.answers <> q.answers OR b.passages <> q.passages)
"""

_COLUMNS = pl.Schema(
    {
        **dict.fromkeys(("question_set", "question_id"), pl.String),
        "position": pl.Int32,
        "question": pl.String,
        "answers": pl.List(pl.String),
        "passages": pl.List(pl.Struct({"title": pl.String, "text": pl.String})),
        **dict.fromkeys(("type", "persona", "task", "document"), pl.String),
    }
)
_STATEMENTS = pl.Schema(
    {
        **dict.fromkeys(("question_set", "question_id"), pl.String),
        "position": pl.Int32,
        "statement": pl.String,
        "sources": pl.List(pl.String),
    }
)
_QUESTIONS = """
SELECT question, answers, passages, type, persona, task, document, a.assertions FROM questions
LEFT JOIN (SELECT question_set, question_id, list({'statement': statement, 'sources': sources}
           ORDER BY position) AS assertions
           FROM question_assertions GROUP BY ALL) a USING (question_set, question_id)
WHERE question_set = ? ORDER BY position
"""


@dataclass(frozen=True)
class Passage:
    """A passage that answers a question: the ``title`` of its document, its ``text``, or both."""

    title: str = ""
    text: str = ""


@dataclass(frozen=True)
class Assertion:
    """A statement that a complete answer makes, with the sentences that it comes from."""

    statement: str
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """A question.

    ``answers`` are right answers, aliases among them; ``passages`` those that it takes to answer.
    ``type`` is what its source calls its kind; ``persona`` and ``task`` are of generated ones.
    ``assertions`` are what an answer must say, the most important first. ``document`` is the one it
    is about, by uri, title or the name of its file; ``place`` is where in its file it stands.
    """

    text: str
    answers: tuple[str, ...] = ()
    passages: tuple[Passage, ...] = ()
    type: str = ""
    persona: str = ""
    task: str = ""
    assertions: tuple[Assertion, ...] = ()
    document: str = ""
    place: str = field(default="", compare=False)

    @property
    def id(self) -> str:
        """A hash of the text, and of the document if there is one."""
        asked = f"{self.text}\0{self.document}" if self.document else self.text
        return hashlib.sha256(asked.encode()).hexdigest()[:16]


def put_questions(
    con: duckdb.DuckDBPyConnection, question_set: str, questions: Sequence[Question]
) -> None:
    """Make a question set hold these questions, in this order; one asked twice counts once.

    Scores of answers to questions that are known now to have other right answers go.
    """
    con.execute(_REMEMBER, [question_set])
    for table in ("questions", "question_assertions"):
        con.execute(f"DELETE FROM {table} WHERE question_set = ?", [question_set])
    distinct = {question.id: question for question in questions}
    rows = [_row(question_set, n, question) for n, question in enumerate(distinct.values())]
    insert(con, "questions", pl.DataFrame(rows, _COLUMNS, orient="row"))
    statements = [
        [question_set, question.id, n, assertion.statement, list(assertion.sources)]
        for question in distinct.values()
        for n, assertion in enumerate(question.assertions)
    ]
    insert(con, "question_assertions", pl.DataFrame(statements, _STATEMENTS, orient="row"))
    con.execute(_FORGET, [question_set])


def get_questions(con: duckdb.DuckDBPyConnection, question_set: str) -> list[Question]:
    """Return the questions of a set in order. Raises InputError where there is no such set."""
    rows = con.execute(_QUESTIONS, [question_set]).fetchall()
    if not rows:
        raise InputError(
            f"there is no file and no question set {question_set!r}: graphrag-pipeline eval "
            "questions lists the sets"
        )
    return [
        Question(
            text,
            tuple(answers),
            tuple(Passage(**p) for p in passages),
            type,
            persona,
            task,
            tuple(Assertion(a["statement"], tuple(a["sources"])) for a in assertions or ()),
            document,
        )
        for text, answers, passages, type, persona, task, document, assertions in rows
    ]


def set_name_of(con: duckdb.DuckDBPyConnection, file: Path) -> str:
    """Return the name of the set that a file's questions are kept as: the file's.

    Where another file of that name was there first, a hash of the place follows it.
    """
    place = str(file.resolve())
    for name in (file.stem, f"{file.stem}-{hashlib.sha256(place.encode()).hexdigest()[:6]}"):
        key = f"questions:{name}"
        if (get_meta(con, key) or place) == place:
            break
    set_meta(con, key, place)
    return name


def set_names(con: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the names of the question sets there are."""
    rows = con.execute("SELECT DISTINCT question_set FROM questions ORDER BY ALL").fetchall()
    return [name for (name,) in rows]


def _row(question_set: str, position: int, question: Question) -> list[Any]:
    return [
        question_set,
        question.id,
        position,
        question.text,
        list(question.answers),
        [{"title": p.title, "text": p.text} for p in question.passages],
        question.type,
        question.persona,
        question.task,
        question.document,
    ]
