"""Quality of an index by itself: its graph, its communities, the sources of its texts.

Nothing is asked of a model. All is reckoned on whole columns of a published release; what grows
with more than its size is bounded: triangles are counted from the end of an edge that has fewer
neighbours (at most edges ** 1.5 steps), findings are drawn if there are very many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import duckdb
import polars as pl

from graphrag_evaluation.metrics.answers import NO_ANSWER, POLAR
from graphrag_evaluation.metrics.groundedness import groundedness
from graphrag_evaluation.metrics.hierarchies import spreads
from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.store.frames import drop_rows, put_rows

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

NO_LEVEL: Final = -1
"""The level of what is about the whole index."""

ABOUT: Final = {
    "modularity": "of communities, by weight (Newman, 2004; resolution 1)",
    "coverage": "share of the weight of relationships that lies inside communities",
    "calinski_harabasz": "of the vectors of entities in communities (ArchRAG, eq. 3)",
    "centroid_cosine": "mean cosine of entities and the centroid of their community (eq. 4)",
    "attributed_calinski_harabasz": "the same of attributed communities (ArchRAG)",
    "attributed_centroid_cosine": "the same of attributed communities",
    "hirag_calinski_harabasz": "the same of communities of entities of all layers (HiRAG)",
    "hirag_centroid_cosine": "the same of communities of all layers",
    "raptor_calinski_harabasz": "the same of chunks and summaries under one summary (RAPTOR)",
    "raptor_centroid_cosine": "the same of what is under one summary",
    "clustering_coefficient": "mean share of an entity's neighbours that are neighbours",
    "transitivity": "share of paths of two steps whose ends are neighbours (HiRAG, eq. 18)",
    "hirag_transitivity": "the same of the graph of all layers",
    "orphans": "share of entities without a relationship",
    "duplicates": "share of entities whose letters and digits are an earlier one's",
    "groundedness": "share of report findings that the text they cite bears out",
    "citation_validity": "share of references in answers that lead somewhere",
    "answer_entities": "share of short gold answers that are, or contain, an entity",
    "answers_as_entities": "share of short gold answers that are an entity",
}
"""What each metric is. The last two are of one question set, whose name follows after an @."""

_MOST_WORDS = 6
_SCHEMA = {"name": pl.String, "value": pl.Float64, "level": pl.Int32}


def _bare_name(column: str) -> str:
    """Return the SQL of a name without case, punctuation and leading article."""
    words = f"regexp_replace(lower({column}), '[^\\p{{L}}\\p{{M}}\\p{{N}}]+', ' ', 'g')"
    return f"regexp_replace(trim({words}), '^(the|a|an) ', '')"


_COMMUNITIES = """
WITH levels AS (SELECT DISTINCT level FROM community_members),
linked AS (SELECT source_id, target_id, weight FROM relationships WHERE weight > 0),
strengths AS (
    SELECT id, fsum(weight) AS strength
    FROM (SELECT source_id AS id, weight FROM linked UNION ALL SELECT target_id, weight FROM linked)
    GROUP BY id),
placed AS MATERIALIZED (
    SELECT levels.level, id, coalesce(community_id, id) AS community, strength
    FROM strengths CROSS JOIN levels
    LEFT JOIN community_members m ON m.level = levels.level AND m.entity_id = id),
whole AS (SELECT fsum(weight) AS total FROM linked),
inside AS (
    SELECT a.level, fsum(weight) AS inside
    FROM linked JOIN placed a ON a.id = source_id
    JOIN placed b ON b.id = target_id AND b.level = a.level AND b.community = a.community
    GROUP BY a.level),
strength AS (SELECT level, fsum(strength) AS strength FROM placed GROUP BY level, community)
SELECT level, coalesce(any_value(inside), 0) / any_value(total) AS coverage,
       coalesce(any_value(inside), 0) / any_value(total)
           - fsum((strength / (2 * total)) ** 2) AS modularity
