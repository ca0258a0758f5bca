"""Communities at a level of the hierarchy, their reports, and the findings of those.

A community stands at the levels ``level`` to ``last_level``, so the communities at one level hold
every entity exactly once. A level deeper than the hierarchy means its deepest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.text import names_apart
from graphrag_pipeline.query.operators.ranking import Ranking, decoded
from graphrag_pipeline.query.question import AnalysedQuestion
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.trace import operator

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from graphrag_pipeline.query.memory.rows_in_memory import KeptRows
    from graphrag_pipeline.query.release import Release

_STANDING = """
standing AS (
    SELECT * FROM communities c, (SELECT max(last_level) AS deepest FROM communities)
    WHERE c.level <= least($level, deepest) AND c.last_level >= least($level, deepest))
"""
_MEMBERSHIPS = """
SELECT entity_id, m.community_id, c.level, last_level, coalesce(rating, -1) AS rating
FROM community_members m JOIN communities c ON c.id = m.community_id AND c.level = m.level
LEFT JOIN community_reports r ON r.community_id = c.id
"""
_AT_LEVEL = f"""
WITH {_STANDING}
SELECT r.id, rating FROM standing s JOIN community_reports r ON r.community_id = s.id
ORDER BY rating DESC, r.id
"""
_OF_COMMUNITIES = "SELECT id, community_id FROM community_reports"
KEPT = (_MEMBERSHIPS, _OF_COMMUNITIES)
"""Queries whose rows are kept for all questions."""
_RECORDS = """
SELECT r.id, c.human_readable_id, r.title, r.summary, r.full_content, r.rating, r.community_id,
       c.level, c.size
FROM community_reports r JOIN communities c ON c.id = r.community_id
"""
_ROOTS = """
SELECT c.id, r.id AS report_id, c.level FROM communities c
LEFT JOIN community_reports r ON r.community_id = c.id
WHERE c.parent_id IS NULL ORDER BY rating DESC NULLS LAST, c.id
"""
_CHILDREN = """
SELECT c.id, c.parent_id, r.id AS report_id, c.level FROM communities c
JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS parent_id,
             generate_subscripts($ids::JSON::VARCHAR[], 1) AS place) USING (parent_id)
LEFT JOIN community_reports r ON r.community_id = c.id
WHERE c.level <= $level ORDER BY place, rating DESC NULLS LAST, c.id
"""
_FINDINGS_OF = """
SELECT *, generate_subscripts(findings, 1) AS place, unnest(findings, recursive := true) FROM (
    SELECT r.id, c.human_readable_id, r.title, r.rating, r.community_id, r.findings
    FROM community_reports r JOIN communities c ON c.id = r.community_id
    WHERE r.id IN (SELECT unnest($ids::JSON::VARCHAR[])))
ORDER BY id, place
"""
_FINDINGS = """
SELECT *, strip_accents(lower(concat_ws(' ', title, summary, explanation))) AS said FROM (
    SELECT r.id, c.human_readable_id, r.title, r.rating, r.community_id, c.level, c.last_level,
           generate_subscripts(r.findings, 1) AS place, unnest(r.findings, recursive := true)
    FROM communities c JOIN community_reports r ON r.community_id = c.id)
ORDER BY rating DESC, place, id
"""
# If not materialised, each finding would be folded once for every word.
_LIKELIEST = f"""
WITH {_STANDING},
findings AS MATERIALIZED (
    SELECT f.* FROM ({_FINDINGS}) f SEMI JOIN standing s ON s.id = f.community_id)
SELECT * EXCLUDE said,
       len(list_filter($words::JSON::VARCHAR[], word -> contains(said, word))) AS hits
