"""Words of a question, how rare they are, and chunks chosen so that together they hold them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from graphrag_pipeline.core.text import terms
from graphrag_pipeline.query.operators.ranking import Ranking
from graphrag_pipeline.query.question import AnalysedQuestion
from graphrag_pipeline.query.trace import operator

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from graphrag_pipeline.query.release import Release

CANDIDATES = 40
"""Chunks that are looked at for those that together hold most of a question."""
_CHOSEN = 6
_LINKED_TO = 4
_COVERAGE = 0.5
_LINK = 0.5
_LEAST = 1e-30
_DECIMALS = 9


@operator
def rarity(index: Release, question: str) -> dict[str, float]:
    """Return the inverse document frequency of each term of a question, over chunks.

    ln(1 + (N - df + .5) / (df + .5)), as BM25 has it. A term that no chunk holds is left out:
    nothing can be found by it.
    """
    counts, n_rows = index.term_counts("chunks", AnalysedQuestion.of(question).distinct_terms)
    return {term: math.log(1 + (n_rows - n + 0.5) / (n + 0.5)) for term, n in counts.items() if n}


def share_of(weights: Mapping[str, float], texts: Iterable[str]) -> float:
    """Return what part of weighed terms stands in some texts, by weight; 0 where there are none."""
    held = {term for text in texts for term in terms(text)}
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in held) / total if total else 0.0


@operator
def by_terms(index: Release, question: str, chunks: Ranking) -> Ranking:
    """Rank chunks by the rarity of the question's terms that each holds; equal ones stay as is."""
    import numpy as np

    keys, weights = list(chunks), rarity(index, question)
    holds = index.terms_held("chunks", keys, list(weights))
    scores = np.round(holds @ np.array(list(weights.values()), np.float64), _DECIMALS)
    order = np.argsort(-scores, kind="stable").tolist()
    return {keys[place]: float(scores[place]) for place in order}


@operator
def covering(index: Release, question: str, chunks: Ranking) -> Ranking:
    """Reorder the first 40 chunks so that the first six together answer as much as they can.

    Each next chunk is the one with the largest sum of: its score, as the logarithm scaled by min
    and max over the 40; half the share, by rarity, of the question's terms that it is the first to
    hold; and a half if it leads to one of the first four or is led to, as one is about what the
    other mentions (:meth:`GraphArrays.links_among`). A question of several steps is answered by
    texts that lead to each other; those most like it say the same.

    Scores stay as they are, and so may not descend. After the greedy maximisation of coverage: Lin
    and Bilmes, A Class of Submodular Functions for Document Summarization, 2011.
    """
    import numpy as np

    keys = list(chunks)[:CANDIDATES]
    if len(keys) < 2:
        return chunks
    scores = np.log(np.maximum(np.fromiter((chunks[key] for key in keys), float), _LEAST))
    span = scores[0] - scores.min()
    relevance = (scores - scores.min()) / span if span > 0 else np.ones(len(keys))
    weights = rarity(index, question)
    holds = index.terms_held("chunks", keys, list(weights))
    links = index.graph.links_among(keys)
    order = _greedy(relevance, holds, np.array(list(weights.values())), links)
    rest = [place for place in range(len(keys)) if place not in order]
    first = {keys[place]: chunks[keys[place]] for place in [*order, *rest]}
    return first | {key: score for key, score in chunks.items() if key not in first}


def _greedy(
    relevance: npt.NDArray[np.float64],
    holds: npt.NDArray[np.bool_],
    weights: npt.NDArray[np.float64],
    links: npt.NDArray[np.float64],
) -> list[int]:
    """Return the places of the chunks chosen, in order; ``holds`` is (chunks, terms)."""
    import numpy as np

    total = weights.sum() or 1.0
    uncovered = weights / total
    chosen: list[int] = []
    linked = np.zeros(len(relevance))
    while len(chosen) < min(_CHOSEN, len(relevance)):
        worth = relevance + _COVERAGE * (holds @ uncovered) + _LINK * linked
        worth[chosen] = -np.inf
        place = int(worth.argmax())
        chosen.append(place)
        uncovered = np.where(holds[place], 0.0, uncovered)
        if len(chosen) <= _LINKED_TO:
            linked = np.maximum(linked, links[place])
    return chosen
