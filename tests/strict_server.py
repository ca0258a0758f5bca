"""A stand-in that keeps to what OpenAI-compatible servers document, its unpleasant parts included.

What it keeps: a request is checked against the request types of the ``openai`` package and refused
as the API refuses it (unknown parameters, wrong values, empty texts, too many or too long inputs,
a schema that strict mode does not take); prompts and answers are counted in the model's own
encoding; an answer ends at ``max_tokens`` with ``finish_reason`` "length", in the middle of a word
if need be; a prompt that does not fit the window is an error, or is cut in silence as Ollama does;
a bias of +100 means that nothing else can be said, the end of the answer included; embeddings come
as base64 or numbers, in the dimensions asked for; requests and tokens are counted by the minute
(``Rates``) and told in headers. Misbehaviour has names: see ``troubles``.

Where it does not: no ``n`` above 1, no tools, no log probabilities, no audio; what the model says
is the responder's.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping
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
    """A model as it is served. ``cuts_prompts`` is Ollama's way: of a prompt beyond the
    window the middle is left out, and so is what came first once an answer reaches its end.
    ``takes_lengths`` is the way of servers with grammars; OpenAI's strict mode knows ``maxItems``
    of lists, and of texts ``pattern`` and ``format`` alone."""

    window: int = 128_000
    most_answer: int = 16_384
    thinks: bool = False
    cuts_prompts: bool = False
    takes_lengths: bool = True


SERVED: Mapping[str, Served] = {
    "gpt-3.5-turbo": Served(16_385, 4_096),
    "gpt-4": Served(8_192, 8_192),
    "gpt-4-turbo": Served(128_000, 4_096),
    "gpt-4o": Served(128_000, 16_384),
    "gpt-4.1": Served(1_047_576, 32_768),
    "gpt-5": Served(400_000, 128_000, thinks=True),
    "o1": Served(200_000, 100_000, thinks=True),
    "o3": Served(200_000, 100_000, thinks=True),
    "o4": Served(200_000, 100_000, thinks=True),
    "llama3": Served(4_096, 4_096, cuts_prompts=True),
    "qwen2.5": Served(4_096, 4_096, cuts_prompts=True),
}
"""Windows as documented, by the beginning of a model's name; Ollama's are its own default."""


@dataclass(frozen=True)
class Rates:
    """The most requests and tokens a minute, for each model by itself; None: any number."""

    requests: int | None = None
    tokens: int | None = None


class StrictServer(ModelServer):
    """The server; ``models`` says how each is served, others are served as in ``SERVED``.

    ``rates`` are counted by ``clock``, in seconds; of those ``pace`` pass in a real one, so a
    client that is told to wait waits the less.
    """

    def __init__(
        self,
        *given: Any,
        models: Mapping[str, Served] | None = None,
        rates: Rates | None = None,
        clock: Callable[[], float] | None = None,
        pace: float = 1.0,
        **named: Any,
    ) -> None:
        super().__init__(*given, **named)
        self.models = dict(models or {})
        self.rates = rates or Rates()
        self.pace = pace
        self.clock = clock or (lambda: time.monotonic() * pace)
        self._buckets: dict[tuple[str, str], _Bucket] = {}

    def refuse(self, request: Request) -> Fault | None:
        """Return the error that the API answers a wrong request, or one too many, with."""
        if fault := self._too_many(request.body):
            return fault
        if request.endpoint == "embeddings":
            return _refuse_inputs(request.body)
        return self._refuse_chat(request.body)

    def tokens_of(self, texts: list[str], model: str) -> int:
        """Return the tokens that texts to be embedded have in the model's encoding."""
        return sum(count_tokens(texts, encoding_for(model)))

    def headers(self, request: Request) -> Mapping[str, str]:
        """Return what is left of each rate, as OpenAI's headers say it."""
        model = str(request.body.get("model"))
        fields: dict[str, str] = {}
        for kind, bucket in self._buckets_of(model).items():
            fields[f"x-ratelimit-limit-{kind}"] = str(bucket.most)
            fields[f"x-ratelimit-remaining-{kind}"] = str(int(bucket.left(self.clock())))
            fields[f"x-ratelimit-reset-{kind}"] = _duration(bucket.full_in(self.clock()))
        return fields

    def _too_many(self, body: dict[str, Any]) -> Fault | None:
        """Count a request and its tokens, and refuse it where the minute has no room for them.

        Tokens count as OpenAI documents: the most that may be answered, or those that are sent,
        whichever are more. A request that is refused uses up what is left, so that hammering does
        not help.
        """
        model, now = str(body.get("model")), self.clock()
        wanted = {"requests": 1, "tokens": _tokens_counted(body)}
        buckets = self._buckets_of(model)
        for kind, bucket in buckets.items():
            if wanted[kind] > bucket.left(now):
                wait = bucket.wait(wanted[kind], now)
                if "requests" in buckets:
                    buckets["requests"].take(1, now)
                wait = None if wait is None else wait / self.pace
                return _rate_limited(model, kind, bucket, wanted[kind], wait)
        for kind, bucket in buckets.items():
            bucket.take(wanted[kind], now)
        return None

    def _buckets_of(self, model: str) -> dict[str, _Bucket]:
        kinds = {"requests": self.rates.requests, "tokens": self.rates.tokens}
        return {
            kind: self._buckets.setdefault((model, kind), _Bucket(most, self.clock()))
            for kind, most in kinds.items()
            if most
        }

    def say(self, request: Request, fault: Fault) -> tuple[str, str, dict[str, int]]:
        """Return the answer within its limit of tokens, and its tokens in the model's encoding."""
        body = request.body
        model, encoding = self._model(body), get_encoding(encoding_for(body["model"]))
        forced = [int(token) for token, bias in body.get("logit_bias", {}).items() if bias == 100]
        # Who can say one of two words alone can neither apologise nor run on.
        is_free = fault.text is not None and not forced
        said = str(fault.text) if is_free else self.responder(request.messages)
        read = min(_prompt_tokens(body), model.window)
        left = model.most_answer if model.cuts_prompts else model.window - read
        limit = min(_limit(body) or model.most_answer, left)
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
        name = body["model"]
        beginnings = sorted(filter(name.startswith, SERVED), key=len)
        served = SERVED[beginnings[-1]] if beginnings else Served()
        return self.models.get(name, served)

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
        if fault := _refuse_schema(body.get("response_format"), model):
            return fault
        if (_limit(body) or 0) > model.most_answer:
            return _bad(f"max_tokens is too large: {_limit(body)}. This model supports at most "
                        f"{model.most_answer} completion tokens.", "max_tokens")  # fmt: skip
        needed = _prompt_tokens(body) + (_limit(body) or 1)
        if needed > model.window and not model.cuts_prompts:
            return _error(400, f"This model's maximum context length is {model.window} tokens. "
                          f"However, you requested {needed} tokens.", "context_length_exceeded",
                          "messages")  # fmt: skip
        return None


