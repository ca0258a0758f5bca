"""`/v1/history` and `/v1/answers`: what was asked before, and what people say of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.responses import Response

from graphrag_server.callers import caller_of, needs
from graphrag_server.inquiry import record_reading, record_writing
from graphrag_server.keeping import conversations_of, keeps
from graphrag_server.problems import HttpProblem
from graphrag_server.routes.reading import CollectionName, MostRows
from graphrag_server.state import holder_of, json_response

if TYPE_CHECKING:
    from graphrag_pipeline.query.engine import QueryEngine
    from graphrag_server.collections import VisibleCollection
    from graphrag_server.conversations import Conversations, KeptAnswer

router = APIRouter(prefix="/v1", tags=["conversations"], dependencies=[needs("query")])

_NO_CONVERSATION = "there is no such conversation of yours: it may have been deleted, or be too old"
_NO_ANSWER = "there is no such answer, or it is not open to you"
_DOCUMENTS = """
SELECT count(*) AS n FROM (SELECT unnest($ids::JSON::VARCHAR[]) AS id) cited
SEMI JOIN documents d ON d.id = cited.id
"""


class Title(BaseModel):
    """A title of a conversation."""

    model_config = ConfigDict(extra="forbid")

    title: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class Feedback(BaseModel):
    """A word on an answer: good or bad, and why."""

    model_config = ConfigDict(extra="forbid")

    verdict: Literal["good", "bad"] | None = Field(description="null takes it back.")
    words: Annotated[
        str, StringConstraints(strip_whitespace=True, max_length=2000), Field(description="Why.")
    ] = ""


@router.get("/history")
async def conversations(
    request: Request,
    q: Annotated[str, Query(max_length=200, description="Part of a title or question.")] = "",
    before: Annotated[
        float | None, Query(ge=0, description="The changed_at of the last that was listed.")
    ] = None,
    most: MostRows = 50,
    collection: CollectionName = None,
) -> Response:
    """List your conversations about a collection, the last used first."""
    holder, kept, key_id = _own(request, collection)
    rows = await asyncio.to_thread(kept.listed, key_id, q=q, before=before, most=most)
    record_reading(request, holder.name)
    following = rows[-1]["changed_at"] if len(rows) == most else None
    return json_response({"conversations": rows, "next": following})


@router.get("/history/{id}")
async def conversation(request: Request, id: str, collection: CollectionName = None) -> Response:
    """Return a conversation of yours: its questions and answers, the first first."""
    holder, kept, key_id = _own(request, collection)
    turns = await asyncio.to_thread(kept.turns, key_id, id)
    if not turns:
        raise HttpProblem(404, _NO_CONVERSATION)
    record_reading(request, holder.name)
    return json_response({"id": id, "answers": [turn.to_dict() for turn in turns]})


@router.post("/history/{id}")
async def rename(
    request: Request, id: str, title: Title, collection: CollectionName = None
) -> Response:
    """Give a conversation of yours another title."""
    holder, kept, key_id = _own(request, collection)
    if not await asyncio.to_thread(kept.rename, key_id, id, title.title):
        raise HttpProblem(404, _NO_CONVERSATION)
    record_writing(request, holder.name, {"conversation": id})
    return json_response({"id": id, "title": title.title})


@router.delete("/history/{id}")
async def delete(request: Request, id: str, collection: CollectionName = None) -> Response:
    """Delete a conversation of yours, with what was said of its answers, for good."""
    holder, kept, key_id = _own(request, collection)
    if not await asyncio.to_thread(kept.delete, key_id, id):
        raise HttpProblem(404, _NO_CONVERSATION)
    record_writing(request, holder.name, {"deleted": id})
    return json_response({"id": id})


@router.get("/answers/{id}")
async def answer(request: Request, id: str, collection: CollectionName = None) -> Response:
    """Return a kept answer: your own, or one that tells of nothing that is not open to you."""
    holder, _, found = await _seen(request, id, collection)
    record_reading(request, holder.name)
    return json_response(found.to_dict())


@router.post("/answers/{id}/feedback")
async def feedback(
    request: Request, id: str, said: Feedback, collection: CollectionName = None
) -> Response:
    """Say whether an answer is good, and why; ``graphrag-pipeline feedback`` lists what is said."""
    holder, kept, _ = await _seen(request, id, collection)
    key_id = caller_of(request).key_id
    await asyncio.to_thread(kept.judge, id, key_id, said.verdict, said.words)
    record_writing(request, holder.name, {"answer": id, "verdict": said.verdict})
    return json_response({"id": id, "verdict": said.verdict, "words": said.words})


def _own(request: Request, collection: str | None) -> tuple[VisibleCollection, Conversations, str]:
    """Return what is kept for a caller. Raises a 403 Problem where nothing ever is."""
    holder, caller = holder_of(request, collection), caller_of(request)
    if not keeps(caller, holder):
        raise HttpProblem(
            403,
            "conversations are kept for callers with a key and for this machine alone, and not "
            "where server.conversation_days = 0",
        )
    return holder, conversations_of(holder), caller.key_id


async def _seen(
    request: Request, id: str, collection: str | None
) -> tuple[VisibleCollection, Conversations, KeptAnswer]:
    """Return an answer that a caller may see. Raises the same Problem for any other."""
    holder, kept, key_id = _own(request, collection)
    found = await asyncio.to_thread(kept.answer, id, key_id)
    is_own = found is not None and found.key_id == key_id
    if found is None or not (is_own or await asyncio.to_thread(_is_open, holder, found)):
        raise HttpProblem(404, _NO_ANSWER)
    return holder, kept, found


def _is_open(holder: VisibleCollection, found: KeptAnswer) -> bool:
    """Whether somebody else's answer tells of nothing that is not open to a caller.

    He sees all documents, or all that its caller saw, and each that it cites is open to him now.
    """
    if not holder.is_limited():
        return True
    if found.labels is None or not found.labels <= (holder.labels or frozenset()):
        return False
    ids = _cited(found.answer or {})
    rows = holder.use(lambda engine: _visible(engine, ids))
    return rows == len(ids)


def _visible(engine: QueryEngine, ids: list[str]) -> int:
    return int(engine.index.rows(_DOCUMENTS, ids=ids)[0]["n"])


def _cited(answer: dict[str, Any]) -> list[str]:
    places = [*answer.get("citations", ()), *answer.get("retrieval", {}).get("citations", ())]
    return sorted({place["document_id"] for place in places if place["document_id"]})
