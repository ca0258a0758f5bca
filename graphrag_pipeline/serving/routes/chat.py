"""`/v1/models` and `/v1/chat/completions`: what every client of OpenAI's API can ask.

A model is a collection and a method, as in ``handbook/local``.
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from starlette.responses import Response

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.rows import one_line
from graphrag_pipeline.query.engine import QueryEngine
from graphrag_pipeline.query.methods import METHODS, MODEL_METHODS, method_named, read_method
from graphrag_pipeline.query.results import Answer, Citation
from graphrag_pipeline.serving.callers import caller_of, needs
from graphrag_pipeline.serving.holding import UnknownCollectionError
from graphrag_pipeline.serving.limits import QUESTION_CHARACTERS
from graphrag_pipeline.serving.problems import Problem
from graphrag_pipeline.serving.routes.asked import ToAnswer, Turn
from graphrag_pipeline.serving.routes.questions import answered, begun
from graphrag_pipeline.serving.routes.stream import EventStream, Streamed, pieces_of
from graphrag_pipeline.serving.state import holder_of, json_bytes, json_response, server_of

if TYPE_CHECKING:
    from graphrag_pipeline.serving.holding import Holder

router = APIRouter(prefix="/v1", tags=["openai"], dependencies=[needs("query")])

_OWNER = "graphrag-pipeline"
_STARTED = int(time.time())
_PING = b": working\n\n"
_END = b"data: [DONE]\n\n"
_MOST_CITED = 20
_USUAL: dict[str, JsonValue] = {
    "audio": None,
    "functions": [],
    "logprobs": False,
    "modalities": ["text"],
    "n": 1,
    "response_format": {"type": "text"},
    "tools": [],
    "web_search_options": None,
}
_MARKUP = re.compile(r"([\\`\[\]<>])")


class Part(BaseModel):
    """A part of a message."""

    model_config = ConfigDict(extra="ignore")

    type: str
    text: str = ""


class Message(BaseModel):
    """A message of the conversation. Names and calls of tools are not used."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None

    @property
    def text(self) -> str:
        """Its text. Raises a 400 Problem where it is not text alone."""
        if isinstance(self.content, str) or self.content is None:
            return self.content or ""
        if any(part.type not in ("text", "refusal") for part in self.content):
            raise Problem(400, "messages may hold text alone: leave out images, sound and files")
        return "\n".join(part.text for part in self.content)


class StreamOptions(BaseModel):
    """What a stream has besides text."""

    model_config = ConfigDict(extra="ignore")

    include_usage: bool = False


class Chat(BaseModel):
    """What OpenAI's clients send. Settings of a model, such as temperature, change nothing here.

    Of our own are ``parameters`` (those of the method), ``where`` and ``release``, as in
    ``/v1/query``.
    """

    model_config = ConfigDict(extra="forbid")

    model: str = Field(min_length=1, max_length=200)
    messages: list[Message] = Field(min_length=1)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    where: dict[str, JsonValue] = Field(default_factory=dict)
    release: str | None = Field(None, max_length=128)

    # What would give another kind of answer is refused, unless it has its usual value.
    audio: JsonValue = None
    functions: JsonValue = None
    logprobs: JsonValue = None
    modalities: JsonValue = None
    n: JsonValue = None
    response_format: JsonValue = None
    tools: JsonValue = None
    web_search_options: JsonValue = None

    # What steers a model is that of the server's settings.
    frequency_penalty: JsonValue = None
    function_call: JsonValue = None
    logit_bias: JsonValue = None
    max_completion_tokens: JsonValue = None
    max_tokens: JsonValue = None
    metadata: JsonValue = None
    parallel_tool_calls: JsonValue = None
    prediction: JsonValue = None
    presence_penalty: JsonValue = None
    prompt_cache_key: JsonValue = None
    reasoning_effort: JsonValue = None
    safety_identifier: JsonValue = None
    seed: JsonValue = None
    service_tier: JsonValue = None
    stop: JsonValue = None
    store: JsonValue = None
    temperature: JsonValue = None
    tool_choice: JsonValue = None
    top_logprobs: JsonValue = None
    top_p: JsonValue = None
    user: JsonValue = None
    verbosity: JsonValue = None

    @field_validator(*_USUAL)
    @classmethod
    def _is_usual(cls, value: JsonValue, info: ValidationInfo) -> JsonValue:
        if value is not None and value != _USUAL[info.field_name or ""]:
            raise PydanticCustomError("unsupported", "this is not supported here: leave it out")
        return value

    def to_ask(self, request: Request) -> ToAnswer:
        """Return what is asked: the last message, after those before it.

        Raises a 404 Problem for a model that is not there or not the caller's, and a 400 Problem
        where the last message is no question.
        """
        collection, method = _place_of(self.model, request)
        *before, last = self.messages
        if last.role != "user" or not last.text.strip():
            raise Problem(400, "the last message must be of the role user, and hold the question")
        if len(last.text) > QUESTION_CHARACTERS:
            raise Problem(400, f"a question has at most {QUESTION_CHARACTERS:,} characters")
        return ToAnswer.model_validate(
            {
                "question": last.text,
                "collection": collection,
                "release": self.release,
                "method": method,
                "parameters": self.parameters,
                "where": self.where,
                "history": list(_turns(before)),
            }
        )


