"""`/v1/models`, `/v1/chat/completions`, `/v1/completions`: what clients of OpenAI's API can ask.

A model is a collection and a method, as in ``handbook/local``.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from pydantic import JsonValue
from starlette.responses import Response

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.llm.configured import calls_place, counted_client, model_options
from graphrag_pipeline.llm.errors import ModelError
from graphrag_pipeline.query.ask import default_method
from graphrag_pipeline.query.engine import QueryEngine
from graphrag_pipeline.query.follow_ups import follow_ups_by_rule
from graphrag_pipeline.query.json_answers import checked_format
from graphrag_pipeline.query.methods import METHODS, MODEL_METHODS, method_named, read_method
from graphrag_pipeline.query.results import Answer
from graphrag_server.addresses import base_of, citation_address
from graphrag_server.callers import caller_of, needs
from graphrag_server.chores import Chore, chore_of
from graphrag_server.citing import Cited, cited
from graphrag_server.collections import UnknownCollectionError
from graphrag_server.limits import QUESTION_CHARACTERS
from graphrag_server.openai_answers import END, PING, Form, event, usage, usage_of
from graphrag_server.problems import HttpProblem
from graphrag_server.routes.asked import Place, ToAnswer
from graphrag_server.routes.chat_requests import (
    IGNORED,
    Chat,
    ToComplete,
    checked_question,
)
from graphrag_server.routes.questions import answered, begun
from graphrag_server.routes.stream import (
    MEDIA_TYPE,
    EventStream,
    Streamed,
    pieces_of,
    stream_of,
)
from graphrag_server.state import holder_of, json_response, server_of

if TYPE_CHECKING:
    from graphrag_pipeline.query.open_engine import Holder

router = APIRouter(prefix="/v1", tags=["openai"], dependencies=[needs("query")])

_ANSWERS: dict[int | str, dict[str, Any]] = {200: {"content": stream_of("data")}, 502: {}}
_OWNER = "graphrag-pipeline"
_STARTED = int(time.time())
_CHORES = "query"
"""The stage under which the calls for chores of chat programs are counted: that of questions."""


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


@router.post("/chat/completions", response_model=None, responses=_ANSWERS)
async def completions(request: Request, chat: Chat) -> Response:
    """Answer the last message, as OpenAI's API does; the places it rests on are footnotes.

    They are in ``annotations`` of the message, as addresses of the page, and in ``citations``, too.
    ``usage`` is what was paid for or, where no model writes, the tokens of question, context and
    answer. What is ignored of a request is named in the header ``X-Ignored-Fields``. Titles, tags
    and follow-ups that chat programs want for themselves are given without a look at documents.
    """
    form = Form(chat.model, "chat", with_usage=chat.with_usage)
    chore = chore_of([{"role": each.role, "content": each.text} for each in chat.messages])
    if chore is not None:
        response = await _chore_done(request, chat, form, chore)
    else:
        response = await _answered(request, chat, form)
    return _with_ignored(response, chat)


@router.post("/completions", response_model=None, responses=_ANSWERS)
async def complete(request: Request, asked: ToComplete) -> Response:
    """Answer a prompt, as the older form of OpenAI's API does; see ``/v1/chat/completions``."""
    form = Form(asked.model, "text", with_usage=asked.with_usage)
    return _with_ignored(await _answered(request, asked, form), asked)


@dataclass(frozen=True)
class _Citing:
    """Citations of an answer, by addresses of the page that the caller can open."""

    base: str
    collection: str
    noted: bool

    def of(self, answer: Answer, text: str) -> Cited:
        address = functools.partial(citation_address, self.base, self.collection, answer.release)
        return cited(answer, text, address, noted=self.noted)


async def _answered(request: Request, sent: Chat | ToComplete, form: Form) -> Response:
    asked = _to_ask(request, sent)
    citing = _Citing(base_of(request), asked.collection or "", asked.response_format is None)
    if sent.stream:
        streamed = await begun(request, asked)
        return EventStream(streamed, _pieces(streamed, form, citing))

    async def answer(engine: QueryEngine) -> Answer:
        result = await engine.aanswer(asked.ask(engine))
        used.update(usage_of(result, engine))
        return result

    used: dict[str, Any] = {}
    result = await answered(request, asked, answer)
    text = result.text.rstrip("\n")
    cites = citing.of(result, text)
    return json_response(form.whole(text + cites.notes, used, cites.annotations, **_ours(result)))