class _Bucket:
    """What may be asked for in a minute; what was used comes back evenly."""

    def __init__(self, most: int, now: float) -> None:
        self.most = most
        self._left = float(most)
        self._at = now

    def left(self, now: float) -> float:
        self._left = min(self.most, self._left + (now - self._at) * self.most / 60)
        self._at = now
        return self._left

    def take(self, number: float, now: float) -> None:
        self._left = max(0.0, self.left(now) - number)

    def wait(self, number: float, now: float) -> float | None:
        """Seconds until so many may be asked for; None if never."""
        return None if number > self.most else (number - self.left(now)) * 60 / self.most

    def full_in(self, now: float) -> float:
        return (self.most - self.left(now)) * 60 / self.most


def _rate_limited(model: str, kind: str, bucket: _Bucket, wanted: int, wait: float | None) -> Fault:
    unit = f"{kind} per min ({'RPM' if kind == 'requests' else 'TPM'})"
    head = f"{model} in organization org-loopback on {unit}: Limit {bucket.most}"
    if wait is None:
        message = f"Request too large for {head}, Requested {wanted}."
        return Fault(status=429, error=_limit_error(message, kind))
    message = (
        f"Rate limit reached for {head}, Requested {wanted}. Please try again in "
        f"{_duration(wait)}. You can increase your rate limit by adding a payment method to your "
        "account at https://platform.openai.com/account/billing."
    )
    asked = {"retry-after": str(math.ceil(wait)), "retry-after-ms": str(math.ceil(wait * 1000))}
    return Fault(status=429, error=_limit_error(message, kind), headers=asked)


def _limit_error(message: str, kind: str) -> dict[str, Any]:
    return {"message": message, "type": kind, "param": None, "code": "rate_limit_exceeded"}


def _duration(seconds: float) -> str:
    """As OpenAI writes it: 17ms, 1.5s, 6m0s."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}m{rest:.0f}s" if minutes else f"{rest:.3f}".rstrip("0").rstrip(".") + "s"


def _tokens_counted(body: Mapping[str, Any]) -> int:
    texts = [str(message.get("content") or "") for message in body.get("messages") or ()]
    given = body.get("input") or ()
    texts += [given] if isinstance(given, str) else map(str, given)
    return max(_limit(body) or 0, -(-sum(map(len, texts)) // 4))


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


def _refuse_schema(given: Mapping[str, Any] | None, model: Served) -> Fault | None:
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
        if "maxLength" in schema and not model.takes_lengths:
            return _bad("Invalid schema for response_format 'answer': In context=(), 'maxLength' "
                        "is not permitted.", "response_format")  # fmt: skip
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