FROM findings ORDER BY hits DESC, rating DESC, place, id LIMIT $limit
"""
_DEEPEST = "SELECT max(last_level) AS deepest FROM communities"


# Themes: the weightiest community of each root at the level, weightier roots first, then the next.
# A chunk tells of the community at the level most of whose names are in it. A community weighs as
# much as the shares of documents that tell of it, so that long and short ones count alike; code,
# tables and records tell of nothing; where there is nothing else, communities are by their size.
_THEMES = f"""
WITH {_STANDING},
rooted AS (
    SELECT DISTINCT s.id, s.size, r.id AS root, r.size AS root_size FROM standing s
    JOIN community_members own ON own.community_id = s.id AND own.level = s.level
    JOIN community_members top ON top.entity_id = own.entity_id AND top.level = 0
    JOIN communities r ON r.id = top.community_id),
named AS (
    SELECT e.chunk_id, s.id, count(*) AS n FROM standing s
    JOIN community_members m ON m.community_id = s.id AND m.level = s.level
    JOIN entity_chunks e USING (entity_id) GROUP BY ALL),
telling AS (SELECT chunk_id, arg_max(id, (n, id)) AS id FROM named GROUP BY chunk_id),
untold AS (
    SELECT c.id AS chunk_id,
           CASE WHEN bool_or(b.kind NOT IN ('code', 'table')) THEN c.end_char - c.start_char
           ELSE sum(least(b.end_char, c.end_char) - greatest(b.start_char, c.start_char)) END
           AS n_chars
    FROM chunks c JOIN blocks b ON b.document_id = c.document_id
     AND b.start_char < c.end_char AND b.end_char > c.start_char
    WHERE b.kind IN ('code', 'table', 'field', 'key', 'value')
    GROUP BY c.id, c.start_char, c.end_char),
weights AS (
    SELECT t.id, sum((c.end_char - c.start_char - coalesce(u.n_chars, 0)) / d.n_chars) AS weight
    FROM telling t JOIN chunks c ON c.id = t.chunk_id LEFT JOIN untold u USING (chunk_id)
    JOIN documents d ON d.id = c.document_id WHERE d.n_chars > 0 GROUP BY ALL),
weighed AS (
    SELECT rooted.*, greatest(coalesce(weight, 0), 0) AS weight,
           sum(greatest(coalesce(weight, 0), 0)) OVER (PARTITION BY root) AS root_weight
    FROM rooted LEFT JOIN weights USING (id)
    SEMI JOIN community_reports ON community_id = rooted.id),
themes AS (
    SELECT *, row_number() OVER (PARTITION BY root ORDER BY weight DESC, size DESC, id) AS turn
    FROM weighed WHERE weight > 0 OR (SELECT max(weight) FROM weighed) = 0
    ORDER BY turn, root_weight DESC, root_size DESC, size DESC, id LIMIT $limit)
SELECT r.id, c.human_readable_id, r.title, r.rating, r.community_id,
       generate_subscripts(r.findings, 1) AS place, unnest(r.findings, recursive := true)
FROM themes t JOIN community_reports r ON r.community_id = t.id
JOIN communities c ON c.id = r.community_id
ORDER BY place, turn, root_weight DESC, root_size DESC, t.size DESC, r.id
"""
# A name is the more characteristic of a community the more of its relationships lie within, and the
# more chunks say it. Names count for more than concepts and dates, terms of a single word least.
_ABOUT = """
WITH wanted AS (SELECT DISTINCT unnest($ids::JSON::VARCHAR[]) AS community_id),
inside AS (
    SELECT m.community_id, m.entity_id, e.title, e.degree,
           CASE WHEN e.type NOT IN ('CONCEPT', 'DATE') AND e.title <> lower(e.title) THEN 4
                WHEN contains(e.title, ' ') THEN 2 ELSE 0.5 END AS weight
    FROM community_members m SEMI JOIN wanted USING (community_id)
    JOIN communities c ON c.id = m.community_id AND c.level = m.level
    JOIN entities e ON e.id = m.entity_id),
edges AS (
    SELECT source_id AS entity_id, target_id AS other FROM relationships
    UNION ALL SELECT target_id, source_id FROM relationships),
own AS (
    SELECT i.community_id, i.entity_id, count(*) AS n FROM inside i JOIN edges USING (entity_id)
    SEMI JOIN inside o ON o.entity_id = edges.other AND o.community_id = i.community_id
    GROUP BY ALL),
