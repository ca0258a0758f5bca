"""`/v1/documents` and `/v1/fields`: what was indexed, its text, and what it can be narrowed by."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import StringConstraints
from starlette.responses import Response

from graphrag_pipeline.query.limited_release import checked_where, where_of
from graphrag_server.callers import needs
from graphrag_server.limits import MOST_CHARACTERS, MOST_NUMBER, TEXT_CHARACTERS
from graphrag_server.narrowing import condition_of, fields_of, values_of
from graphrag_server.problems import one
from graphrag_server.routes.reading import (
    CollectionName,
    MostRows,
    ReleaseName,
    read,
)
from graphrag_server.state import json_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphrag_pipeline.query.limited_release import Where
    from graphrag_pipeline.query.release import Release

router = APIRouter(prefix="/v1/documents", tags=["documents"], dependencies=[needs("read")])
fields_router = APIRouter(prefix="/v1/fields", tags=["documents"], dependencies=[needs("query")])

_MOST_WORDS = 8
_AROUND = 80
_MOST_CONDITIONS = 40
_Condition = Annotated[str, StringConstraints(max_length=1000)]
Conditions = Annotated[
    list[_Condition],
    Query(
        max_length=_MOST_CONDITIONS,
        description="Conditions KEY=VALUE, as in where=uri=reports/*.pdf and where=year>=2020: "
        "any of several values of one key is enough, and different keys must all be met.",
    ),
]
_COLUMNS = "id, human_readable_id, title, uri, source, n_chars, metadata::VARCHAR AS metadata"
_PAGE = f"""
SELECT {_COLUMNS} FROM documents WHERE human_readable_id > $after
ORDER BY human_readable_id LIMIT $most
"""
# Those with all words in title or path come first, then those that have them in the text, too. The
# place of a word is told where lower case has as many characters as the text.
_FOUND = """
WITH found AS MATERIALIZED (
    SELECT id, human_readable_id, {named} AS is_named FROM documents
    WHERE {where} AND ({named} OR {told})
), page AS (
    SELECT id, is_named FROM found
    WHERE (NOT is_named, human_readable_id) > (coalesce((
        SELECT NOT is_named FROM found WHERE human_readable_id = $after), false), $after::BIGINT)
    ORDER BY NOT is_named, human_readable_id LIMIT $most
)
SELECT {columns}, (SELECT count(*) FROM found) AS total,
       CASE WHEN is_named OR length(lower(text)) <> length(text) THEN 0
       ELSE instr(lower(text), $word0) END AS place,
       CASE WHEN place > 0 THEN substr(text, greatest(place - $around, 1),
                                       length($word0) + 2 * $around) END AS excerpt
FROM documents JOIN page USING (id) ORDER BY NOT is_named, human_readable_id
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


def found_documents(
    index: Release, *, q: str, where: Where, after: int, most: int
) -> dict[str, Any]:
    """Return documents that a filter matches, and that have all words of ``q``.

    Those with the words in title or path come first; of another, ``start_char`` and ``end_char``
    are where the first word stands in its text, and ``excerpt`` is the text around it.
    """
    words = q.lower().split()[:_MOST_WORDS] or [""]
    condition, given = condition_of(index, where)
    named = _all_in("lower(title || ' ' || uri)", words)
    told = _all_in("lower(title || ' ' || uri || ' ' || text)", words)
    sql = _FOUND.format(columns=_COLUMNS, where=condition, named=named, told=told)
    texts = {f"word{n}": word for n, word in enumerate(words)}
    rows = index.rows(sql, after=after, most=most, around=_AROUND, **texts, **given)
    following = rows[-1]["human_readable_id"] if len(rows) == most else None
    total = rows[0]["total"] if rows else 0
    documents = [_found(row, len(words[0])) for row in rows]
    return {"documents": documents, "total": total, "next": following, "release": index.facts.id}


def _all_in(text: str, words: Sequence[str]) -> str:
    return "(" + " AND ".join(f"contains({text}, $word{n})" for n in range(len(words))) + ")"


def _found(row: dict[str, Any], length: int) -> dict[str, Any]:
    excerpt, place, _ = row.pop("excerpt"), row.pop("place"), row.pop("total")
    if not excerpt:
        return _plain(row)
    start = place - 1
    return {**_plain(row), "start_char": start, "end_char": start + length, "excerpt": excerpt}


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
    q: Annotated[
        str, Query(max_length=200, description="Words of its title, path or text, in any case.")
    ] = "",
    where: Conditions = [],  # noqa: B006
    collection: CollectionName = None,
    release: ReleaseName = None,
) -> Response:
    """List documents, in the order in which they first came; ``next`` is where to go on.

    With ``q``, those that have all of its words: first those that have them in title or path.
    """
    if q.strip() or where:
        wanted = checked_where(where_of(where))
        work = partial(found_documents, q=q, where=wanted, after=after, most=most)
    else:
        work = partial(page_of_documents, after=after, most=most)
    return json_response(await read(request, collection, work, release))


@fields_router.get("")
async def fields(
    request: Request, collection: CollectionName = None, release: ReleaseName = None
) -> Response:
    """List what documents can be narrowed by: for each field its values, and how many have each.

    ``key`` is what ``where`` asks for it by; a field of days or numbers is asked for as a range.
    """
    return json_response(await read(request, collection, fields_of, release))


@fields_router.get("/values")
async def values(
    request: Request,
    key: Annotated[str, Query(min_length=1, max_length=200, description="A key of metadata.")],
    q: Annotated[str, Query(max_length=200, description="Part of a value.")] = "",
    collection: CollectionName = None,
    release: ReleaseName = None,
) -> Response:
    """List values of a key of metadata, those of most documents first; at most a hundred."""
    work = partial(values_of, key=key, q=q)
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
