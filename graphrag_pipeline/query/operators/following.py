"""The rest of a question once a text has answered its first part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphrag_pipeline.core.text import terms
from graphrag_pipeline.query.operators.ranking import Ranking
from graphrag_pipeline.query.operators.seeds import MOST_SCALED
from graphrag_pipeline.query.question import AnalysedQuestion
from graphrag_pipeline.query.trace import operator

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_TITLE = "SELECT c.id, d.title FROM chunks c JOIN documents d ON d.id = c.document_id"
_NAMES = """
SELECT id, title FROM entities UNION ALL
SELECT entity_id, any_value(title ORDER BY title) FROM chunk_names
ANTI JOIN entities ON id = entity_id GROUP BY entity_id
"""
_MOST_NAMES = 10
_OPEN, _ANSWERED, _ABOUT, _NAMED = 1.0, 0.3, 0.5, 0.3


@operator
def asked_after(index: Release, question: str, chunk: str) -> Ranking:
    """Rank chunks by what a question still asks once one chunk is read; the best scores 1.

    By BM25 of weighed terms: those of the question that the chunk lacks by 1, its others by 0.3,
    those of what the chunk is about by 0.5, and those of its ten rarest names (in 2 to 20 chunks,
    and not wholly in the question) by 0.3. So "the author of Brand" finds the text on Ibsen once
    that on Brand names him.
    """
    asked = AnalysedQuestion.of(question).distinct_terms
    held = index.terms_held("chunks", [chunk], asked)[0].tolist()
    weights = {
        term: _ANSWERED if is_held else _OPEN for term, is_held in zip(asked, held, strict=True)
    }
    title = index.records(_TITLE, [chunk])[chunk]["title"]
    further = [(title, _ABOUT), *((name, _NAMED) for name in _rare_names(index, chunk, asked))]
    for text, weight in further:
        for term in terms(text):
            weights[term] = max(weight, weights.get(term, 0.0))
    hits = index.search_terms("chunks", weights, MOST_SCALED)
    scores = hits["score"].to_numpy()
    if not len(scores):
        return {}
    return dict(zip(hits["id"].to_pylist(), (scores / scores[0]).tolist(), strict=True))


def _rare_names(index: Release, chunk: str, asked: list[str]) -> list[str]:
    """Return the rarest names of a chunk that tell of others: not its title, not asked already."""
    graph = index.graph
    (node,) = graph.chunk_nodes([chunk]).tolist()
    names = graph.rare_names(node)
    titles = index.records(_NAMES, graph.ids_of(names))
    texts = [titles[key]["title"] for key in graph.ids_of(names) if key in titles]
    return [text for text in texts if not set(terms(text)) <= set(asked)][:_MOST_NAMES]
