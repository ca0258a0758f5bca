"""What clients of OpenAI's API send, and what of it counts here.

Clients send settings of a model, tools that the model may call, and fields of their own servers.
None of them changes an answer of this server: they are ignored, and a header of the answer names
them. What asks for another kind of answer than a text with sources is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator
from pydantic_core import PydanticCustomError

from graphrag_pipeline.serving.attached import without_attached
from graphrag_pipeline.serving.citing import HEADING
from graphrag_pipeline.serving.limits import QUESTION_CHARACTERS
from graphrag_pipeline.serving.problems import Problem
from graphrag_pipeline.serving.routes.asked import Turn

IGNORED = "X-Ignored-Fields"
"""The header that names the fields of a request that were ignored."""
_MOST_NAMED, _LONGEST_NAME = 30, 40
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_NO_TOOL = "no tool is called here: leave tool_choice out, or ask for JSON by response_format"
_ROLE = re.compile(r"^(system|user|human|assistant|ai):[ \t]*\n?", re.IGNORECASE | re.MULTILINE)
_ASKS_FOR_MORE = ("assistant", "ai")


class Part(BaseModel):
    """A part of a message."""

    model_config = ConfigDict(extra="ignore")

    type: str
    text: str | None = ""


class Message(BaseModel):
    """A message of the conversation. Names and calls of tools are not used."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None

    @property
    def text(self) -> str:
        """Its text, without images, sound and files, and what was in them."""
        text = self.content or ""
        if not isinstance(text, str):
            text = "\n".join(part.text for part in text if part.text)
        return without_attached(text) if self.role == "user" else text

    @property
    def is_text(self) -> bool:
        """Whether it is text alone."""
        parts = self.content if isinstance(self.content, list) else []
        return all(part.type in ("text", "input_text", "refusal") for part in parts)


class StreamOptions(BaseModel):
    """What a stream has besides text."""

    model_config = ConfigDict(extra="ignore")

    include_usage: bool | None = False


class _Sent(BaseModel):
    """What both kinds of request have. Further fields are taken, and ignored."""

    model_config = ConfigDict(extra="allow")

    model: str = Field(min_length=1, max_length=200)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: JsonValue = Field(None, description="1: there is one answer to a question.")
    logprobs: JsonValue = Field(None, description="False: an answer has no probabilities.")
    parameters: dict[str, JsonValue] = Field(default_factory=dict, description="Of the method.")
    where: dict[str, JsonValue] = Field(default_factory=dict, description="As in /v1/query.")
    release: str | None = Field(None, max_length=128, description="As in /v1/query.")

    @property
    def with_usage(self) -> bool:
        """Whether a stream is to end with its usage."""
        return bool(self.stream_options and self.stream_options.include_usage)

    @property
    def ignored(self) -> str:
        """The names of fields that have a value and change nothing, as a header has them."""
        return named(name for name, value in (self.model_extra or {}).items() if not _is_no(value))

    @field_validator("n")
    @classmethod
    def _one_answer(cls, value: JsonValue) -> JsonValue:
        return _checked(value, value in (None, 1), "there is one answer here: leave it out")

    @field_validator("logprobs")
    @classmethod
    def _no_probabilities(cls, value: JsonValue) -> JsonValue:
        return _checked(value, not value, "answers have no probabilities: leave it out")


class Chat(_Sent):
    """A conversation whose last question is to be answered."""

    messages: list[Message] = Field(min_length=1)
    response_format: dict[str, JsonValue] | None = Field(
        None, description="JSON, or JSON by a schema, where a model writes the answer."
    )
    tool_choice: JsonValue = Field(None, description="No tool is called: none or auto.")
    function_call: JsonValue = Field(None, description="No function is called: none or auto.")
    audio: JsonValue = Field(None, description="Answers are not spoken.")
    modalities: list[JsonValue] | None = Field(None, description="Text alone.")

    @field_validator("tool_choice", "function_call")
    @classmethod
    def _no_tool_is_required(cls, value: JsonValue) -> JsonValue:
        return _checked(value, _leaves_open(value), _NO_TOOL)

    @field_validator("audio", "modalities")
    @classmethod
    def _no_sound(cls, value: JsonValue) -> JsonValue:
        return _checked(value, value in (None, [], ["text"]), "answers are text: leave it out")

    @property
    def question(self) -> str:
        """The last thing that the user has said. Raises a 400 Problem where that is no question."""
        message = self.messages[self._place]
        if not message.is_text:
            raise Problem(400, "a question may hold text alone: leave out images, sound and files")
        return message.text

    @property
    def history(self) -> list[Turn]:
        """What user and assistant have said before; instructions are the server's own."""
        return [*_turns((each.role, each.text) for each in self.messages[: self._place])]

    @property
    def _place(self) -> int:
        """Where the question stands: results of tools and instructions may come after it."""
        for place in range(len(self.messages) - 1, -1, -1):
            message = self.messages[place]
            if message.role == "user":
                return place
            if message.role == "assistant" and message.text.strip():
                break
        raise Problem(400, "the last message must be of the role user, and hold the question")


