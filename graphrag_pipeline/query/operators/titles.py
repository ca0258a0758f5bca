"""Titles in a question: what documents and sections are called, found in any case."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from graphrag_pipeline.core.arrays import distinct
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import UNSPACED, fold, normalize_title, terms
from graphrag_pipeline.query.memory.graph_arrays import RARE
from graphrag_pipeline.query.operators.ranking import Ranking
from graphrag_pipeline.query.trace import operator

if TYPE_CHECKING:
    from graphrag_pipeline.query.memory.graph_arrays import Weights
    from graphrag_pipeline.query.release import Release

_MOST_SHARING = 4
_MOST_OF_A_TITLE = 2
_MOST_FIRST = 4
_MOST_WORDS = 12
_MOST_QUESTION_WORDS = 500
_WORD = pattern_of(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
_NUMBERED = pattern_of(r"([^\W\d_]{2,6})([ -])(\d{1,6})")
_POSSESSIVES = ("'s", "’s")
_AROUND = " ?!.,;:…？！。、，¿¡\"'“”„‘’«»()[]"


@operator
def titles_in(index: Release, question: str) -> dict[str, list[int]]:
    """Return the titles that stand in a question, and the nodes of each in ``index.graph``.

    Titles of documents and headings of sections, of up to 12 words (or signs of scripts without
    spaces), without regard to case and accents, also with a final 's. A longer one goes before a
    shorter, an earlier before a later, and none shares a word with one before it. A single word in
    lower case is one only where it is rare: in 20 chunks, or 1 % of them.
    """
    titles = index.graph.titles()
    if not len(titles.keys):
        return {}
    runs = [(places, text, [key for key, _ in _keys(text)]) for places, text in _runs(question)]
    keys = list(dict.fromkeys(key for *_, each in runs for key in each))
    nodes = dict(zip(keys, titles.having(keys), strict=True))
    found: dict[str, list[int]] = {}
    taken: set[int] = set()
    for places, text, of_run in runs:
        key = next((key for key in of_run if nodes[key]), None)
        if key is None or not taken.isdisjoint(places):
            continue
        if len(places) == 1 and text == text.lower() and not _is_rare(index, key):
            continue
        taken.update(places)
        found[key] = nodes[key]
    return found


def as_asked(question: str, titles: Collection[str]) -> list[str]:
    """Return titles that :func:`titles_in` has found in a question as they are written there.

    >>> as_asked("Why did the Möwe sink?", ["mowe"])
    ['Möwe']
    """
    names: dict[str, str] = {}
    for _, text in _runs(question if titles else ""):
        for key, name in _keys(text):
            names.setdefault(key, name.strip(_AROUND))
    return [names.get(title, title) for title in titles]


@operator
def telling(index: Release, titles: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """Return those of some titles that tell which text is meant: at most four documents have it."""
    return {
        key: nodes
        for key, nodes in titles.items()
        if len(distinct(index.graph.about(nodes)[1])) <= _MOST_SHARING
    }


@operator
def titled_first(
    index: Release, ranking: Ranking, titles: Iterable[Sequence[int]], scores: Weights
) -> Ranking:
    """Put first, of the documents that have one of some titles, the chunk with the best score.

    ``scores`` are by node. Of each title the best two documents, and four of all, in the order of
    their scores; the rest of the ranking follows. What a question calls by its title it asks about,
    however few of the question's words that text holds.
    """
    import numpy as np

    chosen: set[int] = set()
    for nodes in titles:
        chosen.update(_best_of_documents(index, nodes, scores)[:_MOST_OF_A_TITLE])
    nodes = sorted(chosen, key=lambda node: (-scores[node], node))[:_MOST_FIRST]
    first = index.graph.ids_of(np.array(nodes, np.int64))
    return {key: float(scores[node]) for key, node in zip(first, nodes, strict=True)} | ranking


def _best_of_documents(index: Release, nodes: Sequence[int], scores: Weights) -> list[int]:
    """Return the best chunk of each document that some titles are of, best first, as nodes."""
    import numpy as np

    chunks, documents = index.graph.about(nodes)
    order = np.argsort(-scores[chunks], kind="stable")
    _, places = np.unique(documents[order], return_index=True)
    return chunks[order[np.sort(places)]].tolist()


def _runs(question: str) -> Iterator[tuple[range, str]]:
    """Yield runs of words, the longest first: the places of the words, and their text."""
    words = [match.span() for match in _WORD.finditer(question)][:_MOST_QUESTION_WORDS]
    for length in range(min(_MOST_WORDS, len(words)), 0, -1):
        for first in range(len(words) - length + 1):
            text = question[words[first][0] : words[first + length - 1][1]]
            if len(text) > 1 or text.isascii():
                yield range(first, first + length), text


def _keys(text: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of a text, and what of it each is the key of."""
    for ending in ("", *_POSSESSIVES):
        if text.endswith(ending):
            name = text.removesuffix(ending)
            yield fold(normalize_title(name)), name
            # One of a series, as PEP 8, is called PEP-8, too.
            if number := _NUMBERED.fullmatch(name.strip(_AROUND)):
                other = f"{number[1]}{' ' if number[2] == '-' else '-'}{number[3]}"
                yield fold(normalize_title(other)), name


def _is_rare(index: Release, key: str) -> bool:
    counts, n_rows = index.term_counts("chunks", terms(key))
    return min(counts.values(), default=0) <= max(RARE, n_rows // 100)
