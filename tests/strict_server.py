"""A stand-in that keeps to what OpenAI-compatible servers document, its unpleasant parts included.

What it keeps: a request is checked against the request types of the ``openai`` package and refused
as the API refuses it (unknown parameters, wrong values, empty texts, too many or too long inputs,
a schema that strict mode does not take); prompts and answers are counted in the model's own
encoding; an answer ends at ``max_tokens`` with ``finish_reason`` "length", in the middle of a word
if need be; a prompt that does not fit the window is an error, or is cut in silence as Ollama does;
a bias of +100 means that nothing else can be said, the end of the answer included; embeddings come
as base64 or numbers, in the dimensions asked for. Misbehaviour has names: see ``troubles``.

Where it does not: no ``n`` above 1, no tools, no log probabilities, no audio; rate limits are asked
for as troubles, not counted by the minute; what the model says is the responder's.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from model_server import Fault, ModelServer, Request
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
from openai.types.embedding_create_params import EmbeddingCreateParams
from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from graphrag_pipeline.core.tokens import count_tokens, encoding_for, get_encoding

_MESSAGE_TOKENS = 4
_MOST_INPUTS = 2048
_MOST_TOKENS_OF_INPUT = 8191
_MOST_TOKENS_OF_REQUEST = 300_000


@dataclass(frozen=True)
class Served:
    """A model as it is served. ``cuts_prompts`` is Ollama's way with a prompt beyond the window."""

    window: int = 128_000
    most_answer: int = 16_384
    thinks: bool = False
    cuts_prompts: bool = False


class StrictServer(ModelServer):
    """The server; ``models`` says how each is served, any other is served as ``Served()`` is."""

    def __init__(
        self, *given: Any, models: Mapping[str, Served] | None = None, **named: Any
    ) -> None:
        super().__init__(*given, **named)
        self.models = dict(models or {})

    def refuse(self, request: Request) -> Fault | None:
        """Return the error that the API answers a wrong request with."""
        if request.endpoint == "embeddings":
            return _refuse_inputs(request.body)
        return self._refuse_chat(request.body)

    def say(self, request: Request, fault: Fault) -> tuple[str, str, dict[str, int]]:
        """Return the answer within its limit of tokens, and its tokens in the model's encoding."""
        body = request.body
        model, encoding = self._model(body), get_encoding(encoding_for(body["model"]))
        forced = [int(token) for token, bias in body.get("logit_bias", {}).items() if bias == 100]
        # Who can say one of two words alone can neither apologise nor run on.
        is_free = fault.text is not None and not forced
        said = str(fault.text) if is_free else self.responder(request.messages)
        read = min(_prompt_tokens(body), model.window)
        limit = min(_limit(body) or model.most_answer, model.window - read)
        tokens = encoding.encode_ordinary(said)
        if forced:
            first = next((token for token in tokens[:1] if token in forced), forced[0])
            tokens = [first] * (limit + 1)
        reason = "length" if len(tokens) > limit else "stop"
        text = encoding.decode(tokens[:limit]) if reason == "length" else said
        written = min(len(tokens), limit)
        usage = {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
        }
        return text, reason, usage

    def _model(self, body: Mapping[str, Any]) -> Served:
        return self.models.get(body["model"], Served())

    def _refuse_chat(self, body: dict[str, Any]) -> Fault | None:
        kind = "streaming" if body.get("stream") else "chat"
        if fault := _refuse_types(kind, body):
            return fault
        model = self._model(body)
        if model.thinks and "max_tokens" in body:
            return _bad("Unsupported parameter: 'max_tokens' is not supported with this model. "
                        "Use 'max_completion_tokens' instead.", "max_tokens")  # fmt: skip
        if model.thinks and body.get("temperature", 1) != 1:
            return _bad("Unsupported value: 'temperature' does not support this value.",
                        "temperature")  # fmt: skip
        encoding = get_encoding(encoding_for(body["model"]))
        for token, bias in body.get("logit_bias", {}).items():
            if not token.isdigit() or int(token) >= encoding.n_vocab or not -100 <= bias <= 100:
                return _bad(f"Invalid key or value in 'logit_bias': {token}", "logit_bias")
        if fault := _refuse_schema(body.get("response_format")):
            return fault
        needed = _prompt_tokens(body) + (_limit(body) or 1)
        if needed > model.window and not model.cuts_prompts:
            return _error(400, f"This model's maximum context length is {model.window} tokens. "
                          f"However, you requested {needed} tokens.", "context_length_exceeded",
                          "messages")  # fmt: skip
        return None


