"""Requests as they are meant, and as a server will take them."""

from __future__ import annotations

import hashlib
import itertools
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.llm.answers import LOOP, ChatAnswer
from graphrag_pipeline.llm.cache import request_json, request_key
from graphrag_pipeline.llm.errors import ModelOutputError, TerminalModelError
from graphrag_pipeline.llm.options import LlmOptions
from graphrag_pipeline.llm.schemas import cut_back, fitted, without_lengths, without_mosts
from graphrag_pipeline.llm.windows import window_of

Messages = Sequence[Mapping[str, Any]]

_ANSWER_SHARE = 4


@dataclass(frozen=True)
class ChatRequest:
    """One question to the chat model; what is None is as the options say.

    ``json_schema`` asks for structured output where the server has it; the most that its texts
    and lists may hold (``llm.schemas``) is fitted to the call. ``variant`` makes another call of
    the same question (another sample). ``use_cache=False`` neither reads nor keeps.
    ``response_format`` asks for it as somebody else's API has it, in place of ``json_schema``.
    ``check`` is given the text of an answer and raises ModelOutputError if that cannot be used: it
    is not kept then, and dropped where it was. An answer that went round in circles cannot be used
    either, unless the request ``keeps_sound_part``: its text then ends where it began to.
    """

    messages: Messages
    stage: str
    batch: str | None = None
    max_output_tokens: int | None = None
    json_schema: Mapping[str, Any] | None = None
    logit_bias: Mapping[int, int] | None = None
    use_cache: bool = True
    variant: str | None = None
    check: Callable[[str], object] | None = None
    response_format: Mapping[str, Any] | None = None
    keeps_sound_part: bool = False


def chat_body(request: ChatRequest, options: LlmOptions) -> dict[str, Any]:
    """Return the body of a chat request, its keys always in the same order."""
    schema = request.json_schema
    if schema is not None:
        schema = fitted(schema, _answer_tokens(request, options))
    return _body(request, options, schema)


def chat_key(request: ChatRequest, options: LlmOptions) -> bytes:
    """Return the key of a request in the cache: another endpoint or question is another key.

    How long the texts of an answer by a schema may be is no part of the question.
    """
    body = _body(request, options, without_mosts(request.json_schema))
    return request_key(options.endpoint, request_json(body), request.variant)


