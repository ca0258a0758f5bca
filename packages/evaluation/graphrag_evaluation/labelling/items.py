"""Items for people to label: an answer to a question, or two answers beside each other.

Answers are known by their texts, so that a label stays true to what was read: an answer that is
made again in other words has none, and one that several conditions gave is labelled once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import md5
from itertools import combinations
from typing import Literal

import duckdb

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.identity import make_id

Kind = Literal["score", "preference"]
"""What is labelled: one answer by a number, or two by which is better."""

_ANSWERS = """
SELECT q.question_id, q.question, q.document, q.answers, x.condition, a.text
FROM experiments e
JOIN experiment_answers x USING (experiment)
JOIN conditions c USING (experiment, condition)
JOIN answers a USING (answer_id)
JOIN questions q ON q.question_set = e.question_set AND q.question_id = x.question_id
WHERE e.experiment = ? AND a.text <> '' ORDER BY q.position, c.position
"""


@dataclass(frozen=True)
class Item:
    """An answer to a question, or two in the order in which they are shown.

    ``second`` is empty where there is one, ``reference`` are the question's gold answers.
    """

    question_id: str
    question: str
    document: str
    reference: tuple[str, ...]
    first: str
    second: str = ""

    @property
    def kind(self) -> Kind:
        """Whether it is one answer or two."""
        return "preference" if self.second else "score"

    @property
    def hashes(self) -> tuple[str, str]:
        """The hashes of the texts, as DuckDB's ``md5`` makes them; empty where there is none."""
        return text_hash(self.first), text_hash(self.second) if self.second else ""

    @property
    def turned(self) -> Item:
        """The same two answers in the other order."""
        return replace(self, first=self.second, second=self.first)

    @cached_property
    def id(self) -> str:
        """Its name in a sheet. It tells nothing of the condition, and no number, to a program."""
        return f"item-{make_id('label', self.question_id, *self.hashes)[:16]}"

    def beside(self, other: Item) -> Item:
        """Return this answer and another one to the same question as one item."""
        return replace(self, second=other.first)


@dataclass(frozen=True)
class AnswersGiven:
    """The answers of an experiment that have a text, by question and condition, in its order."""

    experiment: str
    by_question: Mapping[str, Mapping[str, Item]]

    @property
    def conditions(self) -> list[str]:
        """The conditions that answered."""
        return list(dict.fromkeys(name for own in self.by_question.values() for name in own))

    def items(self, kind: Kind, conditions: Sequence[str] = ()) -> list[Item]:
        """Return what there is to label, each text or pair of texts once.

        Of pairs each in one order. ``conditions`` leave only their answers. Raises InputError for
        one that there is not.
        """
        if strangers := [name for name in conditions if name not in self.conditions]:
            raise InputError(
                f"{self.experiment} has no answers of a condition {strangers[0]!r}: there are "
                f"{', '.join(self.conditions)}"
            )
        wanted = set(conditions or self.conditions)
        listed: list[Item] = []
        for own in self.by_question.values():
            answers = {item.first: item for name, item in own.items() if name in wanted}
            listed += answers.values() if kind == "score" else _pairs(answers.values())
        return listed

    @cached_property
    def by_id(self) -> Mapping[str, Item]:
        """All items by their id, pairs in both orders."""
        pairs = self.items("preference")
        both = (*pairs, *(pair.turned for pair in pairs))
        return {item.id: item for item in (*self.items("score"), *both)}

    @cached_property
    def ids_of_text(self) -> Mapping[str, Sequence[str]]:
        """The ids of the questions of each text: several where it is asked of several documents."""
        ids: dict[str, list[str]] = {}
        for question_id, own in self.by_question.items():
            ids.setdefault(next(iter(own.values())).question, []).append(question_id)
        return ids


def answers_given(con: duckdb.DuckDBPyConnection, experiment: str) -> AnswersGiven:
    """Return the answers of an experiment that people can label."""
    by_question: dict[str, dict[str, Item]] = {}
    for id, question, document, gold, condition, text in con.execute(
        _ANSWERS, [experiment]
    ).fetchall():
        item = Item(id, question, document, tuple(gold), text)
        by_question.setdefault(id, {})[condition] = item
    return AnswersGiven(experiment, by_question)


def text_hash(text: str) -> str:
    """Return the hash by which an answer's text is known."""
    return md5(text.encode(), usedforsecurity=False).hexdigest()


def _pairs(answers: Iterable[Item]) -> list[Item]:
    return [first.beside(second) for first, second in combinations(answers, 2)]
