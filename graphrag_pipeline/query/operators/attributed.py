"""Reports on attributed communities, and what they find: the hierarchy of ArchRAG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphrag_pipeline.query.operators.communities import coarse, finding_record, report_record
from graphrag_pipeline.query.operators.ranking import Ranking, check_kept
from graphrag_pipeline.query.question import AnalysedQuestion
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.trace import operator

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_PLACES_EACH = 3

_REPORTS = """
SELECT id, id AS community_id, human_readable_id, level, title, summary, full_content, rating,
       size, list_distinct([f.chunk_id FOR f IN findings]) AS chunk_ids
FROM attributed_communities WHERE full_content IS NOT NULL
"""
# Levels are counted from the top here, as those of other hierarchies are.
_STANDING = """
standing AS (
    SELECT * FROM attributed_communities, (
        SELECT greatest(1, max(level) - $level) AS reached FROM attributed_communities
        WHERE full_content IS NOT NULL)
    WHERE full_content IS NOT NULL AND level <= reached AND last_level >= reached)
"""
_AT_LEVEL = f"WITH {_STANDING} SELECT id, rating FROM standing ORDER BY rating DESC, id"
# If not materialised, each finding would be folded once for every word.
_FINDINGS = f"""
WITH {_STANDING},
findings AS MATERIALIZED (
    SELECT *, strip_accents(lower(concat_ws(' ', title, summary, explanation))) AS said FROM (
        SELECT id, id AS community_id, human_readable_id, title, rating, size,
               generate_subscripts(findings, 1) AS place, unnest(findings, recursive := true)
        FROM standing))
SELECT * EXCLUDE said,
       len(list_filter($words::JSON::VARCHAR[], word -> contains(said, word))) AS hits
FROM findings ORDER BY {{order}} LIMIT $limit
"""
_LIKELIEST = _FINDINGS.format(order="hits DESC, rating DESC, place, id")
_THEMES = _FINDINGS.format(order="place, size DESC, rating DESC, id")
_CHUNKS = """
SELECT community_id, chunk_id
FROM (SELECT unnest($ids::JSON::VARCHAR[]) AS community_id)
JOIN attributed_entities USING (community_id) JOIN entity_chunks USING (entity_id)
GROUP BY community_id, chunk_id
QUALIFY row_number() OVER (PARTITION BY community_id ORDER BY count(*) DESC, chunk_id) <= $limit
"""


@operator
def attributed_report_records(index: Release, communities: Ranking) -> list[Record]:
    """Return the reports on ranked attributed communities, in their order.

    ``attributes`` hold the summary, and in ``chunk_ids`` up to three chunks that findings name.
    """
    rows = index.records(_REPORTS, communities)
    return [
        report_record(key, row, score, chunk_ids=sorted(row["chunk_ids"])[:_PLACES_EACH])
        for key, score in communities.items()
        if (row := rows.get(key))
    ]


@operator
def attributed_reports_at(index: Release, level: int) -> Ranking:
    """Rank the reports on the attributed communities at a level by rating; level 0 is the top.

    They are those that stand there, so they cover each entity at most once. Raises InputError where
    the release has none.
    """
    check_attributed(index)
    return {row["id"]: row["rating"] for row in index.rows(_AT_LEVEL, level=level)}


@operator
def attributed_findings_at(index: Release, level: int, question: str, limit: int) -> list[Record]:
    """Return the ``limit`` findings of these reports likeliest to bear on a question.

    Where it is empty those of the largest communities, at first one of each. Raises InputError
    where the release has none.
    """
    check_attributed(index)
    words = sorted({coarse(term) for term in AnalysedQuestion.of(question).terms})
    sql = _LIKELIEST if words else _THEMES
    rows = index.rows(sql, level=level, words=words, limit=limit)
    more = {} if words else {"is_theme": True}
    return [finding_record(row, **more) for row in rows]


def check_attributed(index: Release) -> None:
    """Raise InputError where a release has no attributed communities."""
    communities = "attributed_communities"
    check_kept(index, communities, communities.replace("_", " "), "hierarchies.attributed")


def chunks_below(index: Release, communities: Sequence[str]) -> dict[str, list[str]]:
    """Return for each attributed community up to three chunks that mention most of its entities."""
    chunks: dict[str, list[str]] = {key: [] for key in communities}
    for row in index.rows(_CHUNKS, ids=list(communities), limit=_PLACES_EACH) if chunks else ():
        chunks[row["community_id"]].append(row["chunk_id"])
    return {key: sorted(ids) for key, ids in chunks.items()}
