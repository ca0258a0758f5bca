"""A question as it is put to an index: by which method, and after which conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core import showing
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.query.conversation import HISTORY_TURNS, Turn, recent_turns
from graphrag_pipeline.query.json_answers import checked_format
from graphrag_pipeline.query.limited_release import checked_where
from graphrag_pipeline.query.question import AnalysedQuestion
from graphrag_pipeline.query.short_answers import check_style

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings

SENTENCES = 5
"""How many sentences an answer has that no model writes."""

_MOST = 100


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A question and how it is to be answered.

    ``method`` empty: local where a model writes the answers, else auto. ``parameters`` are those of
    the method. The rest counts where a model writes the answer:
    ``history`` is the conversation so far, (role, text) with the roles "user" and "assistant",
    oldest first, of which the ``history_turns`` most recent are held; ``response_type`` is the
    length and form asked for, ``answer_style`` "full" or "short" (see
    :mod:`~graphrag_pipeline.query.short_answers`), by default those of the settings;
    ``response_format`` asks for JSON, as in OpenAI's API. Where no model writes it, ``sentences``
    is how many sentences the answer has at most, and ``context`` how many more stand on either side
    of each.

    ``follow_ups`` is how many questions are suggested that may come next, none by default.
    ``where`` limits the question to documents: by keys of their metadata, ``title`` or ``uri``,
    each with the value to be met, or several of which one is.

    Raises InputError for an empty question, what is no conversation, no filter, and no number.
    """

    question: str
    method: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    where: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[Turn] = ()
    history_turns: int = HISTORY_TURNS
    response_type: str | None = None
    answer_style: str | None = None
    sentences: int = SENTENCES
    context: int = 0
    follow_ups: int = 0
    response_format: Mapping[str, Any] | None = None

    __repr__ = showing.brief

    def __post_init__(self) -> None:
        _check_number("sentences", self.sentences, 1)
        _check_number("context", self.context, 0)
        _check_number("follow_ups", self.follow_ups, 0)
        if self.answer_style is not None:
            check_style(self.answer_style)
        checked = {
            "question": AnalysedQuestion(plain_question(self.question)),
            "history": tuple(recent_turns(self.history, self.history_turns)),
            "where": checked_where(self.where),
            "response_format": checked_format(self.response_format),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, question: str | Ask, method: str = "", **given: Any) -> Ask:
        """Return a question with its options, all others being parameters of the method."""
        if isinstance(question, Ask):
            return question
        own = {option.name for option in fields(cls)} - {"parameters"}
        options = {name: given.pop(name) for name in own & given.keys()}
        options["where"] = options.get("where") or {}
        return cls(question=question, method=method, parameters=given, **options)

    def by(self, settings: Settings) -> Ask:
        """Return this question with a method: where it names none, that of the settings."""
        return self if self.method else replace(self, method=default_method(settings))


def default_method(settings: Settings) -> str:
    """Return the method of a question that names none: local where a model writes, else auto."""
    return "local" if settings.query.answers == "llm" else "auto"


def plain_question(question: str) -> str:
    """Return a question as it is asked; raises InputError for one that says nothing.

    So does what is no text: scripts pass on what they read.
    """
    if not isinstance(question, str):
        raise InputError(f"a question is text, not {type(question).__name__}: ask something")
    text = question.encode("utf-8", "replace").decode().replace("\0", " ").strip()
    if not text:
        raise InputError("the question is empty: ask something")
    return text


def _check_number(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
        raise InputError(f"{name} = {value!r}: must be a whole number from {least} to {_MOST}")
