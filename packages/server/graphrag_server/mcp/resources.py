"""Resources that an assistant may read: documents, and the releases that are kept."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from graphrag_pipeline.core.rows import one_line, to_json_line
from graphrag_server.callers import caller_of
from graphrag_server.inquiry import record_reading
from graphrag_server.limits import TEXT_CHARACTERS
from graphrag_server.mcp.tools import document_text
from graphrag_server.problems import HttpProblem
from graphrag_server.routes.documents import page_of_documents, text_of_document
from graphrag_server.routes.reading import read
from graphrag_server.state import holder_of, server_of

if TYPE_CHECKING:
    from fastapi import Request

MEDIA_TYPE = "text/plain"
TEMPLATES = {
    "document": (
        "graphrag://{collection}/documents/{id}",
        "The text of a document, by the id that citations and lists have.",
    ),
    "releases": (
        "graphrag://{collection}/releases",
        "The releases of a collection that are kept, the newest first.",
    ),
}
"""What there is to read: a name, its address, and what it holds."""
_SCOPE = "read"
_PAGE = 100
_MOST_OF_A_NAME = 200
_RESOURCE = re.compile(r"graphrag://([^/]+)/(?:(releases)|documents/([^/]+))")
_CURSOR = re.compile(r"([^/]+)/(-?\d{1,18})")


async def list_resources(
    request: Request, cursor: str | None
) -> tuple[list[tuple[str, str]], str | None]:
    """Return addresses and names of what a caller can read, a page of them, and where to go on."""
    caller = caller_of(request)
    caller.check_scope(_SCOPE)
    names = [name for name in server_of(request).collections.holders if caller.may_see(name)]
    if not names:
        return [], None
    name, after = _place(cursor) if cursor is not None else (names[0], -1)
    page = await read(request, name, partial(page_of_documents, after=after, most=_PAGE))
    rows = [_document(name, row) for row in page["documents"]]
    if after < 0:
        rows.insert(0, (f"{_root(name)}/releases", f"releases of {name}"))
    if page["next"] is not None:
        return rows, f"{quote(name, safe='')}/{page['next']}"
    later = names[names.index(name) + 1 :] if name in names else []
    return rows, f"{quote(later[0], safe='')}/-1" if later else None


async def read_resource(request: Request, uri: str) -> str:
    """Return the text of a resource. Raises a 404 Problem for what is none."""
    caller_of(request).check_scope(_SCOPE)
    parts = _RESOURCE.fullmatch(uri)
    if parts is None:
        raise HttpProblem(404, "there is no such resource: resources/list names them")
    name, document = unquote(parts[1]), parts[3]
    if document is None:
        holder = holder_of(request, name)
        kept = await asyncio.to_thread(holder.releases)
        record_reading(request, holder.name)
        return "\n".join(map(to_json_line, kept))
    work = partial(text_of_document, id=unquote(document), start=0, until=TEXT_CHARACTERS)
    return document_text(await read(request, name, work))


def _document(collection: str, row: dict[str, Any]) -> tuple[str, str]:
    name = one_line(row["title"] or row["uri"] or row["id"])[:_MOST_OF_A_NAME]
    return f"{_root(collection)}/documents/{quote(row['id'], safe='')}", name


def _root(collection: str) -> str:
    return f"graphrag://{quote(collection, safe='')}"


def _place(cursor: str) -> tuple[str, int]:
    parts = _CURSOR.fullmatch(cursor)
    if parts is None:
        raise HttpProblem(422, "there is no such page: begin the list anew")
    return unquote(parts[1]), int(parts[2])
