"""Requests with a question, and what becomes of them before it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StrictBool,
    model_validator,
)
from pydantic_core import PydanticCustomError

from graphrag_pipeline.query.ask import SENTENCES, Ask, default_method
from graphrag_pipeline.query.methods import method_named, read_method
from graphrag_server.limits import (
    MOST_COLLECTIONS,
    MOST_METHODS,
    QUESTION_CHARACTERS,
    check_parameters,
)

if TYPE_CHECKING:
    from graphrag_pipeline.query.engine import QueryEngine

_OF_COLLECTION = "The collection to ask; without it, the default one."
_OF_DOCUMENTS = (
    "Only documents with this metadata, title or uri: a value, or several. A uri may be a folder, "
    "or hold a *; a key such as date>= asks for a range."
)
_OF_RELEASE = "Another release that is kept: its id, or the first characters of it."

# As str.strip has it: regular expressions have blanks of their own.
_NO_BLANK = (
    "[^\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]"
)


def _number(value: object) -> object:
    if isinstance(value, str | bool):
        raise PydanticCustomError("int_type", "send a number, not text, true or false")
    return value


Whole = Annotated[int, BeforeValidator(_number)]
"""A whole number, as JSON has it."""


class Turn(BaseModel):
    """One turn of the conversation before a question."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["user", "assistant"]
    content: str


class Place(BaseModel):
    """The place to ask at."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(
        min_length=1, max_length=QUESTION_CHARACTERS, json_schema_extra={"pattern": _NO_BLANK}
    )
    collection: str | None = Field(None, description=_OF_COLLECTION)
    release: str | None = Field(None, max_length=128, description=_OF_RELEASE)


class ToRetrieve(Place):
    """A question whose evidence is wanted."""

    method: str | None = Field(
        None,
        max_length=200,
        description="A method, as in bm25 or lightrag:mode=local. Without it: local where a model "
        "writes the answers, else auto.",
    )
    parameters: dict[str, JsonValue] = Field(
        default_factory=dict, description="Those of the method: see /v1/methods."
    )
    where: dict[str, JsonValue] = Field(default_factory=dict, description=_OF_DOCUMENTS)
    collections: list[str] | None = Field(
        None,
        min_length=1,
        max_length=MOST_COLLECTIONS,
        description="Several collections to ask at once, in place of one: ranks are fused.",
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.collections is not None:
            if self.collection is not None or self.release is not None:
                raise ValueError("collections go with neither collection nor release")
            if len(set(self.collections)) < len(self.collections):
                raise ValueError("collections names one twice")
        return self

    def ask(self, engine: QueryEngine) -> Ask:
        """Return what is asked.

        Raises InputError where it cannot be, and a 422 Problem for more than is given.
        """
        method, parameters = self._method(engine)
        return Ask(question=self.question, method=method, parameters=parameters, where=self.where)

    def _method(self, engine: QueryEngine) -> tuple[str, dict[str, Any]]:
        method, in_name = read_method(self.method or default_method(engine.index.settings))
        parameters = {**self.parameters, **in_name}
        method_named(method).parametrise(parameters, engine.index.settings)
        check_parameters(method, parameters)
        return method, parameters


class ToAnswer(ToRetrieve):
    """A question that is to be answered."""

    history: list[Turn] = Field(default_factory=list, description="Where a model writes.")
    response_type: str | None = Field(
        None, max_length=500, description="Length and form, such as 'one paragraph' (with a model)."
    )
    answer_style: Literal["full", "short"] | None = None
    response_format: dict[str, JsonValue] | None = Field(
        None, description="JSON, as in OpenAI's API (with a model)."
    )
    conversation: str | None = Field(
        None,
        max_length=64,
        description="Keep the answer in this conversation of yours; empty: in a new one. Where it "
        "is kept, the stream has the event kept {conversation, answer}, and /v1/query the headers "
        "X-Conversation and X-Answer.",
    )
    follow_ups: Whole = Field(0, ge=0, le=20, description="Questions to suggest as the next.")
    sentences: Whole = Field(SENTENCES, ge=1, le=100, description="At most so many (no model).")
    context: Whole = Field(0, ge=0, le=100, description="More on either side of each (no model).")

    def ask(self, engine: QueryEngine) -> Ask:
        """Return what is asked, and raise what :meth:`ToRetrieve.ask` does."""
        method, parameters = self._method(engine)
        engine.check(method, parameters, self.answer_style, self.response_format)
        return Ask(
            question=self.question,
            method=method,
            parameters=parameters,
            where=self.where,
            history=[(turn.role, turn.content) for turn in self.history],
            response_type=self.response_type,
            answer_style=self.answer_style,
            follow_ups=self.follow_ups,
            response_format=self.response_format,
            sentences=self.sentences,
            context=self.context,
        )


class ToCompare(Place):
    """A question that several methods are asked."""

    methods: list[str] = Field(
        default=["basic", "bm25", "local", "global"], min_length=1, max_length=MOST_METHODS
    )
    where: dict[str, JsonValue] = Field(default_factory=dict, description=_OF_DOCUMENTS)
    retrieval_only: StrictBool = Field(False, description="Retrieve, and make no answers.")
