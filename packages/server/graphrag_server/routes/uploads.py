"""`POST /v1/documents`, `/v1/uploads` and `/v1/batches`: documents brought in, and their way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from graphrag_server.callers import caller_of, needs
from graphrag_server.collections import VisibleCollection
from graphrag_server.inquiry import record_writing
from graphrag_server.limits import GONE
from graphrag_server.problems import HttpProblem
from graphrag_server.routes.reading import CollectionName
from graphrag_server.state import holder_of, json_response, server_of
from graphrag_server.uploads import (
    recent_batches,
    take,
    too_large,
    upload_folder,
    uploads,
)

router = APIRouter(prefix="/v1", tags=["documents"])
WATCH = "/v1/uploads"


@router.post(
    "/documents",
    status_code=202,
    responses={415: {}, 507: {}},
    dependencies=[needs("write")],
    openapi_extra={
        "requestBody": {
            "content": {"*/*": {"schema": {"type": "string", "format": "binary", "minLength": 1}}},
            "required": True,
        }
    },
)
async def upload(
    request: Request,
    name: Annotated[
        str, Query(min_length=1, max_length=500, description="What the file is called.")
    ],
    collection: CollectionName = None,
) -> Response:
    """Take a document: its bytes are the body. The next run indexes it; ``watch`` follows it."""
    holder = holder_of(request, collection)
    folder = _folder_of(holder)
    limits = holder.settings.server
    if int(request.headers.get("content-length", "0")) > limits.upload_mb * 1e6:
        raise too_large(limits.upload_mb)
    with server_of(request).limits.place(caller_of(request).key_id):
        try:
            taken = await take(
                request.stream(),
                name,
                folder,
                most_mb=limits.upload_mb,
                most_files=limits.uploads_most,
            )
        except ClientDisconnect:
            raise HttpProblem(503, GONE) from None
    record_writing(request, holder.name, {"name": taken.path.name, "sha256": taken.sha256})
    body = {
        "name": taken.path.name,
        "sha256": taken.sha256,
        "n_bytes": taken.n_bytes,
        "is_new": taken.is_new,
        "watch": WATCH,
    }
    response = json_response(body)
    response.status_code = 202
    return response


@router.get("/uploads", dependencies=[needs("write")])
async def listed(request: Request, collection: CollectionName = None) -> Response:
    """List the newest uploads: waiting, indexing, published or quarantined, and by which stage."""
    holder = await _whole(request, collection)
    folder = _folder_of(holder)
    with server_of(request).limits.place(caller_of(request).key_id):
        return json_response({"uploads": await asyncio.to_thread(uploads, holder, folder)})


@router.get("/batches", dependencies=[needs("read")])
async def batches(request: Request, collection: CollectionName = None) -> Response:
    """List the newest batches of documents, what each brings, and which stages have done it."""
    holder = await _whole(request, collection)
    with server_of(request).limits.place(caller_of(request).key_id):
        return json_response({"batches": await asyncio.to_thread(recent_batches, holder)})


async def _whole(request: Request, collection: str | None) -> VisibleCollection:
    """Return a collection for a caller who may see all of it: names of files know no labels."""
    holder = holder_of(request, collection)
    if await asyncio.to_thread(holder.is_limited):
        raise HttpProblem(403, "what was brought in is shown to keys with all labels alone")
    return holder


def _folder_of(holder: VisibleCollection) -> Path:
    folder = upload_folder(holder.settings)
    if folder is None:
        raise HttpProblem(
            403, "nothing can be uploaded here: whoever runs the server sets uploads in [server]"
        )
    return folder