class ToComplete(_Sent):
    """A question as a prompt: the older form, which some clients use for models they do not know.

    A prompt that is a conversation, ``user: ...`` and ``assistant:`` at its end, is read as one.
    """

    prompt: str | list[JsonValue]

    @field_validator("prompt")
    @classmethod
    def _one_text(cls, value: str | list[JsonValue]) -> str:
        if isinstance(value, list) and len(value) == 1:
            value = str(value[0]) if isinstance(value[0], str) else value
        if not isinstance(value, str):
            raise PydanticCustomError("prompt", "send one prompt, as text")
        return value

    @property
    def question(self) -> str:
        """What is asked last."""
        return self._talk[1]

    @property
    def history(self) -> list[Turn]:
        """What was said before."""
        return self._talk[0]

    @property
    def _talk(self) -> tuple[list[Turn], str]:
        assert isinstance(self.prompt, str)
        return _conversation(self.prompt) or ([], self.prompt)


def checked_question(text: str) -> str:
    """Return a question. Raises a 400 Problem where it is none, or too long."""
    if not text.strip():
        raise Problem(400, "the last message must be of the role user, and hold the question")
    if len(text) > QUESTION_CHARACTERS:
        raise Problem(400, f"a question has at most {QUESTION_CHARACTERS:,} characters")
    return text


def named(names: Iterable[str]) -> str:
    """Return names as a header may have them: plain characters, and no more than a few."""
    plain = (_NOT_IN_A_NAME.sub("", name)[:_LONGEST_NAME] for name in names)
    return ", ".join(sorted({name for name in plain if name})[:_MOST_NAMED])


def _checked(value: JsonValue, is_right: object, what_to_do: str) -> JsonValue:
    if not is_right:
        raise PydanticCustomError("unsupported", what_to_do)  # type: ignore[arg-type]
    return value


def _is_no(value: Any) -> bool:
    return value is None or value == [] or value == {}


def _leaves_open(choice: JsonValue) -> bool:
    """Whether a model may leave all tools uncalled."""
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        allowed = choice.get("allowed_tools")
        return isinstance(allowed, dict) and allowed.get("mode") != "required"
    return choice in (None, "", "auto", "none") or choice in ({"type": "auto"}, {"type": "none"})


def _conversation(prompt: str) -> tuple[list[Turn], str] | None:
    """Return what was said before and the question of a prompt that is a conversation, or None."""
    parts = _ROLE.split(prompt)
    roles, texts = [role.lower() for role in parts[1::2]], [text.strip() for text in parts[2::2]]
    if parts[0].strip() or len(roles) < 2 or roles[-1] not in _ASKS_FOR_MORE or texts[-1]:
        return None
    if roles[-2] not in ("user", "human"):
        return None
    pairs = [
        ("assistant" if role in _ASKS_FOR_MORE else "user" if role != "system" else role, text)
        for role, text in zip(roles, texts, strict=True)
    ]
    return [*_turns(pairs[:-2])], texts[-2]


def _turns(talk: Iterable[tuple[str, str]]) -> Iterator[Turn]:
    """Yield the turns of a conversation, answers without the footnotes that they had here."""
    for role, text in talk:
        if role == "user" and text.strip():
            yield Turn(role="user", content=text)
        elif role == "assistant" and (answer := text.rpartition(HEADING)[0] or text).strip():
            yield Turn(role="assistant", content=answer)