names AS (
    SELECT community_id, count(*) AS size, list([entity_id, title] ORDER BY
        weight * coalesce(n, 0) ** 2 / greatest(degree, n, 1) * ln(1 + coalesce(n_chunks, 0)) DESC,
        degree DESC, title)[:$most] AS names
    FROM inside LEFT JOIN own USING (community_id, entity_id)
    LEFT JOIN (SELECT entity_id, count(*) AS n_chunks FROM entity_chunks
               SEMI JOIN inside USING (entity_id) GROUP BY ALL) USING (entity_id)
    GROUP BY community_id),
documents_of AS (
    SELECT community_id, count(DISTINCT document_id) AS n_documents FROM inside
    JOIN entity_chunks USING (entity_id) JOIN chunks c ON c.id = chunk_id GROUP BY community_id)
SELECT community_id, size, coalesce(n_documents, 0) AS n_documents, names
FROM names LEFT JOIN documents_of USING (community_id)
"""


@dataclass(frozen=True)
class Facts:
    """Size of a community, and (id, title) of its most characteristic names, best first."""

    size: int
    n_documents: int
    names: Sequence[tuple[str, str]]


@operator
def about_communities(index: Release, ids: Sequence[str], most: int) -> dict[str, Facts]:
    """Return the facts about communities by id, with at most so many names of each.

    None of these holds another.
    """
    rows = index.rows(_ABOUT, ids=list(ids), most=3 * most) if ids else []
    about: dict[str, Facts] = {}
    for row in rows:
        ids_by_title = {title: key for key, title in row["names"]}
        names = [(ids_by_title[title], title) for title in names_apart(ids_by_title, most)]
        about[row["community_id"]] = Facts(row["size"], row["n_documents"], names)
    return about


@operator
def themes_at(index: Release, level: int, limit: int) -> list[Record]:
    """Return the findings of the reports on the ``limit`` weightiest communities at a level.

    First the first finding of each, and first of the weightiest community within each root, so
    that the parts of one theme do not hide the others. A community weighs what is told of it: the
    sum of the shares of documents, without code, tables and records, that name it most.
    """
    rows = index.rows(_THEMES, level=level, limit=limit)
    return [finding_record(row, is_theme=True) for row in rows]


@operator
def communities_of(index: Release, entities: Ranking, level: int) -> Ranking:
    """Rank the communities the entities are in at a level, by how many of them, then by rating."""
    memberships = index.kept(_MEMBERSHIPS)
    last = memberships.values("last_level")
    reached = min(level, int(last.max(initial=0)))
    rows, _ = memberships.having("entity_id", entities)
    rows = rows[(memberships.values("level")[rows] <= reached) & (last[rows] >= reached)]
    return communities_by_members(memberships, rows)


def communities_by_members(memberships: KeptRows, rows: npt.NDArray[np.integer]) -> Ranking:
    """Rank the communities of some rows of memberships by how many these are, then by rating."""
    import numpy as np

    ids, first, counts = np.unique(
        memberships.ids("community_id")[rows], return_index=True, return_counts=True
    )
    order = np.lexsort((ids, -memberships.values("rating")[rows[first]], -counts))
    return dict(zip(decoded(ids[order]), counts[order].astype(float).tolist(), strict=True))


@operator
def reports_of(index: Release, communities: Ranking) -> Ranking:
    """Return the reports of communities, in their order; a community may have none."""
    table = index.kept(_OF_COMMUNITIES)
    rows, places = table.having("community_id", communities)
    scores = list(communities.values())
    ids = decoded(table.ids("id")[rows])
    return {key: scores[place] for key, place in zip(ids, places.tolist(), strict=True)}


@operator
def reports_at(index: Release, level: int) -> Ranking:
    """Rank all reports at a level by rating: together they cover each entity at most once."""
    return {row["id"]: row["rating"] for row in index.rows(_AT_LEVEL, level=level)}


@operator
def report_records(index: Release, reports: Ranking) -> list[Record]:
    """Return the records of ranked reports, in their order; ``attributes`` hold the summary."""
    rows = index.records(_RECORDS, reports)
    return [report_record(key, rows[key], reports[key]) for key in reports if key in rows]


def report_record(key: str, row: Mapping[str, Any], score: float, **more: Any) -> Record:
    """Return the record of a row that says of a report what all of them have; ``more`` besides."""
    names = ("summary", "rating", "community_id", "level", "size")
    return Record(
        kind="report",
        id=key,
        number=row["human_readable_id"],
        title=row["title"],
        text=row["full_content"],
        score=score,
        attributes={**{name: row[name] for name in names}, **more},
    )


@operator
def findings_at(index: Release, level: int, question: str, limit: int) -> list[Record]:
    """Return the ``limit`` findings of the reports at a level likeliest to bear on a question.

    Scores are the reports' ratings, 0 to 10. The place of a finding, where it has one, is in
    ``attributes``: chunk_id, start_char, end_char; also report_id and community_id.
    """
    words = sorted({coarse(term) for term in AnalysedQuestion.of(question).terms})
    findings = index.held(_FINDINGS)
    if findings is None:
        rows = index.rows(_LIKELIEST, level=level, words=words, limit=limit)
    else:
        rows = findings.take(_likeliest(findings, _reached(index, level), words, limit))
    return [finding_record(row) for row in rows]


def _reached(index: Release, level: int) -> int:
    """Return a level, or the deepest of the hierarchy."""
    deepest = index.kept(_DEEPEST).values("deepest")[0]
    return level if math.isnan(deepest) else min(level, int(deepest))


def _likeliest(
    findings: KeptRows, level: int, words: Sequence[str], limit: int
) -> npt.NDArray[np.intp]:
    """Return the rows of findings at a level that hold most of some words; they are by rating.

    Every finding at the level is looked at, as the map step of the paper does.
    """
    import numpy as np

    stands = (findings.values("level") <= level) & (findings.values("last_level") >= level)
    rows, texts = np.flatnonzero(stands), findings.texts("said")
    said = [texts[row] for row in rows.tolist()]
    hits = np.zeros(len(rows), np.int64)
    for word in words:
        hits += np.fromiter((word in text for text in said), np.bool_, len(said))
    return rows[np.argsort(-hits, kind="stable")][:limit]


@operator
def root_communities(index: Release) -> list[dict[str, Any]]:
    """Return (id, report_id, level) of the communities at the root, best rated report first."""
    return index.rows(_ROOTS)


@operator
def child_communities(index: Release, ids: Sequence[str], level: int) -> list[dict[str, Any]]:
    """Return (id, parent_id, report_id, level) of the children of communities, down to a level."""
    return index.rows(_CHILDREN, ids=list(ids), level=level)


@operator
def findings_of(index: Release, reports: Sequence[str]) -> list[Record]:
    """Return the findings of reports, by report and in their order there."""
    return [finding_record(row) for row in index.rows(_FINDINGS_OF, ids=list(reports))]


def finding_record(row: dict[str, Any], **more: Any) -> Record:
    """Return the record of a row that says of a finding what all have; ``more`` besides."""
    columns = ("community_id", "rating", "chunk_id", "start_char", "end_char")
    return Record(
        kind="finding",
        id=f"{row['id']}#{row['place']}",
        number=row["human_readable_id"],
        title=row["title"],
        text=_statement(row),
        score=row["rating"],
        attributes={"report_id": row["id"], **{name: row[name] for name in columns}, **more},
    )


def _statement(row: dict[str, Any]) -> str:
    """Return what a finding says; a sentence taken from the text stands for itself."""
    if row["start_char"] is not None or not row["summary"]:
        return row["explanation"] or row["summary"]
    return f"{row['summary']}: {row['explanation']}" if row["explanation"] else row["summary"]


def coarse(term: str) -> str:
    """Return the beginning of a word that its inflections share."""
    return term[: max(4, len(term) - 2)]
