"""`POST /v1/entities/{id}/corrections`: what somebody knows better than the documents' rules."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.responses import Response

from graphrag_pipeline.core.text import normalize_title
from graphrag_server.callers import caller_of, needs
from graphrag_server.corrections import add_correction
from graphrag_server.inquiry import record_writing
from graphrag_server.problems import HttpProblem, one
from graphrag_server.routes.reading import CollectionName, read
from graphrag_server.state import holder_of, json_response

router = APIRouter(prefix="/v1/entities", tags=["graph"], dependencies=[needs("write")])

_TITLE = "SELECT title FROM entities WHERE id = $id"
# By what names the documents mention it: each is told apart there.
_NAMED_IN = """
SELECT d.uri AS documents, coalesce(m.title, e.title) AS a
FROM entity_chunks l JOIN entities e ON e.id = l.entity_id
JOIN chunks c ON c.id = l.chunk_id JOIN documents d ON d.id = c.document_id
LEFT JOIN resolved_entity_mentions m ON m.entity_id = l.entity_id AND m.chunk_id = l.chunk_id
WHERE l.entity_id = $id AND d.id IN (SELECT unnest($ids::JSON::VARCHAR[]))
GROUP BY ALL ORDER BY ALL
"""
# No control characters, nor such as turn the direction of what follows.
_PLAIN = r"^[^\x00-\x1f\x7f\u202a-\u202e\u2066-\u2069]+$"


class Correction(BaseModel):
    """A correction of an entity."""

    model_config = ConfigDict(extra="forbid")

    action: Literal["merge", "never", "rename", "type", "split"] = Field(
        description="It is the same as another, never the same, called otherwise, of another type; "
        "or in some documents another."
    )
    value: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=200, pattern=_PLAIN),
        Field(description="The title of the other, the new title, or the type."),
    ]
    documents: list[Annotated[str, StringConstraints(max_length=64)]] = Field(
        default=[], max_length=50, description="With split: the ids of the documents of the other."
    )


def _distinct(rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return one row for each document and name, which is spelled in more than one way."""
    return [*{(row["documents"], normalize_title(row["a"])): row for row in rows}.values()]


@router.post("/{id}/corrections", status_code=202, responses={409: {}, 507: {}})
async def correct(
    request: Request, id: str, correction: Correction, collection: CollectionName = None
) -> Response:
    """Say that an entity is another, is named or typed wrongly. The next run goes by it.

    It becomes a line of ``aliases.csv``, which is taken back by taking the line out.
    """
    holder, caller = holder_of(request, collection), caller_of(request)
    if await asyncio.to_thread(holder.is_limited):
        raise HttpProblem(
            403, "what is said of an entity is seen by all: it takes a key with all labels"
        )
    row = await read(request, collection, lambda index: one(index.rows(_TITLE, id=id), "entity"))
    value = correction.value
    if correction.action == "type":
        value = value.upper()
    elif value == row["title"]:
        raise HttpProblem(409, f"it is {value} already: name another")
    note = f"{caller.name}, {datetime.now(UTC):%Y-%m-%d}"
    line = {"action": correction.action, "a": row["title"], "b": value, "note": note}
    lines = [line]
    if correction.action == "split":
        ids = correction.documents
        named = await read(request, collection, lambda index: index.rows(_NAMED_IN, id=id, ids=ids))
        lines = [{**line, **row} for row in _distinct(named)]
        if not lines:
            raise HttpProblem(422, "documents: give the ids of documents that mention it")
    written = "\n".join(
        [await asyncio.to_thread(add_correction, holder.settings, line) for line in lines]
    )
    record_writing(request, holder.name, {"id": id, "line": written})
    response = json_response({"line": written})
    response.status_code = 202
    return response