FROM strength CROSS JOIN whole LEFT JOIN inside USING (level) GROUP BY level ORDER BY level
"""
# A triangle is found at its corner with the fewest neighbours, as two edges that a third joins.
_CLUSTERING = """
WITH pairs AS (
    SELECT DISTINCT least(source_id, target_id) AS one, greatest(source_id, target_id) AS two
    FROM ({edges}) WHERE source_id <> target_id),
ranked AS MATERIALIZED (
    SELECT id, count(*) AS degree, row_number() OVER (ORDER BY count(*), id) AS place
    FROM (SELECT unnest([one, two]) AS id FROM pairs) GROUP BY id),
edges AS MATERIALIZED (
    SELECT least(a.place, b.place) AS low, greatest(a.place, b.place) AS high
    FROM pairs JOIN ranked a ON a.id = one JOIN ranked b ON b.id = two),
triangles AS (
    SELECT p.low AS one, p.high AS two, q.high AS three
    FROM edges p JOIN edges q ON q.low = p.low AND q.high > p.high
    SEMI JOIN edges r ON r.low = p.high AND r.high = q.high),
closed AS (
    SELECT place, count(*) AS n FROM (SELECT unnest([one, two, three]) AS place FROM triangles)
    GROUP BY place),
counted AS (
    SELECT degree * (degree - 1) / 2 AS paths, coalesce(n, 0) AS n
    FROM ranked LEFT JOIN closed USING (place))
SELECT coalesce(fsum(n / paths) FILTER (paths > 0), 0) / (SELECT count(*) FROM entities)
           AS clustering_coefficient,
       coalesce(fsum(n) / nullif(fsum(paths), 0), 0) AS transitivity
FROM counted HAVING count(*) > 0
"""
_EDGES = "SELECT source_id, target_id FROM relationships"
_EDGES_OF_LAYERS = f"{_EDGES} UNION ALL SELECT source_id, target_id FROM hirag_relationships"
_ENTITIES = """
WITH keyed AS (
    SELECT id, lower(regexp_replace(title, '[^\\p{L}\\p{M}\\p{N}]', '', 'g')) AS key FROM entities),
linked AS (SELECT unnest([source_id, target_id]) AS id FROM relationships)
SELECT (count(*) - (SELECT count(DISTINCT l.id) FROM linked l SEMI JOIN entities e ON e.id = l.id))
           / count(*) AS orphans,
       (count(*) - count(DISTINCT coalesce(nullif(key, ''), id))) / count(*) AS duplicates
FROM keyed HAVING count(*) > 0
"""
_CITATIONS = """
SELECT sum(citations_resolved) / sum(citations) FROM answers
WHERE release = ? HAVING sum(citations) > 0
"""
_NAMES = f"""
SELECT DISTINCT {_bare_name("title")} AS name
FROM (SELECT title FROM entities UNION ALL SELECT title FROM entity_aliases)
"""
# The runs of words of an answer, to be found among the names: no answer meets every name.
_ANSWER_ENTITIES = f"""
WITH no_answers AS (SELECT {_bare_name("no")} AS plain FROM (SELECT unnest($none) AS no)),
given AS (
    SELECT question_id, {_bare_name("answer")} AS said
    FROM (SELECT question_id, unnest(answers) AS answer FROM questions WHERE question_set = $set)),
short AS (
    SELECT question_id, said, string_split(said, ' ') AS words FROM given
    WHERE said <> '' AND len(words) <= {_MOST_WORDS}),
runs AS (
    SELECT question_id, said,
           unnest(flatten([[array_to_string(words[i:j], ' ') FOR j IN range(i, len(words) + 1)]
                           FOR i IN range(1, len(words) + 1)])) AS run
    FROM short WHERE said NOT IN (SELECT plain FROM no_answers)),
found AS (
    SELECT question_id, bool_or(name IS NOT NULL AND name = said) AS whole,
           bool_or(name IS NOT NULL) AS part
    FROM runs LEFT JOIN names ON name = run GROUP BY question_id)