def _ours(answer: Answer) -> dict[str, Any]:
    """Return what OpenAI's API has no fields for."""
    return {
        "citations": answer.citations,
        "names_no_source": answer.names_no_source,
        "doubts": answer.doubts,
        "release": answer.release,
    }


async def _pieces(streamed: Streamed, form: Form, citing: _Citing) -> AsyncIterator[bytes]:
    """Yield the pieces of an answer as OpenAI's API sends them."""
    yield form.first()
    async with aclosing(pieces_of(streamed)) as pieces:
        async for piece in pieces:
            match piece:
                case None:
                    yield PING
                case "text", {"text": text}:
                    yield form.piece(text)
                case "error", problem:
                    yield event(problem.to_openai())
                    return
                case "done", answer:
                    cites = citing.of(answer, answer.text)
                    if cites.notes:
                        yield form.piece(cites.notes)
                    used = usage_of(answer, streamed.engine)
                    yield form.last(used, cites.annotations, **_ours(answer))
                    return
    yield END


def _to_ask(request: Request, sent: Chat | ToComplete) -> ToAnswer:
    """Return what is asked: the last message, after those before it.

    Raises a 404 Problem for a model that is not there or not the caller's, and a 400 Problem
    where the last message is no question.
    """
    collection, method = _place_of(sent.model, request)
    return ToAnswer.model_validate(
        {
            "question": checked_question(sent.question),
            "collection": collection,
            "release": sent.release,
            "method": method,
            "parameters": sent.parameters,
            "where": sent.where,
            "history": sent.history,
            "response_format": sent.response_format if isinstance(sent, Chat) else None,
        }
    )


async def _chore_done(request: Request, chat: Chat, form: Form, chore: Chore) -> Response:
    collection, _ = _place_of(chat.model, request)
    prompt = chore.prompt[:QUESTION_CHARACTERS]
    place = Place.model_validate({"question": prompt, "collection": collection})
    work = functools.partial(_do_chore, chore=chore, response_format=chat.response_format)
    text, used = await answered(request, place, work, "chore")
    if not chat.stream:
        return json_response(form.whole(text, used, []))
    return Response(form.first() + form.piece(text) + form.last(used, []), media_type=MEDIA_TYPE)


async def _do_chore(
    engine: QueryEngine, *, chore: Chore, response_format: Mapping[str, JsonValue] | None
) -> tuple[str, dict[str, Any]]:
    """Return a chore done by one call of the model, or by rule where there is none or it fails."""
    answer_format = checked_format(response_format)
    if engine.writes:
        try:
            return await _by_model(engine, chore, answer_format)
        except ModelError as error:
            if error.stops_everything:
                raise
    schema = (answer_format or {}).get("json_schema", {}).get("schema", {})
    follow_ups = functools.partial(follow_ups_by_rule, engine.index)
    keys = [*schema.get("properties", {})]
    return await asyncio.to_thread(chore.by_rule, follow_ups, keys), usage(0, 0, 0.0)


async def _by_model(
    engine: QueryEngine, chore: Chore, answer_format: Mapping[str, Any] | None
) -> tuple[str, dict[str, Any]]:
    index = engine.index
    place = calls_place(index.settings, index.home)
    async with counted_client(model_options(index.settings, "answers"), place) as client:
        completion = await client.complete(
            [{"role": "user", "content": chore.prompt}],
            stage=_CHORES,
            use_cache=index.settings.query.cache,
            check=chore.of_model,
            response_format=answer_format,
        )
    tokens = (completion.prompt_tokens, completion.completion_tokens)
    paid = (0, 0) if completion.cached else tokens
    return chore.of_model(completion.text), usage(*paid, completion.cost)


def _with_ignored(response: Response, sent: Chat | ToComplete) -> Response:
    if sent.ignored:
        response.headers[IGNORED] = sent.ignored
    return response


def _place_of(model: str, request: Request) -> tuple[str, str | None]:
    """Return the collection and the method that a model names; None: the collection's own."""
    collection, _, method = model.partition("/")
    try:
        holder = holder_of(request, collection)
        if method:
            method_named(read_method(method)[0])
    except (HttpProblem, UnknownCollectionError, InputError):
        raise HttpProblem(
            404,
            f"the model {model} does not exist, or is not yours: /v1/models lists yours",
            field="model",
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
    first = default_method(settings)
    yield first
    for method in (*METHODS.values(), *MODEL_METHODS.values()):
        if method.name != first and method.can_answer(settings, tables):
            yield method.name


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": _STARTED, "owned_by": _OWNER}
