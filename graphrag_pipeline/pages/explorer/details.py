"""Requests of the page to the server: everything on one entity, or the report of one community."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.pages.explorer.passages import passages_of

if TYPE_CHECKING:
    from graphrag_pipeline.core.addresses import PermanentLinks

Rows = Callable[..., list[dict[str, Any]]]

MOST_NEIGHBOURS = 1000

_ENTITY = """
SELECT id, human_readable_id AS number, title, type, degree, frequency,
       description,
       (SELECT coalesce(list(known_as ORDER BY known_as), []) FROM entity_names
        WHERE entity_id = e.id AND is_alias) AS aliases
FROM entities e WHERE human_readable_id = $number
"""
_NEIGHBOURS = f"""
SELECT e.human_readable_id AS number, e.title, r.weight, coalesce(r.type, '') AS type,
       r.description
FROM edges r JOIN entities e ON e.id = r.neighbor_id
WHERE r.entity_id = $id ORDER BY r.weight DESC, r.relationship_id LIMIT {MOST_NEIGHBOURS}
"""
_PASSAGES = f"""
SELECT d.title, d.uri{{link}}, offset_ + marked AS start, n_chunks,
       substr(p.text, (first + 1)::BIGINT, (marked - first)::BIGINT) AS before,
       substr(p.text, (marked + 1)::BIGINT, n_marked) AS name,
       substr(p.text, (marked + n_marked + 1)::BIGINT, (last - marked - n_marked)::BIGINT) AS after
FROM ({passages_of("SELECT $id AS id")}) p JOIN documents d ON d.id = p.document_id
ORDER BY nth_of_document, n_mentions DESC, d.uri, start
"""
_REPORT = """
SELECT c.human_readable_id AS number, r.writer, r.rating, r.rating_explanation, r.coverage,
       r.summary
FROM communities c JOIN community_reports r ON r.community_id = c.id
WHERE c.human_readable_id = $number
"""
_FINDINGS = """
SELECT f.summary, f.explanation, d.title, d.uri{link}, f.start_char AS start, f.end_char AS "end"
FROM (SELECT unnest(r.findings, recursive := true), generate_subscripts(r.findings, 1) AS place
      FROM communities c JOIN community_reports r ON r.community_id = c.id
      WHERE c.human_readable_id = $number) f
LEFT JOIN chunks c ON c.id = f.chunk_id LEFT JOIN documents d ON d.id = c.document_id
ORDER BY f.place
"""


def entity_details(
    rows: Rows, number: int, links: PermanentLinks | None = None
) -> list[dict[str, Any]]:
    """Return the entity of a number as a page shows it, or nothing where there is none.

    ``rows`` gives the rows of a query, as :meth:`Release.rows` does. Where ``links`` are given, the
    document of each passage has its permanent link.
    """
    return [
        {
            **entity,
            "relationships": rows(_NEIGHBOURS, id=entity["id"]),
            "passages": rows(_PASSAGES.format(link=_link(links)), id=entity["id"]),
        }
        for entity in rows(_ENTITY, number=number)
    ]


def community_details(
    rows: Rows, number: int, links: PermanentLinks | None = None
) -> list[dict[str, Any]]:
    """Return the report on the community of a number, or nothing where there is none.

    Documents that findings stand in have links, as in :func:`entity_details`.
    """
    return [
        {**report, "findings": rows(_FINDINGS.format(link=_link(links)), number=number)}
        for report in rows(_REPORT, number=number)
    ]


def _link(links: PermanentLinks | None) -> str:
    return f", {links.sql('documents', 'd.id')} AS link" if links else ""