SELECT avg(part::INTEGER) AS answer_entities, avg(whole::INTEGER) AS answers_as_entities
FROM found HAVING count(*) > 0
"""


@dataclass(frozen=True)
class Metric:
    """One value; ``level`` is that of the communities, ``NO_LEVEL`` where it has none."""

    name: str
    value: float
    level: int = NO_LEVEL

    @property
    def has_level(self) -> bool:
        """Whether it is about one level of the communities, not the whole index."""
        return self.level != NO_LEVEL


def measure_index(release: Release, store: EvaluationStore, question_set: str = "") -> list[Metric]:
    """Measure a release and keep the values in ``index_metrics``, in place of earlier ones.

    ``question_set`` names the gold answers that are looked for in the graph. What cannot be
    reckoned, such as modularity without relationships, is left out.
    """
    measurements = [*measures(release)]
    with store.transaction() as con:
        measurements += _of_answers(con, release.facts.id)
        if question_set:
            measurements += answer_entities(con, release, question_set)
        put_rows(con, "measured", pl.DataFrame(measurements, schema=_SCHEMA))
        con.execute(
            "DELETE FROM index_metrics WHERE release = ? AND NOT contains(metric, '@')",
            [release.facts.id],
        )
        con.execute(
            """INSERT OR REPLACE INTO index_metrics BY NAME
               SELECT ? AS release, name AS metric, level, value, now() AS measured_at
               FROM measured""",
            [release.facts.id],
        )
        drop_rows(con, "measured")
    return measurements


def known_metrics(store: EvaluationStore, release: str) -> list[Metric]:
    """Return what was measured of a release before."""
    with store.read() as con:
        rows = con.execute(
            "SELECT metric, value, level FROM index_metrics WHERE release = ? ORDER BY ALL",
            [release],
        ).fetchall()
    return [Metric(*row) for row in rows]


def measures(release: Release) -> Iterator[Metric]:
    """Yield what can be said of a release by itself: levels, vectors, graph, findings."""
    for row in release.rows(_COMMUNITIES):
        for name in ("modularity", "coverage"):
            yield Metric(name, row[name], row["level"])
    yield from (Metric(*values) for values in spreads(release))
    for row in release.rows(_CLUSTERING.format(edges=_EDGES)):
        yield from (Metric(name, value) for name, value in row.items())
    if release.has_rows("hirag_relationships"):
        for row in release.rows(_CLUSTERING.format(edges=_EDGES_OF_LAYERS)):
            yield Metric("hirag_transitivity", row["transitivity"])
    for row in release.rows(_ENTITIES):
        yield from (Metric(name, value) for name, value in row.items())
    if (share := groundedness(release)) is not None:
        yield Metric("groundedness", share)


def answer_entities(
    con: duckdb.DuckDBPyConnection, release: Release, question_set: str
) -> list[Metric]:
    """Return how many questions have a short gold answer that is in the graph.

    A gold answer is short with up to six words; yes, no and "not enough information" are none. It
    is in the graph if it is the name of an entity or one folded into it, case, punctuation and a
    leading article aside (``answers_as_entities``), or contains such a name as whole words
    (``answer_entities``). "RAG vs. GraphRAG" (Han et al., 2025, 4.2) found 65.8 % on HotpotQA.
    """
    put_rows(con, "names", release.columns(_NAMES))
    try:
        parameters = {"set": question_set, "none": [*POLAR, *NO_ANSWER]}
        rows = con.execute(_ANSWER_ENTITIES, parameters).pl()
    finally:
        drop_rows(con, "names")
    return [Metric(f"{n}@{question_set}", v) for row in rows.to_dicts() for n, v in row.items()]


def _of_answers(con: duckdb.DuckDBPyConnection, release: str) -> list[Metric]:
    rows = con.execute(_CITATIONS, [release]).fetchall()
    return [Metric("citation_validity", float(share)) for (share,) in rows]
