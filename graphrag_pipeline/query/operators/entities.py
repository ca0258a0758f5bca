"""Entities: found by name, by similarity, and by walking the graph."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphrag_pipeline.query.operators.ranking import Ranking, best, vector_search
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.timing import operator
from graphrag_pipeline.text import terms

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_NAMED = """
SELECT id, strip_accents(lower(title)) AS name, strip_accents(lower($question)) AS question
FROM entities
WHERE length(title) > 1 AND contains(strip_accents(lower($question)), strip_accents(lower(title)))
ORDER BY length(title) DESC, degree DESC, id
"""
_TITLED = """
WITH wanted AS (
    SELECT strip_accents(lower(unnest($names::JSON::VARCHAR[]))) AS name,
           generate_subscripts($names::JSON::VARCHAR[], 1) AS place),
known AS (
    SELECT id, title FROM entities UNION ALL
    SELECT canonical_id, title FROM entity_aliases SEMI JOIN entities ON canonical_id = id)
SELECT id FROM known JOIN wanted ON strip_accents(lower(title)) = name
GROUP BY id ORDER BY min(place), id
"""
_RECORDS = """
SELECT e.id, human_readable_id, title, type, description, frequency, degree
FROM (SELECT unnest($ids::JSON::VARCHAR[]) AS id) wanted JOIN entities e USING (id)
"""
_NEXT_HOP = """
WITH known AS (SELECT unnest($ids::JSON::VARCHAR[]) AS id),
frontier AS (SELECT unnest($frontier::JSON::VARCHAR[]) AS id)
SELECT id, max(weight) AS weight FROM (
    SELECT target_id AS id, weight FROM relationships SEMI JOIN frontier ON source_id = frontier.id
    UNION ALL
    SELECT source_id, weight FROM relationships SEMI JOIN frontier ON target_id = frontier.id
) ANTI JOIN known USING (id) GROUP BY id ORDER BY weight DESC, id
"""

# Letters of scripts written with spaces: next to one, a name has not ended.
_LETTER = r"[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\U0003ffff]"


@operator
def entities_named_in(index: Release, question: str, limit: int, *, apart: bool = False) -> Ranking:
    """Rank the entities whose whole title stands in the question, longest title first.

    Case and accents do not matter; stop words are no names. ``apart`` leaves out a title that
    stands only within longer ones: "Kestrel Bridge" names no "bridge". Scores are 1.
    """
    found = index.rows(_NAMED, question=question)
    text = found[0]["question"] if found else ""
    named: list[str] = []
    for row in found:
        if _is_name_in(row["name"], text):
            named.append(row["id"])
            text = _whole(row["name"]).sub("\0", text) if apart else text
    return dict.fromkeys(named[:limit], 1.0)


@operator
def entities_titled(index: Release, names: Sequence[str]) -> Ranking:
    """Rank the entities that have one of these names as title, or had it before they were merged.

    In the order of the names; case and accents do not matter. Scores are 1.
    """
    found = index.rows(_TITLED, names=[" ".join(name.split()) for name in names])
    return {row["id"]: 1.0 for row in found}


def entities_for(index: Release, question: str, k: int) -> Ranking:
    """Rank exactly the ``k`` best entities for a question (fewer if the index has fewer).

    Those named in it come first, then those most similar to it.
    """
    named = entities_named_in(index, question, k)
    similar = vector_search(index, "entities", question, 2 * k)
    return best(named | {key: score for key, score in similar.items() if key not in named}, k)


@operator
def neighbours(index: Release, entities: Ranking, hops: int = 1) -> Ranking:
    """Rank the entities up to ``hops`` relationships away from the given ones, which stay first.

    Each hop halves the score; within a hop, the heaviest relationship comes first.
    """
    reached, frontier, score = dict(entities), list(entities), min(entities.values(), default=1.0)
    for _ in range(hops):
        found = index.rows(_NEXT_HOP, ids=list(reached), frontier=frontier)
        frontier, score = [row["id"] for row in found], score / 2
        reached |= dict.fromkeys(frontier, score)
    return reached


@operator
def entity_records(index: Release, entities: Ranking) -> list[Record]:
    """Return the records of ranked entities, in their order."""
    rows = {row["id"]: row for row in index.rows(_RECORDS, ids=list(entities))}
    return [
        Record(
            kind="entity",
            id=key,
            number=row["human_readable_id"],
            title=row["title"],
            text=row["description"],
            score=score,
            attributes={name: row[name] for name in ("type", "frequency", "degree")},
        )
        for key, score in entities.items()
        if (row := rows.get(key))
    ]


def _is_name_in(name: str, question: str) -> bool:
    return bool(terms(name)) and _whole(name).search(question) is not None


def _whole(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!{_LETTER}){re.escape(name.strip())}(?!{_LETTER})")
