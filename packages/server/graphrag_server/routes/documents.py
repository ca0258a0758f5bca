"""`/v1/documents`: what was indexed, and its text."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from graphrag_server.callers import needs
from graphrag_server.limits import MOST_CHARACTERS, MOST_NUMBER, TEXT_CHARACTERS
from graphrag_server.routes.reading import (
    CollectionName,
    MostRows,
    ReleaseName,
    one,
    read,
)
from graphrag_server.state import json_response

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

router = APIRouter(prefix="/v1/documents", tags=["documents"], dependencies=[needs("read")])

_COLUMNS = "id, human_readable_id, title, uri, source, n_chars, metadata::VARCHAR AS metadata"
_PAGE = f"""
SELECT {_COLUMNS} FROM documents WHERE human_readable_id > $after
ORDER BY human_readable_id LIMIT $most
"""
_DOCUMENT = f"""
SELECT {_COLUMNS}, (SELECT count(*) FROM chunks c WHERE c.document_id = d.id) AS n_chunks
FROM documents d WHERE id = $id
"""
_TEXT = """
SELECT id, title, uri, n_chars, $start::BIGINT AS start_char,
       least(n_chars, $until) AS end_char, substr(text, $start + 1, $until - $start) AS text
FROM documents WHERE id = $id
"""


def page_of_documents(index: Release, *, after: int, most: int) -> dict[str, Any]:
    """Return documents that came after one of them; ``next`` is where to go on."""
    rows = [_plain(row) for row in index.rows(_PAGE, after=after, most=most)]
    following = rows[-1]["human_readable_id"] if len(rows) == most else None
    total = index.facts.counts["n_documents"]
    return {"documents": rows, "total": total, "next": following, "release": index.facts.id}


def text_of_document(index: Release, *, id: str, start: int, until: int) -> dict[str, Any]:
    """Return characters of a text. Raises a 404 Problem for an id that there is not."""
    row = one(index.rows(_TEXT, id=id, start=start, until=max(start, until)), "document")
    return {**row, "release": index.facts.id}


@router.get("")
async def documents(
    request: Request,
    after: Annotated[
        int, Query(ge=-1, le=MOST_NUMBER, description="The human_readable_id to begin after.")
    ] = -1,
    most: MostRows = 50,
    collection: CollectionName = None,
    release: ReleaseName = None,
) -> Response:
    """List documents, in the order in which they first came; ``next`` is where to go on."""
    work = partial(page_of_documents, after=after, most=most)
    return json_response(await read(request, collection, work, release))


@router.get("/{id}")
async def document(
    request: Request, id: str, collection: CollectionName = None, release: ReleaseName = None
) -> Response:
    """Return what is known of a document, without its text."""

    def facts(index: Release) -> dict[str, Any]:
        row = one(index.rows(_DOCUMENT, id=id), "document")
        return {**_plain(row), "release": index.facts.id}

    return json_response(await read(request, collection, facts, release))


@router.get("/{id}/text")
async def text(
    request: Request,
    id: str,
    start: Annotated[
        int, Query(ge=0, le=MOST_CHARACTERS, description="The first character, from 0.")
    ] = 0,
    end: Annotated[
        int | None, Query(ge=0, le=MOST_CHARACTERS, description="After the last character.")
    ] = None,
    collection: CollectionName = None,
    release: ReleaseName = None,
) -> Response:
    """Return characters of a document's text, as citations count them; at most 100,000 at once.

    Characters are counted in the text of one release: name that of the answer. Where it is no
    longer kept the answer is 404.
    """
    until = start + TEXT_CHARACTERS if end is None else min(end, start + TEXT_CHARACTERS)
    work = partial(text_of_document, id=id, start=start, until=until)
    return json_response(await read(request, collection, work, release))


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "metadata": json.loads(row["metadata"])}
