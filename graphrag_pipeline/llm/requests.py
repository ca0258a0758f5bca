"""Requests as they are meant, and as a server will take them."""

from __future__ import annotations

import hashlib
import itertools
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_pipeline.llm.cache import request_json
from graphrag_pipeline.llm.errors import TerminalModelError
from graphrag_pipeline.llm.options import LlmOptions

Messages = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class ChatRequest:
    """One question to the chat model; what is None is as the options say.

    ``json_schema`` asks for structured output where the server has it. ``variant`` makes another
    call of the same question (another sample). ``use_cache=False`` neither reads nor keeps.
    ``response_format`` asks for it as somebody else's API has it, in place of ``json_schema``.
    ``check`` is given the text of an answer and raises ModelOutputError if that cannot be used: it
    is not kept then, and dropped where it was.
    """

    messages: Messages
    stage: str
    batch: str | None = None
    max_output_tokens: int | None = None
    json_schema: Mapping[str, Any] | None = None
    logit_bias: Mapping[int, int] | None = None
    temperature: float | None = None
    use_cache: bool = True
    variant: str | None = None
    check: Callable[[str], object] | None = None
    response_format: Mapping[str, Any] | None = None


def chat_body(request: ChatRequest, options: LlmOptions) -> dict[str, Any]:
    """Return the body of a chat request, its keys always in the same order."""
    body: dict[str, Any] = {
        "model": options.model,
        "messages": [_ordered(message) for message in request.messages],
    }
    temperature = options.temperature if request.temperature is None else request.temperature
    if temperature is not None:
        body["temperature"] = float(temperature)
    if most := request.max_output_tokens or options.max_output_tokens:
        body["max_tokens"] = most
    if request.json_schema is not None and options.structured_output != "off":
        schema = {"name": "answer", "schema": request.json_schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif request.response_format is not None and options.structured_output != "off":
        body["response_format"] = request.response_format
    if request.logit_bias:
        body["logit_bias"] = {str(k): v for k, v in sorted(request.logit_bias.items())}
    return body | dict(sorted(options.extra.items()))


def prompt_text(messages: Messages) -> str:
    """Return all that a model is given to read, to count its tokens."""
    return "\n".join(str(message.get("content") or "") for message in messages)


class Dialect:
    """Parameters that one server has been found not to take; the rest of the client need not know.

    Reasoning models refuse a temperature, some want ``max_completion_tokens``, many servers have
    no structured output or no token bias: each is refused once, then left out. The user's own
    ``extra`` parameters are never left out. OpenAI is told which requests go on from the same
    prompt, so that it finds it in its cache; others may refuse what they do not know.
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
        self._formats = ["json_schema"]
        if options.structured_output == "auto":
            self._formats += ["json_object", ""]
        self._left_out: set[str] = set()
        self._max_tokens, self._other_name = "max_tokens", "max_completion_tokens"
        self._routes = min(options.concurrency, _MOST_ROUTES) if options.is_openai else 0
        if options.is_openai:
            self._max_tokens, self._other_name = self._other_name, self._max_tokens

    def write(self, body: Mapping[str, Any]) -> bytes:
        """Return the body as this server takes it."""
        return request_json(self.translate(body))

    def translate(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body without what this server does not take."""
        if self._routes and "messages" in body:
            body = {_ROUTE: _route(body["messages"], self._routes), **body}
        wire = {
            self._max_tokens if name == "max_tokens" and name not in self._own else name: value
            for name, value in body.items()
            if name not in self._left_out
        }
        if "response_format" in wire and "response_format" not in self._own:
            if self._formats[0] == "json_object":
                wire["response_format"] = {"type": "json_object"}
            elif not self._formats[0]:
                del wire["response_format"]
        return wire

    def learn(self, refusal: TerminalModelError, sent: bytes, body: Mapping[str, Any]) -> bool:
        """Say whether the request can be put otherwise, having learned from its refusal."""
        with self._lock:
            if self.write(body) == sent and isinstance(refusal, RefusedParameterError):
                self._learn(refusal.named)
            return self.write(body) != sent

    def _learn(self, named: frozenset[str]) -> None:
        for name in named - self._own:
            if name == self._max_tokens and self._other_name:
                self._max_tokens, self._other_name = self._other_name, ""
            elif name == "response_format":
                del self._formats[: len(self._formats) > 1]
            elif name in _MAY_BE_LEFT_OUT:
                self._left_out.add(name)


_KNOWN: dict[tuple[object, ...], Dialect] = {}


class RefusedParameterError(TerminalModelError):
    """A request that was refused for parameters that the server's error names."""

    named: frozenset[str] = frozenset()


_ROUTE = "prompt_cache_key"
_MOST_ROUTES = 64
_MAY_BE_LEFT_OUT = {"temperature", "logit_bias", "stream_options", "encoding_format", _ROUTE}
_NAMES = re.compile(
    r"max_completion_tokens|max_tokens|temperature|logit_bias|stream_options|encoding_format"
    r"|prompt_cache_key|response_format|json_schema|json_object|structured output|grammar",
    re.IGNORECASE,
)


def parameters_named(text: str) -> frozenset[str]:
    """Return the parameters that an error message speaks of."""
    found = [name.lower() for name in _NAMES.findall(text)]
    if any("max_" in name for name in found):
        return frozenset(found[:1])
    formats = {"json_schema", "json_object", "structured output", "grammar"}
    return frozenset("response_format" if name in formats else name for name in found)


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
