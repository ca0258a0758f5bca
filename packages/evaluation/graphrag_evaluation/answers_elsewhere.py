"""Answers that were made elsewhere, read from a file to be judged and scored beside ours.

A file has an object an answer, as JSON lines, a JSON list or CSV: ``question`` (or
``question_text``), ``answer``, and if it likes ``condition`` (default: the file's name) and
``contexts``, a text or a list of texts, or of objects with ``text``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from graphrag_evaluation.questions.entries import entries
from graphrag_evaluation.questions.fields import clean
from graphrag_evaluation.questions.question import Question
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import fingerprint
from graphrag_pipeline.core.tokens import count_tokens

METHOD: Final = "elsewhere"
"""What stands for the method and the model of such answers."""

_FIELDS = {"question", "question_text", "query", "question_id", "condition", "answer", "contexts",
           "context"}  # fmt: skip


@dataclass(frozen=True)
class GivenAnswer:
    """An answer to a question, made from ``contexts``; ``place`` is where in which file it is."""

    question: str
    text: str
    contexts: tuple[str, ...]
    place: str

    @property
    def id(self) -> str:
        """A hash of what it says to what."""
        return fingerprint(METHOD, self.question, self.text, list(self.contexts))


GivenAnswers = Mapping[str, GivenAnswer]
"""The answers of one condition by their question's text."""


def read_answers(files: Sequence[Path]) -> dict[str, GivenAnswers]:
    """Return the answers of files by condition, in the files' order.

    Raises InputError for what is no answer, and for a second answer of a condition to a question:
    with the file and the line or entry.
    """
    conditions: dict[str, dict[str, GivenAnswer]] = {}
    for file in files:
        n_before = sum(map(len, conditions.values()))
        for place, entry in entries(file):
            where = f"{file}, {place}"
            condition, answer = _answer(file, where, entry)
            given = conditions.setdefault(condition, {})
            if earlier := given.get(answer.question):
                raise InputError(
                    f"{where}: {condition} has answered this question before, in {earlier.place}"
                )
            given[answer.question] = answer
        if sum(map(len, conditions.values())) == n_before:
            raise InputError(f"{file} holds no answer")
    return dict(conditions)


def check_questions(given: GivenAnswers, questions: Sequence[Question]) -> None:
    """Raise InputError for an answer to a question that is not asked."""
    counts = Counter(question.text for question in questions)
    for answer in given.values():
        if counts[answer.question] > 1:
            raise InputError(
                f"{answer.place}: {answer.question[:80]!r} is asked of several documents, which "
                "answers made elsewhere cannot tell apart: take a set of questions for each"
            )
        if answer.question not in counts:
            raise InputError(
                f"{answer.place}: {answer.question[:80]!r} is no question of the set: answers "
                "belong to questions by their text"
            )


def row_of(answer: GivenAnswer, document: str) -> dict[str, Any]:
    """Return an answer as a row of ``answers``: what it took is not known.

    ``document`` is what its question is about.
    """
    context = "\n\n".join(answer.contexts)
    numbers = ("citations", "citations_resolved", "prompt_tokens", "completion_tokens",
               "model_calls", "retrieve_ms", "total_ms")  # fmt: skip
    return {
        "answer_id": answer.id,
        "question": answer.question,
        "document": document,
        "method": METHOD,
        "parameters": "{}",
        "release": "",
        "model": METHOD,
        "text": answer.text,
        "context": context,
        "chunk_ids": [],
        "context_tokens": count_tokens([context])[0],
        "cost": None,
        "failures": [],
        "answered_at": datetime.now(UTC),
        **dict.fromkeys(numbers, 0),
    }


def _answer(file: Path, where: str, entry: Any) -> tuple[str, GivenAnswer]:
    if not isinstance(entry, Mapping):
        raise InputError(f"{where}: an object with a question and an answer was expected")
    if strangers := sorted(map(str, entry.keys() - _FIELDS)):
        raise InputError(
            f"{where}: unknown field {strangers[0]!r}: question, answer, condition and contexts "
            "are read"
        )
    texts = (clean(entry.get(name)) for name in ("question", "question_text", "query"))
    question = next(filter(None, texts), "")
    text = entry.get("answer")
    if not question:
        raise InputError(f"{where}: no question: a text was expected in the field question")
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{where}: no answer: a text was expected in the field answer")
    listed = entry.get("contexts", entry.get("context")) or []
    items = listed if isinstance(listed, list) else [listed]
    contexts = tuple(context for item in items if (context := _context(where, item)).strip())
    answer = GivenAnswer(question, _storable(text), contexts, where)
    return clean(entry.get("condition")) or file.stem, answer


def _context(where: str, item: Any) -> str:
    text = item.get("text") if isinstance(item, Mapping) else item
    if not isinstance(text, str):
        raise InputError(f"{where}: contexts must be texts, or objects with a text")
    return _storable(text)


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\0", "")