def _refuse_types(kind: str, body: dict[str, Any]) -> Fault | None:
    adapter, names = _request_types()[kind]
    for name in body:
        if name not in names:
            return _bad(f"Unrecognized request argument supplied: {name}", name)
    try:
        checked = adapter.validate_python(body)
        # What is declared as Iterable is checked as it is gone through.
        for value in checked.values():
            if isinstance(value, Iterator):
                list(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"][:2]))
        return _bad(f"Invalid value for '{place}': {first['msg']}", place)
    if kind != "embeddings" and not body["messages"]:
        return _bad("[] is too short - 'messages'", "messages")
    return None


@functools.cache
def _request_types() -> dict[str, tuple[TypeAdapter[Any], frozenset[str]]]:
    """Return what checks each kind of request, and the names of its parameters."""
    kinds = {
        "chat": CompletionCreateParamsNonStreaming,
        "streaming": CompletionCreateParamsStreaming,
        "embeddings": EmbeddingCreateParams,
    }
    lenient = with_config(ConfigDict(arbitrary_types_allowed=True))
    return {
        kind: (TypeAdapter(lenient(given)), frozenset(get_type_hints(given)))
        for kind, given in kinds.items()
    }


def _refuse_schema(given: Mapping[str, Any] | None) -> Fault | None:
    """Strict mode takes objects only that name all their properties and allow no others."""
    if not given or given.get("type") != "json_schema" or not given["json_schema"].get("strict"):
        return None
    waiting = [given["json_schema"].get("schema", {})]
    while waiting:
        schema = waiting.pop()
        if schema.get("type") == "object":
            properties = schema.get("properties", {})
            if schema.get("additionalProperties") is not False:
                return _bad("Invalid schema for response_format: 'additionalProperties' is "
                            "required to be false.", "response_format")  # fmt: skip
            if set(schema.get("required", [])) != set(properties):
                return _bad("Invalid schema for response_format: 'required' is required to include "
                            "every key in properties.", "response_format")  # fmt: skip
            waiting += properties.values()
        if isinstance(schema.get("items"), dict):
            waiting.append(schema["items"])
    return None


def _refuse_inputs(body: dict[str, Any]) -> Fault | None:
    if fault := _refuse_types("embeddings", body):
        return fault
    texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
    if not texts or len(texts) > _MOST_INPUTS or "" in texts:
        return _bad("'$.input' is invalid.", "input")
    lengths = count_tokens(texts, encoding_for(body["model"]))
    if max(lengths) > _MOST_TOKENS_OF_INPUT or sum(lengths) > _MOST_TOKENS_OF_REQUEST:
        return _error(400, f"This model's maximum context length is {_MOST_TOKENS_OF_INPUT} tokens",
                      None, "input")  # fmt: skip
    return None


def _prompt_tokens(body: Mapping[str, Any]) -> int:
    texts = [str(message.get("content") or "") for message in body["messages"]]
    return sum(count_tokens(texts, encoding_for(body["model"]))) + _MESSAGE_TOKENS * len(texts)


def _limit(body: Mapping[str, Any]) -> int | None:
    return body.get("max_completion_tokens") or body.get("max_tokens")


def _bad(message: str, parameter: str) -> Fault:
    return _error(400, message, None, parameter)


def _error(status: int, message: str, code: str | None, parameter: str | None) -> Fault:
    kind = "invalid_request_error"
    error = {"message": message, "type": kind, "param": parameter, "code": code}
    return Fault(status=status, error=error)
