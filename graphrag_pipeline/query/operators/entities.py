"""Entities: found by name, by similarity, and by walking the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.query.operators.ranking import Ranking, best, nearest
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.trace import operator

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_FOLDED = "SELECT strip_accents(lower(unnest($texts::JSON::VARCHAR[]))) AS text"
_RECORDS = "SELECT id, human_readable_id, title, type, description, frequency, degree FROM entities"
_BEST_CONNECTED = """
SELECT id, degree::DOUBLE AS degree FROM entities
WHERE type IN (SELECT unnest($types::JSON::VARCHAR[])) AND degree > 0
ORDER BY degree DESC, frequency DESC, id LIMIT $limit
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


@operator
def entities_named_in(index: Release, question: str, limit: int, *, apart: bool = False) -> Ranking:
    """Rank the entities whose whole title stands in the question, longest title first.

    Case and accents do not matter; stop words are no names. ``apart`` leaves out a title that
    stands only within longer ones: "Kestrel Bridge" names no "bridge". Scores are 1.
    """
    text = _folded(index, [question])[0]
    return dict.fromkeys(index.names.named_in(text, apart=apart)[:limit], 1.0)


@operator
def entities_titled(index: Release, names: Sequence[str]) -> Ranking:
    """Rank the entities that have one of these names as title, or had it before they were merged.

    In the order of the names; case and accents do not matter. Scores are 1.
    """
    titles = _folded(index, [" ".join(name.split()) for name in names])
    return dict.fromkeys(index.names.titled(titles), 1.0)


@operator
def best_connected(index: Release, types: Sequence[str], limit: int) -> Ranking:
    """Rank the entities of some types by how many others they are related to."""
    rows = index.rows(_BEST_CONNECTED, types=list(types), limit=limit)
    return {row["id"]: row["degree"] for row in rows}


def entities_for(index: Release, question: str, k: int) -> Ranking:
    """Rank exactly the ``k`` best entities for a question (fewer if the index has fewer).

    Those named in it come first, then those most similar to it.
    """
    by_name = entities_named_in(index, question, k)
    similar = nearest(index, "entities", question, 2 * k)
    return best(by_name | {key: score for key, score in similar.items() if key not in by_name}, k)


@operator
def neighbours(index: Release, entities: Ranking, hops: int = 1) -> Ranking:
    """Rank the entities up to ``hops`` relationships away from the given ones, which stay first.

    Each hop halves the score; within a hop, the heaviest relationship comes first.
    """
    reached, frontier, score = dict(entities), list(entities), min(entities.values(), default=1.0)
    for _ in range(hops):
        rows = index.rows(_NEXT_HOP, ids=list(reached), frontier=frontier)
        frontier, score = [row["id"] for row in rows], score / 2
        reached |= dict.fromkeys(frontier, score)
    return reached


@operator
def entity_records(index: Release, entities: Ranking) -> list[Record]:
    """Return the records of ranked entities, in their order."""
    rows = index.records(_RECORDS, entities)
    return [entity_record(row, score) for key, score in entities.items() if (row := rows.get(key))]


def entity_record(
    row: Mapping[str, Any],
    score: float,
    attributes: Sequence[str] = ("type", "frequency", "degree"),
) -> Record:
    """Return an entity's record from its row, with these of its columns as attributes."""
    return Record(
        kind="entity",
        id=row["id"],
        number=row["human_readable_id"],
        title=row["title"],
        text=row["description"],
        score=score,
        attributes={name: row[name] for name in attributes},
    )


def _folded(index: Release, texts: Sequence[str]) -> list[str]:
    """Return texts without case and accents, as DuckDB leaves these out of titles."""
    if all(text.isascii() for text in texts):
        return [text.lower() for text in texts]
    return [row["text"] for row in index.rows(_FOLDED, texts=list(texts))]