def _body(
    request: ChatRequest, options: LlmOptions, schema: Mapping[str, Any] | None
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": options.model,
        "messages": [_ordered(message) for message in request.messages],
    }
    if options.temperature is not None:
        body["temperature"] = float(options.temperature)
    if most := request.max_output_tokens or options.max_output_tokens:
        body["max_tokens"] = most
    if schema is not None and options.structured_output != "off":
        by_schema = {"name": "answer", "schema": schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": by_schema}
    elif request.response_format is not None and options.structured_output != "off":
        body["response_format"] = request.response_format
    if request.logit_bias:
        body["logit_bias"] = {str(k): v for k, v in sorted(request.logit_bias.items())}
    return body | dict(sorted(options.extra.items()))


def _answer_tokens(request: ChatRequest, options: LlmOptions) -> int | None:
    """Return how many tokens an answer may have: as set, or the answer's part of the window."""
    if most := request.max_output_tokens or options.max_output_tokens:
        return most
    window = window_of(options)
    return None if window is None else window // _ANSWER_SHARE


def said_after(messages: Messages, more: Messages) -> list[Mapping[str, Any]]:
    """Return messages with more after them; what one role says twice in a row is one message.

    Some servers refuse two of one role in a row.
    """
    talk: list[Mapping[str, Any]] = list(messages)
    for message in more:
        if talk and talk[-1]["role"] == message["role"]:
            content = f"{talk[-1]['content']}\n\n{message['content']}"
            talk[-1] = {**talk[-1], "content": content}
        else:
            talk.append(message)
    return talk


def prompt_text(messages: Messages) -> str:
    """Return all that a model is given to read, to count its tokens."""
    return "\n".join(str(message.get("content") or "") for message in messages)


class Dialect:
    """Parameters that one server has been found not to take; the rest of the client need not know.

    Reasoning models refuse a temperature, some want ``max_completion_tokens``, many servers have
    no structured output or no token bias: each is refused once, then left out. Of a schema the
    lengths of texts go first, then of lists too: OpenAI's strict mode has no lengths of texts. The
    user's own ``extra`` parameters are never left out. OpenAI is told which requests go on from the
    same prompt, so that it finds it in its cache; others may refuse what they do not know.
    """

    @classmethod
    def of(cls, options: LlmOptions) -> Dialect:
        """Return what this process knows of a server, for each of its models and ways to ask."""
        models = (options.model, options.embedding_model)
        key = (options.endpoint, *models, options.structured_output, frozenset(options.extra))
        return _KNOWN.setdefault(key, cls(options))

    def __init__(self, options: LlmOptions) -> None:
        self._own = frozenset(options.extra)
        self._lock = threading.Lock()
        self._formats = ["lengths", "lists", "json_schema"]
        if options.structured_output == "auto":
            self._formats += ["json_object", ""]
        self._left_out: set[str] = set()
        self._max_tokens, self._other_name = "max_tokens", "max_completion_tokens"
        self._routes = min(options.concurrency, _MOST_ROUTES) if options.is_openai else 0
        if options.is_openai:
            self._max_tokens, self._other_name = self._other_name, self._max_tokens
            self._formats.remove("lengths")

    def write(self, body: Mapping[str, Any]) -> bytes:
        """Return the body as this server takes it."""
        return request_json(self.translate(body))

    def translate(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body without what this server does not take."""
        if self._routes and "messages" in body:
            body = {_ROUTE: _route(body["messages"], self._routes), **body}
        left_out = self._left_out | ({"stream_options"} if "stream" in self._left_out else set())
        wire = {
            self._max_tokens if name == "max_tokens" and name not in self._own else name: value
            for name, value in body.items()
            if name not in left_out
        }
        if "response_format" in wire and "response_format" not in self._own:
            wire["response_format"] = self._format(wire["response_format"])
            if wire["response_format"] is None:
                del wire["response_format"]
        return wire

    def _format(self, asked: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the format of an answer as this server takes it, None where it takes none."""
        best = self._formats[0]
        if not best:
            return None
        if best == "json_object":
            return {"type": "json_object"}
        if best == "lengths" or "json_schema" not in asked:
            return asked
        without = without_lengths if best == "lists" else without_mosts
        form = asked["json_schema"]
        return {**asked, "json_schema": {**form, "schema": without(form.get("schema"))}}

    @property
    def streams(self) -> bool:
        """Whether the server takes requests for streamed answers, as far as is known."""
        return "stream" not in self._left_out

    def learn(self, refusal: TerminalModelError, sent: bytes, body: Mapping[str, Any]) -> bool:
        """Say whether the request can be put otherwise, having learned from its refusal."""
        with self._lock:
            if self.write(body) == sent and isinstance(refusal, RefusedParameterError):
                self._learn(refusal.named)
            return self.write(body) != sent

    def _learn(self, named: frozenset[str]) -> None:
        named -= self._own
        if named & _OF_THE_FORMAT:
            self._simplify_format(named)
        for name in named:
            if name == self._max_tokens and self._other_name:
                self._max_tokens, self._other_name = self._other_name, ""
            elif name in _MAY_BE_LEFT_OUT:
                self._left_out.add(name)

    def _simplify_format(self, named: frozenset[str]) -> None:
        """Go on to the next format; a schema is tried without mosts before it is given up."""
        lengths_alone = "maxlength" in named and "maxitems" not in named
        simpler = "lists" if lengths_alone else "json_schema"
        if simpler in self._formats[1:]:
            del self._formats[: self._formats.index(simpler)]
        else:
            del self._formats[: len(self._formats) > 1]


_KNOWN: dict[tuple[object, ...], Dialect] = {}


class RefusedParameterError(TerminalModelError):
    """A request that was refused for parameters that the server's error names."""

    named: frozenset[str] = frozenset()


_ROUTE = "prompt_cache_key"
_MOST_ROUTES = 64
_OF_THE_FORMAT = frozenset(["response_format", "maxlength", "maxitems"])
_MAY_BE_LEFT_OUT = {
    "temperature", "logit_bias", "stream", "stream_options", "encoding_format", _ROUTE
}  # fmt: skip
_NAMES = pattern_of(
    r"max_completion_tokens|max_tokens|temperature|logit_bias|stream_options|encoding_format"
    r"|prompt_cache_key|response_format|json_schema|json_object|structured output|grammar"
    r"|maxLength|maxItems|streaming|\bstream\b",
    re.IGNORECASE,
)


def parameters_named(text: str) -> frozenset[str]:
    """Return the parameters that an error message speaks of."""
    found = [name.lower() for name in _NAMES.findall(text)]
    if any("max_" in name for name in found):
        return frozenset(found[:1])
    formats = ("json_schema", "json_object", "structured output", "grammar")
    same: dict[str, str] = {"streaming": "stream"}
    same |= {name: "response_format" for name in formats}
    return frozenset(same.get(name) or name for name in found)


def _route(messages: Messages, number: int) -> str:
    """Return the same for all requests of a conversation: what was said before the first answer.

    OpenAI keeps some 15 requests a minute with one prefix and one key on one machine. There are as
    many keys as calls at once, so each has about what one of them makes.
    """
    asked = itertools.takewhile(lambda message: message.get("role") != "assistant", messages)
    digest = hashlib.sha256(prompt_text([*asked]).encode("utf-8", "replace")).digest()
    return f"graphrag-{int.from_bytes(digest[:8], 'big') % number}"


def _ordered(message: Mapping[str, Any]) -> dict[str, Any]:
    return {name: message[name] for name in sorted(message, key=lambda n: (n != "role", n))}


def check_usable(request: ChatRequest, text: str, finish_reason: str) -> None:
    """Raise ModelOutputError if a request's answer cannot be used."""
    is_json = request.json_schema is not None or request.response_format is not None
    if is_json and finish_reason == "length":
        raise ModelOutputError("the answer was cut off at the limit of tokens: write less")
    if finish_reason == LOOP and (is_json or not request.keeps_sound_part):
        raise ModelOutputError("the answer repeated itself and was stopped: say nothing twice")
    if request.check is not None:
        request.check(text)


def cut_to_fit(request: ChatRequest, body: Mapping[str, Any], answer: ChatAnswer) -> ChatAnswer:
    """Return an answer whose texts that its schema has cut end with a whole sentence or word."""
    if request.json_schema is None or "response_format" not in body:
        return answer
    form = body["response_format"].get("json_schema") or {}
    return answer._replace(text=cut_back(answer.text, form.get("schema") or {}))