@router.get("/models")
async def models(request: Request) -> Response:
    """List the models: each collection with each method that can answer there."""
    listed = [_model(name) for name in await asyncio.to_thread(lambda: [*_names(request)])]
    return json_response({"object": "list", "data": listed})


@router.get("/models/{model:path}")
async def model(request: Request, model: str) -> Response:
    """Return a model by its name."""
    _place_of(model, request)
    return json_response(_model(model))


@router.post("/chat/completions", response_model=None)
async def completions(request: Request, chat: Chat) -> Response:
    """Answer the last message, as OpenAI's API does; the places it rests on are footnotes.

    They are in ``citations``, too. ``usage`` is what was paid for, embeddings included.
    """
    asked = chat.to_ask(request)
    if chat.stream:
        streamed = await begun(request, asked)
        with_usage = bool(chat.stream_options and chat.stream_options.include_usage)
        return EventStream(streamed, _chunks(streamed, chat.model, with_usage=with_usage))

    async def answer(engine: QueryEngine) -> Answer:
        return await engine.aanswer(asked.ask(engine))

    return json_response(_completion(await answered(request, asked, answer), chat.model))


async def _chunks(streamed: Streamed, model: str, *, with_usage: bool) -> AsyncIterator[bytes]:
    """Yield the chunks of an answer as OpenAI's API sends them."""
    usage: dict[str, Any] = {"usage": None} if with_usage else {}
    head = {**_head(model, "chat.completion.chunk"), **usage}

    def chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return _data({**head, "choices": [choice], **more})

    yield chunk({"role": "assistant", "content": ""})
    async with aclosing(pieces_of(streamed)) as pieces:
        async for piece in pieces:
            match piece:
                case None:
                    yield _PING
                case "text", {"text": text}:
                    yield chunk({"content": text})
                case "error", problem:
                    yield _data(problem.to_openai())
                    return
                case "done", answer:
                    if notes := _footnotes(answer.citations):
                        yield chunk({"content": notes})
                    yield chunk({}, "stop", citations=answer.citations, release=answer.release)
                    if with_usage:
                        yield _data({**head, "choices": [], "usage": _usage(answer)})
    yield _END


def _completion(answer: Answer, model: str) -> dict[str, Any]:
    message = {
        "role": "assistant",
        "content": answer.text.rstrip("\n") + _footnotes(answer.citations),
        "refusal": None,
    }
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {
        **_head(model, "chat.completion"),
        "choices": [choice],
        "usage": _usage(answer),
        "citations": answer.citations,
        "release": answer.release,
    }


def _head(model: str, kind: str) -> dict[str, Any]:
    identity = f"chatcmpl-{uuid.uuid4().hex}"
    return {"id": identity, "object": kind, "created": int(time.time()), "model": model}


def _usage(answer: Answer) -> dict[str, Any]:
    return {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
        "cost": answer.cost,
    }


def _data(value: dict[str, Any]) -> bytes:
    return b"data: " + json_bytes(value) + b"\n\n"


def _footnotes(citations: Sequence[Citation]) -> str:
    """Return the places that an answer cites, a line each, to stand below it."""
    if not citations:
        return ""
    lines = [f"- {_footnote(citation)}" for citation in citations[:_MOST_CITED]]
    if len(citations) > _MOST_CITED:
        lines.append(f"- and {len(citations) - _MOST_CITED:,} more")
    return "\n\n**Sources**\n\n" + "\n".join(lines) + "\n"


def _footnote(citation: Citation) -> str:
    title = _plain(citation.document_title)
    referring = f" ({', '.join(citation.references)})" if citation.references else ""
    if not citation.uri:
        return f"[{citation.number}] {title} community report {citation.report_id}{referring}"
    span = f"characters {citation.start_char}–{citation.end_char}"
    return f"[{citation.number}] {title}{referring}: {_plain(citation.uri)}, {span}"


def _plain(text: str) -> str:
    """Return a name that documents give so that no page takes it for a link or a picture."""
    return _MARKUP.sub(r"\\\1", one_line(text))


def _turns(messages: Sequence[Message]) -> Iterator[Turn]:
    """Yield what user and assistant have said; instructions are the server's own."""
    for message in messages:
        if message.role in ("user", "assistant") and message.text.strip():
            role: Literal["user", "assistant"] = "user" if message.role == "user" else "assistant"
            yield Turn(role=role, content=message.text)


def _place_of(model: str, request: Request) -> tuple[str, str | None]:
    """Return the collection and the method that a model names; None: the collection's own."""
    collection, _, method = model.partition("/")
    try:
        holder = holder_of(request, collection)
        if method:
            method_named(read_method(method)[0])
    except (Problem, UnknownCollectionError, InputError):
        raise Problem(
            404, f"the model {model} does not exist, or is not yours: /v1/models lists yours"
        ) from None
    return holder.name, method or None


def _names(request: Request) -> Iterator[str]:
    caller = caller_of(request)
    for name, holder in server_of(request).collections.holders.items():
        if caller.may_see(name):
            yield from (f"{name}/{method}" for method in _methods(holder))


def _methods(holder: Holder) -> Iterator[str]:
    """Yield the methods that can answer, that of a question without a method first."""
    settings, tables = holder.settings, holder.tables()
    first = "local" if settings.query.answers == "llm" else "auto"
    yield first
    for method in (*METHODS.values(), *MODEL_METHODS.values()):
        if method.name != first and method.can_answer(settings, tables):
            yield method.name


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": _STARTED, "owned_by": _OWNER}
