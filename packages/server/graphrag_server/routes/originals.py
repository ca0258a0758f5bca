"""`/v1/documents/{id}/original`, `/file` and `/rows`: what a document was read from."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from graphrag_server.callers import needs
from graphrag_server.limits import MOST_CHARACTERS
from graphrag_server.originals import PDF, facts_of, original_of
from graphrag_server.routes.reading import CollectionName, ReleaseName, read
from graphrag_server.state import json_response
from graphrag_server.table_rows import rows_around

if TYPE_CHECKING:
    from graphrag_server.originals import Original

router = APIRouter(prefix="/v1/documents", tags=["documents"], dependencies=[needs("read")])

_Character = Annotated[int | None, Query(ge=0, le=MOST_CHARACTERS)]
# A PDF is shown by the browser's own viewer, which has styles of its own. Nothing else is shown.
_VIEWER = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'"
_SANDBOX = "sandbox; default-src 'none'; frame-ancestors 'none'"


@router.get("/{id}/original")
async def original(
    request: Request,
    id: str,
    start: _Character = None,
    collection: CollectionName = None,
    release: ReleaseName = None,
) -> Response:
    """Return name, type and size of the file of a document, and the page that a character is on.

    ``problem`` says why there is none: it is gone, or has changed since it was indexed.
    """
    work = partial(facts_of, id=id, start=start)
    return json_response(await read(request, collection, work, release))


@router.get("/{id}/file", responses={200: {"content": {"application/octet-stream": {}}}})
async def file(
    request: Request, id: str, collection: CollectionName = None, release: ReleaseName = None
) -> Response:
    """Return the file that a document was read from, byte by byte as it was indexed."""
    found = await read(request, collection, partial(original_of, id=id), release)
    return StreamingResponse(found.pieces(), headers=_headers(found), media_type=found.media_type)


@router.get("/{id}/rows")
async def rows(
    request: Request, id: str, collection: CollectionName = None, release: ReleaseName = None
) -> Response:
    """Return the row of a table that a document is, among its neighbours; none: it is no row."""
    return json_response(await read(request, collection, partial(rows_around, id=id), release))


def _headers(found: Original) -> dict[str, str]:
    shown = "inline" if found.media_type == PDF else "attachment"
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in found.name)
    named = f"{shown}; filename=\"{plain}\"; filename*=UTF-8''{quote(found.name, safe='')}"
    policy = _VIEWER if found.media_type == PDF else _SANDBOX
    return {
        "Content-Disposition": named,
        "Content-Length": str(found.n_bytes),
        "Content-Security-Policy": policy,
        "Cross-Origin-Resource-Policy": "same-origin",
    }
