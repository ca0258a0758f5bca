"""Quality of an answer by gold answers: pure functions of texts.

Exact match, precision, recall and F1 are SQuAD's (Rajpurkar et al. 2016), the best alias counting,
with the rule of HotpotQA that ArchRAG follows: a "yes" or "no" earns nothing unless it is the whole
of both answer and gold answer. Accuracy is ArchRAG's: the gold answer stands somewhere in the
answer; but as whole words, and of "yes" and "no" the first that the answer says counts, where plain
containment would find "no" in "know".
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, Final

from graphrag_evaluation.metrics.bertscore import mean_overlap
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.extras import how_to_install
from graphrag_pipeline.extraction.rules.sentences import sentence_spans
from graphrag_pipeline.query.answering import NOT_WRITTEN
from graphrag_pipeline.query.short_answers import NOT_IN_DOCUMENTS
from graphrag_pipeline.reports.references import check_references

USUAL: Final = ("exact_match", "precision", "recall", "f1", "accuracy", "abstained")
"""Scores that any gold answer gives; the last one says whether it was answered at all."""

POLAR: Final = frozenset(["yes", "no"])

NO_ANSWER: Final = (
    "Insufficient information",
    "Not enough information",
    "noanswer",
    "cannot be answered",
    "Nothing in the index bears on this question",
    "Nothing in the index matches the question",
    NOT_IN_DOCUMENTS,
)
"""What counts as a right answer where there is none: the first is MultiHop-RAG's own."""

_PACKAGES = {
    "bleu1": "sacrebleu",
    **dict.fromkeys(
        ("meteor", "bleu1_archrag", "meteor_archrag", "rougeL_archrag", "rouge2_best"), "nltk"
    ),
}
_POLAR_OR_NONE = POLAR | {"noanswer"}
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_NUMBERS = re.compile(r"[ \t]?\[\d+(?:[,;][ \t]?\d+)*\]")
UNSPACED: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""A character of a script that puts no spaces between words."""
_METEOR_TOKEN = re.compile(r"\w+|[^\w\s]")
_ROUGE_TOKEN = re.compile(r"[a-z0-9]+")


def bare(answer: str) -> str:
    """Return an answer without its references, as ``[Data: Sources (1)]`` or ``[1]``.

    And without the line that says that no model wrote it.
    """
    text = answer.removeprefix(NOT_WRITTEN).lstrip()
    return _NUMBERS.sub("", check_references(text, {}).text)


def sentence_texts(text: str) -> list[str]:
    """Return the sentences of a text, each in one line."""
    return [" ".join(text[start:end].split()) for start, end in sentence_spans(text)]


def normalized(text: str) -> str:
    """Return a text as SQuAD compares it: lower case, no punctuation, no articles, one space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


_ABSTENTIONS: Final = frozenset(map(normalized, NO_ANSWER))


def usual_scores(answer: str, gold: Sequence[str]) -> dict[str, float]:
    """Return the ``USUAL`` scores of a bare answer, each from 0 to 1; ``gold`` are aliases.

    Precision and recall are those of the alias with the best F1. An answer that says nothing but
    that there is none has abstained, and is right where a gold answer says so, in whatever words.
    """
    if is_abstention(answer) and any(map(is_abstention, gold)):
        return dict.fromkeys(USUAL, 1.0)
    f1, precision, recall = max(token_scores(answer, reference) for reference in gold)
    text = normalized(answer)
    return {
        "exact_match": float(any(text == normalized(reference) for reference in gold)),
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "accuracy": float(is_accurate(answer, gold)),
        "abstained": float(is_abstention(answer)),
    }


def token_scores(answer: str, gold: str) -> tuple[float, float, float]:
    """Return F1, precision and recall of the words of an answer, as HotpotQA's script does."""
    answer_tokens, gold_tokens = normalized(answer), normalized(gold)
    if answer_tokens != gold_tokens and (
        answer_tokens in _POLAR_OR_NONE or gold_tokens in _POLAR_OR_NONE
    ):
        return 0.0, 0.0, 0.0
    said_words, wanted_words = answer_tokens.split(), gold_tokens.split()
    common = (Counter(said_words) & Counter(wanted_words)).total()
    if not common:
        score = float(answer_tokens == gold_tokens)
        return score, score, score
    precision, recall = common / len(said_words), common / len(wanted_words)
    return 2 * precision * recall / (precision + recall), precision, recall


def is_abstention(answer: str) -> bool:
    """Say whether a text says that there is no answer, and nothing else."""
    return normalized(answer) in _ABSTENTIONS


