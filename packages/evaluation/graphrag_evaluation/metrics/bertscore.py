"""BERTScore (Zhang et al. 2019): how well the tokens of two texts match, by an encoder's vectors.

The encoder is the configured embedder where that gives a vector for each token, as local models do;
else the package bert-score with its English model. Without a baseline and without weights by
rarity, as rag_vs_graphrag reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.extras import how_to_install
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.llm.embedders import TokenEmbedder, Vectors

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings

_AT_ONCE = 64
_PACKAGE = "bert_score"

Overlap = tuple[float, float, float]
"""Precision, recall and F1."""


@dataclass(frozen=True)
class Encoder:
    """A model that compares an answer and a reference; scores of two encoders are never mixed."""

    name: str
    compare: Callable[[Sequence[tuple[str, str]]], list[Overlap]]


def encoder_of(settings: Settings) -> Encoder:
    """Return the encoder that the settings give. Raises InputError where there is none."""
    embedder = configured_embedder(settings)
    if isinstance(embedder, TokenEmbedder):
        return encoder_by(embedder)
    if find_spec(_PACKAGE) is None:
        raise InputError(
            f"the metric bertscore needs an embedder that gives vectors of tokens, which "
            f'{settings.embeddings.embedder} does not: set embeddings.embedder = "local", or '
            f"leave it out of metrics, or {how_to_install('metrics')}"
        )
    return Encoder(_PACKAGE, _by_package)


def encoder_by(embedder: TokenEmbedder) -> Encoder:
    """Return the encoder that compares by an embedder's vectors of tokens."""

    def compare(pairs: Sequence[tuple[str, str]]) -> list[Overlap]:
        overlaps = []
        for start in range(0, len(pairs), _AT_ONCE):
            block = pairs[start : start + _AT_ONCE]
            texts = list(dict.fromkeys(text for pair in block for text in pair))
            vectors = dict(zip(texts, embedder.token_vectors(texts), strict=True))
            overlaps += [matched(vectors[said], vectors[wanted]) for said, wanted in block]
        return overlaps

    return Encoder(embedder.name, compare)


def bert_scores(
    encoder: Encoder, answers: Sequence[str], golds: Sequence[Sequence[str]]
) -> list[Overlap]:
    """Return the mean over its references of each answer's precision, recall and F1."""
    pairs = [
        (answer, reference)
        for answer, gold in zip(answers, golds, strict=True)
        for reference in gold
    ]
    overlaps = iter(encoder.compare(pairs))
    return [mean_overlap([next(overlaps) for _ in gold]) for gold in golds]


def mean_overlap(overlaps: Sequence[Overlap]) -> Overlap:
    """Return the means of precision, of recall and of F1."""
    precision, recall, f1 = (sum(values) / len(overlaps) for values in zip(*overlaps, strict=True))
    return precision, recall, f1


def matched(answer: Vectors, reference: Vectors) -> Overlap:
    """Return how well tokens match, each with the most similar one of the other text.

    The arguments are vectors of tokens, a row each, of any length but zero. Zhang et al. 2019,
    section 3: the mean over the answer's tokens is precision, over the reference's recall.
    """
    if not len(answer) or not len(reference):
        return 0.0, 0.0, 0.0
    cosines = _unit(answer) @ _unit(reference).T
    precision, recall = float(cosines.max(axis=1).mean()), float(cosines.max(axis=0).mean())
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total > 0 else 0.0


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def _by_package(pairs: Sequence[tuple[str, str]]) -> list[Overlap]:
    answers, references = zip(*pairs, strict=True)
    scores = import_module(_PACKAGE).score(list(answers), list(references), lang="en")
    columns = [[float(value) for value in values] for values in scores]
    return list(zip(*columns, strict=True))  # pyright: ignore[reportReturnType]
