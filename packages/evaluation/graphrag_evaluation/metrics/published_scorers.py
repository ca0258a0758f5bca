"""Scores as the papers' own scripts compute them, beside ours.

Written anew from what the scripts do, which are named with each; where one cannot be had the same
way that is said. An answer that says nothing but that there is none is read as "Insufficient
information", the words in which MultiHop-RAG's questions ask for that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from graphrag_evaluation.metrics.answers import (
    NO_ANSWER,
    bigram_overlap,
    is_abstention,
    normalized,
    require,
    rouge_l_of_words,
    rouge_words,
    token_scores,
)
from graphrag_pipeline.core.errors import InputError

_SAID_ANSWER = re.compile(r'The answer to the question is "(.*?)"')
# The stemmer of rouge-score leaves words of three letters or fewer alone.
_LEFT_ALONE = 3


def accuracy_archrag(answer: str, gold: Sequence[str]) -> float:
    """Return 1 where one of the gold answers stands in the answer, letters within words counting.

    ArchRAG's ``eval_hit`` (src/evaluate/evaluate.py): "no" is found in "know".
    """
    text = normalized(_in_their_words(answer))
    return float(any(normalized(reference) in text for reference in gold))


def recall_archrag(answer: str, gold: Sequence[str]) -> float:
    """Return the share of the words of all gold answers together that an answer has.

    ArchRAG's ``f1_score`` (src/evaluate/evaluate.py): aliases are joined, and one that is "yes" or
    "no" counts only where both are the same.
    """
    wanted = " ".join(gold)
    return token_scores(_in_their_words(answer), wanted)[2] if normalized(wanted) else 0.0


def bleu_1_archrag(answer: str, gold: Sequence[str]) -> float:
    """Return BLEU-1 by NLTK, of one gold answer at a time, the best, to two digits.

    ArchRAG's ``bleu_1`` (src/evaluate/evaluate.py), but that words are told apart without NLTK's
    model of sentences, which is a download of its own: a full stop within an answer stays with its
    word.
    """
    require("bleu1_archrag")
    from nltk.tokenize import word_tokenize
    from nltk.translate.bleu_score import sentence_bleu

    words = word_tokenize(answer, preserve_line=True)
    if not words:
        return 0.0
    references = [word_tokenize(reference, preserve_line=True) for reference in gold]
    bleu: Any = sentence_bleu
    return round(max(bleu([reference], words, weights=(1.0,)) for reference in references), 2)


def meteor_archrag(answer: str, gold: Sequence[str]) -> float:
    """Return METEOR by NLTK with WordNet's synonyms, the best gold answer, to two digits.

    ArchRAG's ``meteor`` (src/evaluate/evaluate.py): words are what stands between spaces.
    """
    check_wordnet()
    from nltk.translate.meteor_score import single_meteor_score

    words = answer.split()
    return round(max(single_meteor_score(reference.split(), words) for reference in gold), 2)


def rouge_l_archrag(answer: str, gold: Sequence[str]) -> float:
    """Return the F1 of ROUGE-L over stems, the best gold answer.

    ArchRAG's ``rouge_l`` (src/evaluate/evaluate.py), by rouge-score with ``use_stemmer``.
    """
    require("rougeL_archrag")
    said = _stems(answer)
    return max(rouge_l_of_words(said, _stems(reference)) for reference in gold)


def accuracy_multihop(answer: str, gold: Sequence[str]) -> float:
    """Return 1 where answer and gold answer share a word, as it stands between spaces.

    MultiHop-RAG's ``has_intersection`` (qa_evaluate.py): "the" is a word, and "Altman," another one
    than "Altman".
    """
    text = _in_their_words(answer)
    said = _SAID_ANSWER.search(text)
    words = set((said[1] if said else text).lower().split())
    return float(any(words & set(reference.lower().split()) for reference in gold))


def rouge_2_best(answer: str, gold: Sequence[str]) -> tuple[float, float, float]:
    """Return precision, recall and F1 of ROUGE-2 over stems, of the reference with the best F1.

    SQuALITY's ``multi_rouge`` (utils/metrics), which its runs call with ``use_stemmer``.
    """
    require("rouge2_best")
    said = _stems(answer)
    overlaps = [bigram_overlap(said, _stems(reference)) for reference in gold]
    return max(overlaps, key=lambda overlap: overlap[2])


PUBLISHED: Final[Mapping[str, Callable[[str, Sequence[str]], float]]] = {
    "accuracy_archrag": accuracy_archrag,
    "recall_archrag": recall_archrag,
    "bleu1_archrag": bleu_1_archrag,
    "meteor_archrag": meteor_archrag,
    "rougeL_archrag": rouge_l_archrag,
    "accuracy_multihop": accuracy_multihop,
}
"""Those of one number, by name."""

SCRIPTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        [name for name in PUBLISHED if name.endswith("_archrag")],
        "ArchRAG's src/evaluate/evaluate.py",
    ),
    "accuracy_multihop": "MultiHop-RAG's qa_evaluate.py, any shared word",
    "rouge2_best": "SQuALITY's multi_rouge, the best reference",
}
"""The script that each follows, and where it is found in the authors' repository."""


def check_wordnet() -> None:
    """Raise InputError where NLTK has no WordNet."""
    require("meteor_archrag")
    if not _has_wordnet():
        raise InputError(
            "the metric meteor_archrag needs WordNet: leave it out of metrics, or "
            "python -m nltk.downloader wordnet"
        )


@cache
def _has_wordnet() -> bool:
    from nltk.corpus import wordnet

    try:
        wordnet.ensure_loaded()
    except LookupError:
        return False
    return True


@cache
def _stemmer() -> Callable[[str], str]:
    from nltk.stem.porter import PorterStemmer

    return cache(PorterStemmer().stem)


def _stems(text: str) -> list[str]:
    stem = _stemmer()
    return [stem(word) if len(word) > _LEFT_ALONE else word for word in rouge_words(text)]


def _in_their_words(answer: str) -> str:
    return NO_ANSWER[0] if is_abstention(answer) else answer
