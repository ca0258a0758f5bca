"""Requests of clients of OpenAI's API, and the parts of them that count here.

Clients send settings of a model, tools that the model may call, and fields of their own servers.
None of them changes an answer of this server: they are ignored, and a header of the answer names
them. What asks for another kind of answer than a text with sources is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    JsonValue,
    StrictBool,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_after_validator_function

from graphrag_server.attached import without_attached
from graphrag_server.citing import HEADING
from graphrag_server.limits import QUESTION_CHARACTERS
from graphrag_server.problems import HttpProblem
from graphrag_server.routes.asked import Turn

IGNORED = "X-Ignored-Fields"
"""The header that names the fields of a request that were ignored."""
_MOST_NAMED, _LONGEST_NAME = 30, 40
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_NO_TOOL = "no tool is called here: leave tool_choice out, or ask for JSON by response_format"
_NO_SOUND = "answers are text: leave it out"
_ROLE = re.compile(r"^(system|user|human|assistant|ai):[ \t]*\n?", re.IGNORECASE | re.MULTILINE)
_ASKS_FOR_MORE = ("assistant", "ai")


class _Only:
    """Rule for a field of which one of some values is taken, or none at all."""

    def __init__(self, what_to_do: str, *values: JsonValue) -> None:
        self._what_to_do = what_to_do
        self._values = [None, *values]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, *_: object) -> dict[str, Any]:
        return {"enum": self._values}

    def _checked(self, value: JsonValue) -> JsonValue:
        # True is 1 to Python alone.
        alike = (each for each in self._values if isinstance(each, bool) == isinstance(value, bool))
        return _checked(value, any(value == each for each in alike), self._what_to_do)


def _no_tool_needed(choice: JsonValue) -> JsonValue:
    return _checked(choice, _leaves_open(choice), _NO_TOOL)


def _one_text(value: object) -> object:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str):
        raise PydanticCustomError("prompt", "send one prompt, as text")
    return value


_OPEN = (None, "", "auto", "none", {"type": "auto"}, {"type": "none"})
"""What leaves it to a model whether it calls a tool."""
_ALLOWED = {
    "type": "object",
    "properties": {
        "type": {"const": "allowed_tools"},
        "allowed_tools": {
            "type": "object",
            "properties": {"mode": {"not": {"const": "required"}}},
        },
    },
    "required": ["type", "allowed_tools"],
}
_Choice = Annotated[
    JsonValue,
    AfterValidator(_no_tool_needed),
    WithJsonSchema({"anyOf": [{"enum": [*_OPEN]}, _ALLOWED]}),
]
_TEXT = {"type": "string"}
_ONE_TEXT = {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 1}
_Prompt = Annotated[
    str,
    BeforeValidator(_one_text),
    WithJsonSchema({"anyOf": [_TEXT, _ONE_TEXT]}),
]


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
    """Options for what a stream has besides text."""

    model_config = ConfigDict(extra="ignore")

    include_usage: StrictBool | None = False


class _Sent(BaseModel):
    """Fields that both kinds of request have. Further fields are taken, and ignored."""

    model_config = ConfigDict(extra="allow")

    model: str = Field(min_length=1, max_length=200)
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[JsonValue, _Only("there is one answer here: leave it out", 1)] = None
    logprobs: Annotated[
        JsonValue, _Only("answers have no probabilities: leave it out", False, 0)
    ] = None
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


class Chat(_Sent):
    """A conversation whose last question is to be answered."""

    messages: list[Message] = Field(min_length=1)
    response_format: dict[str, JsonValue] | None = Field(
        None, description="JSON, or JSON by a schema, where a model writes the answer."
    )
    tool_choice: _Choice = Field(None, description="No tool is called.")
    function_call: _Choice = Field(None, description="No function is called.")
    audio: Annotated[JsonValue, _Only(_NO_SOUND)] = None
    modalities: Annotated[JsonValue, _Only(_NO_SOUND, [], ["text"])] = None

    @property
    def question(self) -> str:
        """The last thing that the user has said. Raises a 400 Problem where that is no question."""
        message = self.messages[self._place]
        if not message.is_text:
            raise HttpProblem(
                400, "a question may hold text alone: leave out images, sound and files"
            )
        return message.text

    @property
    def history(self) -> list[Turn]:
        """Earlier messages of user and assistant; instructions are the server's own."""
        return [*_turns((each.role, each.text) for each in self.messages[: self._place])]

    @property
    def _place(self) -> int:
        """The place of the question: results of tools and instructions may come after it."""
        for place in range(len(self.messages) - 1, -1, -1):
            message = self.messages[place]
            if message.role == "user":
                return place
            if message.role == "assistant" and message.text.strip():
                break
        raise HttpProblem(400, "the last message must be of the role user, and hold the question")


class ToComplete(_Sent):
    """A question as a prompt: the older form, which some clients use for models they do not know.

    A prompt that is a conversation, ``user: ...`` and ``assistant:`` at its end, is read as one.
    """

    prompt: _Prompt

    @property
    def question(self) -> str:
        """The question that is asked last."""
        return self._talk[1]

    @property
    def history(self) -> list[Turn]:
        """The messages before it."""
        return self._talk[0]

    @property
    def _talk(self) -> tuple[list[Turn], str]:
        return _conversation(self.prompt) or ([], self.prompt)


def checked_question(text: str) -> str:
    """Return a question. Raises a 400 Problem where it is none, or too long."""
    if not text.strip():
        raise HttpProblem(400, "the last message must be of the role user, and hold the question")
    if len(text) > QUESTION_CHARACTERS:
        raise HttpProblem(400, f"a question has at most {QUESTION_CHARACTERS:,} characters")
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
    return choice in _OPEN


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
