"""`/v1/entities`, `/v1/communities`, `/v1/reports`: the graph, and what was written of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from graphrag_server.callers import needs
from graphrag_server.limits import MOST_HOPS
from graphrag_server.problems import HttpProblem, one
from graphrag_server.routes.reading import (
    CollectionName,
    MostRows,
    ReleaseName,
    read,
)
from graphrag_server.state import json_response

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

router = APIRouter(prefix="/v1", tags=["graph"], dependencies=[needs("read")])

_MOST_PLACES = 50
_ENTITY = "e.id, e.human_readable_id, e.title, e.type, e.description, e.frequency, e.degree"
_NAMED = f"""
SELECT {_ENTITY} FROM entities e
SEMI JOIN (SELECT entity_id FROM entity_names WHERE contains(lower(known_as), lower($q))) n
    ON n.entity_id = e.id
ORDER BY lower(e.title) = lower($q) DESC, e.degree DESC, e.title LIMIT $most
"""
_BY_ID = f"SELECT {_ENTITY} FROM entities e WHERE e.id = $id"
_ALIASES = """
SELECT known_as FROM entity_names WHERE entity_id = $id AND is_alias ORDER BY known_as
"""
_PLACES = """
SELECT d.id AS document_id, d.title AS document_title, d.uri, c.id AS chunk_id,
       coalesce(l.start_char, c.start_char) AS start_char,
       coalesce(l.end_char, c.end_char) AS end_char
FROM entity_chunks l JOIN chunks c ON c.id = l.chunk_id JOIN documents d ON d.id = c.document_id
WHERE l.entity_id = $id
-- Chunks overlap: a place that two of them have is one.
QUALIFY row_number() OVER (
    PARTITION BY d.id, coalesce(l.start_char, c.start_char) ORDER BY c.id) = 1
ORDER BY d.uri, start_char LIMIT $most
"""
_COMMUNITIES = """
SELECT c.id, m.level, c.title, r.id AS report_id, r.title AS report
FROM community_members m JOIN communities c ON c.id = m.community_id
LEFT JOIN community_reports r ON r.community_id = c.id
WHERE m.entity_id = $id ORDER BY m.level
"""
_NEAR = """
WITH RECURSIVE reached(entity_id, hop) USING KEY (entity_id) AS (
    SELECT $id, 0
    UNION
    SELECT e.neighbor_id, any_value(r.hop) + 1
    FROM reached r JOIN edges e ON e.entity_id = r.entity_id
    ANTI JOIN recurring.reached known ON known.entity_id = e.neighbor_id
    WHERE r.hop < $hops GROUP BY e.neighbor_id
)
SELECT e.id, e.title, e.type, e.degree, e.description, r.hop
FROM reached r JOIN entities e ON e.id = r.entity_id
ORDER BY r.hop, e.degree DESC, e.title LIMIT $most
"""
_BETWEEN = """
SELECT id, source_id, target_id, source, target, type, weight, description FROM relationships
SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS a) one ON source_id = a
SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS b) other ON target_id = b
ORDER BY weight DESC, id LIMIT $most
"""
_COMMUNITY = """
SELECT c.id, c.human_readable_id, c.title, c.level, c.last_level, c.parent_id, c.size,
       c.n_relationships,
       r.id AS report_id, r.title AS report, r.summary, r.rating
FROM communities c LEFT JOIN community_reports r ON r.community_id = c.id WHERE c.id = $id
"""
_PARTS = """
SELECT c.id, c.title, c.level, c.size, r.title AS report
FROM communities c LEFT JOIN community_reports r ON r.community_id = c.id
WHERE c.parent_id = $id ORDER BY c.size DESC, c.id LIMIT $most
"""
_MEMBERS = """
SELECT e.id, e.title, e.type, e.degree FROM communities c
JOIN community_members m ON m.community_id = c.id AND m.level = c.level
JOIN entities e ON e.id = m.entity_id
WHERE c.id = $id ORDER BY e.degree DESC, e.title LIMIT $most
"""
_REPORT = """
SELECT id, community_id, level, title, summary, rating, rating_explanation, findings, full_content,
       coverage, writer, outdated
