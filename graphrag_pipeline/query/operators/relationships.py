"""Relationships of entities."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.query.operators.ranking import Ranking, decoded
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.trace import operator

if TYPE_CHECKING:
    from graphrag_pipeline.query.memory.graph_arrays import Numbers, Weights
    from graphrag_pipeline.query.memory.rows_in_memory import KeptRows
    from graphrag_pipeline.query.release import Release

_EDGES = "SELECT id, source_id, target_id, weight, combined_degree FROM relationships ORDER BY id"
_RECORDS = """
SELECT id, human_readable_id, source_id, target_id, source, target, description, weight,
       combined_degree FROM relationships
"""
KEPT = (_EDGES,)
"""Queries whose rows are kept for all questions."""
_ENDS = ("source_id", "target_id")
_ATTRIBUTES = (*_ENDS, "weight", "combined_degree")


@operator
def relationships_of(index: Release, entities: Ranking, limit: int) -> Ranking:
    """Rank the relationships that touch the given entities; scores are combined degrees.

    Those between two of them come first, by combined degree; then those to other entities, which
    rank by how many of the given entities they link, then by combined degree.
    """
    import numpy as np

    edges = index.kept(_EDGES)
    of_sources, of_targets = (edges.having(end, entities)[0] for end in _ENDS)
    inside = np.intersect1d(of_sources, of_targets)
    out, back = np.setdiff1d(of_sources, inside), np.setdiff1d(of_targets, inside)
    far_ends = np.concatenate([edges.ids("target_id")[out], edges.ids("source_id")[back]])
    _, where, n_links = np.unique(far_ends, return_inverse=True, return_counts=True)
    rows = np.concatenate([inside, out, back])
    links = np.concatenate([np.full(len(inside), len(rows) + 1), n_links[where]])
    return _ranked(edges, rows, (links, edges.values("combined_degree")[rows]), limit)


@operator
def relationships_by_degree(index: Release, entities: Ranking, limit: int) -> Ranking:
    """Rank the relationships that touch the given entities by the degrees of their ends, summed.

    That is the score; of those with the same, the heaviest comes first.
    """
    import numpy as np

    edges = index.kept(_EDGES)
    rows = np.union1d(*(edges.having(end, entities)[0] for end in _ENDS))
    by = edges.values("combined_degree")[rows], edges.values("weight")[rows]
    return _ranked(edges, rows, by, limit)


def _ranked(edges: KeptRows, rows: Numbers, by: Sequence[Weights | Numbers], k: int) -> Ranking:
    """Rank some edges by the highest of some values, the first first, ties by id."""
    import numpy as np

    order = np.lexsort((rows, *(-values for values in reversed(by))))[:k]
    degrees = edges.values("combined_degree")[rows[order]].astype(np.float64)
    return dict(zip(decoded(edges.ids("id")[rows[order]]), degrees.tolist(), strict=True))


@operator
def relationships_by_score(index: Release, entities: Ranking, k: int) -> Ranking:
    """Rank the ``k`` relationships with the highest score: the sum of those of their ends."""
    import numpy as np

    graph = index.graph
    edges, scores = graph.edges("links"), graph.weigh_entities(entities)
    summed = scores[edges.one] + scores[edges.two]
    order = np.argsort(-summed, kind="stable")[:k]
    positive = order[summed[order] > 0]
    ids = map(bytes.decode, edges.ids[positive].tolist())
    return dict(zip(ids, summed[positive].tolist(), strict=True))


@operator
def relationships_within(index: Release, entities: Ranking, hops: int, limit: int) -> Ranking:
    """Rank the relationships up to ``hops`` steps from the given entities; each step halves 1.

    Within a step, those of the entity reached first come first, then the heaviest.
    """
    edges = index.kept(_EDGES)
    ranking: Ranking = {}
    reached, frontier = dict.fromkeys(entities), list(entities)
    for hop in range(hops):
        if not frontier or len(ranking) >= limit:
            break
        next_to = _next_to(edges, frontier, ranking, limit - len(ranking))
        ranking |= dict.fromkeys(next_to, 0.5**hop)
        frontier = [end for end in dict.fromkeys(next_to.values()) if end not in reached]
        reached |= dict.fromkeys(frontier)
    return ranking


def _next_to(
    edges: KeptRows, frontier: Sequence[str], exclude: Collection[str], limit: int
) -> dict[str, str]:
    """Return relationships of entities that are not taken, and the far end of each."""
    import numpy as np

    (out, places_out), (back, places_back) = (edges.having(end, frontier) for end in _ENDS)
    rows, places = np.concatenate([out, back]), np.concatenate([places_out, places_back])
    far = np.concatenate([edges.ids("target_id")[out], edges.ids("source_id")[back]])
    order = np.lexsort((rows, -edges.values("weight")[rows], places))
    order = order[~np.isin(rows[order], edges.having("id", exclude)[0])]
    ends: dict[str, str] = {}
    for key, end in zip(decoded(edges.ids("id")[rows[order]]), decoded(far[order]), strict=True):
        ends.setdefault(key, end)
    return dict(islice(ends.items(), limit))


@operator
def relationship_records(index: Release, relationships: Ranking) -> list[Record]:
    """Return the records of ranked relationships, in their order."""
    rows = index.records(_RECORDS, relationships)
    return [
        relationship_record(row, score, row["description"])
        for key, score in relationships.items()
        if (row := rows.get(key))
    ]


def relationship_record(row: Mapping[str, Any], score: float, text: str) -> Record:
    """Return a relationship's record from its row."""
    return Record(
        kind="relationship",
        id=row["id"],
        number=row["human_readable_id"],
        title=f"{row['source']} – {row['target']}",
        text=text,
        score=score,
        attributes={name: row[name] for name in _ATTRIBUTES},
    )