def is_polar(gold: Sequence[str]) -> bool:
    """Say whether a question asks for yes or no."""
    return any(normalized(reference) in POLAR for reference in gold)


def is_accurate(answer: str, gold: Sequence[str]) -> bool:
    """Say whether an answer contains one of the gold answers."""
    text = normalized(answer)
    first = next((word for word in text.split() if word in POLAR), "")
    return any(
        first == reference if reference in POLAR else contains(text, reference)
        for reference in map(normalized, gold)
    )


def contains(text: str, words: str) -> bool:
    """Say whether normalised words stand in a normalised text, as whole words.

    Scripts that put no spaces between words have none to respect.
    """
    if not words or words not in text:
        return False
    whole = rf"(?<!\w){re.escape(words)}(?!\w)"
    return bool(UNSPACED.search(words) or re.search(whole, text))


def rouge_2(answer: str, gold: Sequence[str]) -> tuple[float, float, float]:
    """Return precision, recall and F1 of ROUGE-2, bigrams in common (Lin 2004).

    Each is the mean over the references, as summaries by several people are used: no one of them
    is the right one.
    """
    words = rouge_words(answer)
    return mean_overlap([bigram_overlap(words, rouge_words(reference)) for reference in gold])


def rouge_l(answer: str, gold: Sequence[str]) -> float:
    """Return the F1 of ROUGE-L, the longest common subsequence; of several references the best.

    Both as the package rouge-score has them, without stemming; words are Latin letters and digits.
    """
    return max(rouge_l_of_words(rouge_words(answer), rouge_words(reference)) for reference in gold)


def rouge_l_of_words(words: Sequence[str], reference: Sequence[str]) -> float:
    """Return the F1 of ROUGE-L of two texts that are taken apart into words."""
    if not words or not reference:
        return 0.0
    return 2 * _common_subsequence(words, reference) / (len(words) + len(reference))


def bleu_1(answer: str, gold: Sequence[str]) -> float:
    """Return BLEU-1 from 0 to 1, of sacrebleu (13a tokens, brevity penalty, all references)."""
    require("bleu1")
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU(max_ngram_order=1, effective_order=True)
    return metric.sentence_score(answer, list(gold)).score / 100


def meteor(answer: str, gold: Sequence[str]) -> float:
    """Return METEOR of NLTK from 0 to 1, with its exact and stem stages; the best reference counts.

    The synonym stage is left out everywhere, since its WordNet data is a download of its own:
    scores are a little below those of a full METEOR, and the same on every machine.
    """
    require("meteor")
    from nltk.translate.meteor_score import single_meteor_score

    words = _METEOR_TOKEN.findall(answer)
    return max(
        single_meteor_score(_METEOR_TOKEN.findall(reference), words, wordnet=_NO_SYNONYMS)
        for reference in gold
    )


def require(metric: str) -> None:
    """Raise InputError if the package that a metric is computed by is not installed."""
    package = _PACKAGES.get(metric)
    if package and not _is_installed(package):
        raise InputError(
            f"the metric {metric} needs the package {package}: leave it out of metrics, or "
            f"{how_to_install('metrics')}"
        )


@cache
def _is_installed(package: str) -> bool:
    return find_spec(package) is not None


class _NoSynonyms:
    """WordNet without an entry."""

    def synsets(self, _: str) -> list[Any]:
        return []


_NO_SYNONYMS: Any = _NoSynonyms()


def rouge_words(text: str) -> list[str]:
    """Return the words of a text as rouge-score takes them, in lower case."""
    return _ROUGE_TOKEN.findall(text.lower())


def bigram_overlap(words: Sequence[str], reference: Sequence[str]) -> tuple[float, float, float]:
    """Return precision, recall and F1 of the bigrams that two lists of words have in common."""
    bigrams, wanted_bigrams = Counter(pairwise(words)), Counter(pairwise(reference))
    common = (bigrams & wanted_bigrams).total()
    said, wanted = bigrams.total(), wanted_bigrams.total()
    if not common:
        return 0.0, 0.0, 0.0
    return common / said, common / wanted, 2 * common / (said + wanted)


def _common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence, a row of the table as one integer.

    The algorithm is Hyyrö's (2004): a zero bit of ``row`` is a place where the length grows.
    """
    places: dict[str, int] = {}
    for place, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << place
    full = (1 << len(first)) - 1
    row = full
    for word in second:
        matched = row & places.get(word, 0)
        row = (row + matched | row - matched) & full
    return len(first) - row.bit_count()
