"""Where a walk over the graph sets out: entities named by rule, and rows by scaled similarity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.extraction.rules.nlp import names_in
from graphrag_pipeline.query.operators.entities import entities_titled
from graphrag_pipeline.query.operators.ranking import Ranking, VectorTable
from graphrag_pipeline.query.trace import operator

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

WORDS = 0.75
"""What words weigh against meaning: with MiniLM on news, less loses what only full text finds."""
MOST_SCALED = 10_000
"""Rows that similarities are scaled over: all of a small index, the best of a large one."""


@operator
def names_known(index: Release, question: str) -> dict[str, list[int]]:
    """Return the names that the rule extractor finds in a question, and the nodes of each.

    Those of ``index.graph``; a name that it does not have is left out. A question without names, or
    all in lower case, has none.
    """
    graph, known = index.graph, {}
    for name in names_in(question):
        entities = graph.entity_nodes(entities_titled(index, [name]))
        others = graph.name_nodes([make_id("entity", normalize_title(name))])
        if nodes := [*entities.tolist(), *others.tolist()]:
            known[name] = nodes
    return known


@operator
def scaled_search(
    index: Release, table: VectorTable, question: str, k: int = MOST_SCALED
) -> Ranking:
    """Rank the ``k`` rows most like a question, scaled so that the best has 1 and the last 0.

    The last is that of the table, or the 10,000th. By vectors; by BM25 where vectors know words
    only: what has none of the words has 0 by that, and is left out.
    """
    if index.lexical:
        hits, lowest = index.search_text(table, question, k), 0.0
    else:
        hits = index.search_vectors(table, question, MOST_SCALED)
        lowest = hits["score"][-1].as_py() if len(hits) else 0.0
    scores = hits["score"].to_numpy()[:k] - lowest
    if not len(scores) or scores[0] <= 0:
        return {}
    return dict(zip(hits["id"][:k].to_pylist(), (scores / scores[0]).tolist(), strict=True))


@operator
def likely(index: Release, table: VectorTable, question: str, k: int = MOST_SCALED) -> Ranking:
    """Rank the ``k`` rows most like a question in words and in meaning, from 1 to 0.

    ``WORDS`` of the scaled score by BM25, the rest of that by vectors. Where vectors know words
    only, BM25's.
    """
    if index.lexical:
        return scaled_search(index, table, question, k)
    hits = index.search_text(table, question, MOST_SCALED)
    by_words = hits["score"].to_numpy()
    best = max(by_words[:1].tolist(), default=0.0)
    shares = (by_words / best).tolist() if best else []
    words = dict(zip(hits["id"].to_pylist(), shares, strict=False))
    meaning = scaled_search(index, table, question)
    scores = {
        key: WORDS * words.get(key, 0.0) + (1 - WORDS) * meaning.get(key, 0.0)
        for key in {**words, **meaning}
    }
    order = sorted(scores, key=lambda key: (-scores[key], key))
    return {key: scores[key] for key in order[:k]}
