"""The scores of answers that are computed where they are asked for, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from graphrag_evaluation.metrics.answers import bleu_1, meteor, require, rouge_2, rouge_l
from graphrag_evaluation.metrics.published_scorers import (
    PUBLISHED,
    SCRIPTS,
    check_wordnet,
    rouge_2_best,
)

EXTRA: Final[Mapping[str, Callable[[str, Sequence[str]], float]]] = {
    "rougeL": rouge_l,
    "bleu1": bleu_1,
    "meteor": meteor,
    **PUBLISHED,
}
"""Those of one number each."""

OF_BIGRAMS: Final = {"rouge2": rouge_2, "rouge2_best": rouge_2_best}
"""Those of an answer's precision, recall and F1."""

OVERLAPS: Final = (*OF_BIGRAMS, "bertscore")
"""Scores of three numbers: F1 by this name, ``_precision`` and ``_recall`` added to it."""

COMPUTED: Final = (*EXTRA, *OVERLAPS)
"""All that can be asked for beyond the usual scores."""


def names_of(metric: str) -> tuple[str, ...]:
    """Return the names of a metric's numbers: precision and recall before F1, where it has them."""
    return (f"{metric}_precision", f"{metric}_recall", metric) if metric in OVERLAPS else (metric,)


def script_of(name: str) -> str:
    """Return the authors' script that a number follows, as people are told of it."""
    metric = next(metric for metric in SCRIPTS if name in names_of(metric))
    return SCRIPTS[metric]


def check_installed(metric: str) -> None:
    """Raise InputError where a metric needs a package or data that are not installed."""
    require(metric)
    if metric == "meteor_archrag":
        check_wordnet()


def values_of(metric: str, answer: str, gold: Sequence[str]) -> tuple[float, ...]:
    """Return the numbers of a metric but BERTScore, in the order of :func:`names_of`."""
    if metric in OF_BIGRAMS:
        return OF_BIGRAMS[metric](answer, gold)
    return (EXTRA[metric](answer, gold),)