FROM community_reports WHERE id = $id
"""


def entities_named(index: Release, *, q: str, most: int) -> dict[str, Any]:
    """Return entities by a part of a name or alias, the best connected first."""
    return {"entities": index.rows(_NAMED, q=q, most=most), "release": index.facts.id}


def entity_id(index: Release, name: str) -> str:
    """Return the id of an entity by its id, or by its name or alias in any case, else by a part.

    Raises a 404 Problem where there is none.
    """
    if index.rows(_BY_ID, id=name):
        return name
    matches = index.rows(_NAMED, q=name, most=1)
    if not matches:
        raise HttpProblem(
            404, "there is no such entity in this release: find_entities looks for one"
        )
    return str(matches[0]["id"])


def neighbourhood_of(index: Release, *, id: str, hops: int, most: int) -> dict[str, Any]:
    """Return what is near an entity. Raises a 404 Problem for an id that there is not."""
    one(index.rows(_BY_ID, id=id), "entity")
    near = index.rows(_NEAR, id=id, hops=hops, most=most)
    ids = [row["id"] for row in near]
    between = index.rows(_BETWEEN, ids=ids, most=most * 5)
    return {"entities": near, "relationships": between, "release": index.facts.id}


@router.get("/entities")
async def entities(
    request: Request,
    q: Annotated[str, Query(min_length=1, max_length=200, description="Part of a name.")],
    most: MostRows = 20,
    collection: CollectionName = None,
    release: ReleaseName = None,
) -> Response:
    """Find entities by a part of a name or alias, the best connected first."""
    work = partial(entities_named, q=q, most=most)
    return json_response(await read(request, collection, work, release))


@router.get("/entities/{id}")
async def entity(
    request: Request, id: str, collection: CollectionName = None, release: ReleaseName = None
) -> Response:
    """Return an entity: its aliases, where documents tell of it, and its communities."""

    def facts(index: Release) -> dict[str, Any]:
        return {
            **one(index.rows(_BY_ID, id=id), "entity"),
            "aliases": [row["known_as"] for row in index.rows(_ALIASES, id=id)],
            "places": index.rows(_PLACES, id=id, most=_MOST_PLACES),
            "communities": index.rows(_COMMUNITIES, id=id),
            "release": index.facts.id,
        }

    return json_response(await read(request, collection, facts, release))


@router.get("/entities/{id}/neighbourhood")
async def neighbourhood(
    request: Request,
    id: str,
    hops: Annotated[int, Query(ge=1, le=MOST_HOPS)] = 1,
    most: MostRows = 100,
    collection: CollectionName = None,
    release: ReleaseName = None,
) -> Response:
    """Return the entities within some hops, the nearest first, and what relates them."""
    work = partial(neighbourhood_of, id=id, hops=hops, most=most)
    return json_response(await read(request, collection, work, release))


@router.get("/communities/{id}")
async def community(
    request: Request,
    id: str,
    most: MostRows = 100,
    collection: CollectionName = None,
    release: ReleaseName = None,
) -> Response:
    """Return a community: what it is part of and parted into, its members, and its report."""

    def facts(index: Release) -> dict[str, Any]:
        return {
            **one(index.rows(_COMMUNITY, id=id), "community"),
            "parts": index.rows(_PARTS, id=id, most=most),
            "members": index.rows(_MEMBERS, id=id, most=most),
            "release": index.facts.id,
        }

    return json_response(await read(request, collection, facts, release))


@router.get("/reports/{id}")
async def report(
    request: Request, id: str, collection: CollectionName = None, release: ReleaseName = None
) -> Response:
    """Return the report of a community, with its findings and where they stand."""

    def facts(index: Release) -> dict[str, Any]:
        row = one(index.rows(_REPORT, id=id), "report")
        return {**row, "release": index.facts.id}

    return json_response(await read(request, collection, facts, release))
