"""Relevance of short texts to a question, by shared words and by embedding."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphrag_pipeline.core.text import terms_batch
from graphrag_pipeline.query.question import AnalysedQuestion
from graphrag_pipeline.query.trace import operator

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

LEXICAL_WEIGHT = 0.65
MOST_EMBEDDED = 128
"""Texts compared by embedding: those with most of the question's words."""


@operator
def relevance(
    index: Release, question: str, texts: Sequence[str], *, sharing: bool = False
) -> list[float]:
    """Return a score from 0 to 1 for each text: word overlap and embedding similarity, weighted.

    Word overlap is the share of the question's words that a text holds, rare words counting more
    (inverse frequency over the texts given). ``sharing``: a text without any has 0.
    """
    overlap = _overlap(question, texts)
    likeliest = sorted(range(len(texts)), key=lambda i: -overlap[i])[:MOST_EMBEDDED]
    if sharing:
        likeliest = [i for i in likeliest if overlap[i]]
    similarity = _similarity(index, question, [texts[i] for i in likeliest])
    scores = [LEXICAL_WEIGHT * value for value in overlap]
    for position, value in zip(likeliest, similarity, strict=True):
        scores[position] += (1 - LEXICAL_WEIGHT) * value
    return scores


def _overlap(question: str, texts: Sequence[str]) -> list[float]:
    question_terms = frozenset(AnalysedQuestion.of(question).terms)
    common_terms = [question_terms.intersection(line.split()) for line in terms_batch(texts)]
    # Many texts have the same few of them.
    n_texts = Counter(common_terms)
    frequency: Counter[str] = Counter()
    for terms_in_text, n in n_texts.items():
        frequency.update(dict.fromkeys(terms_in_text, n))
    weight = {term: math.log(1 + len(texts) / n) for term, n in frequency.items()}
    total = sum(sorted(weight.values())) or 1.0
    share = {some: sum(sorted(weight[term] for term in some)) / total for some in n_texts}
    return [share[terms_in_text] for terms_in_text in common_terms]


def _similarity(index: Release, question: str, texts: Sequence[str]) -> list[float]:
    if not texts:
        return []
    cosine = index.embed(texts) @ index.embed_question(question)
    return [min(1.0, max(0.0, value)) for value in cosine.tolist()]
