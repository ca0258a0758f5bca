"""Terms of languages the extractor has no grammar for: word sequences that a text repeats."""

from __future__ import annotations

import re
from collections import Counter

from graphrag_pipeline.extraction.rules.entity_types import CONCEPT
from graphrag_pipeline.extraction.rules.names import Mention
from graphrag_pipeline.extraction.rules.tokens import Tokens

_RUN = re.compile(r"n+")
_LONGEST = 4
_SINGLE_REPEATS = 3
_SINGLE_LETTERS = 4
_PHRASE_REPEATS = 2


def find_repeated_terms(tokens: Tokens, max_words: int) -> list[Mention]:
    """Return content words (three times or more) and sequences of them (twice or more).

    Of overlapping candidates the longest is kept.
    """
    spans: list[tuple[int, int]] = []
    counts: Counter[tuple[str, ...]] = Counter()
    for match in _RUN.finditer(tokens.classes):
        for first in range(match.start(), match.end()):
            for stop in range(first + 1, min(match.end(), first + min(_LONGEST, max_words)) + 1):
                spans.append((first, stop))
                counts[_key(tokens, first, stop)] += 1
    frequent = [span for span in spans if _often(_key(tokens, *span), counts)]
    covered_positions: set[int] = set()
    mentions: list[Mention] = []
    for first, stop in sorted(frequent, key=lambda span: (span[0] - span[1], span[0])):
        if covered_positions.isdisjoint(range(first, stop)):
            covered_positions.update(range(first, stop))
            mentions.append(_mention(tokens, first, stop))
    return mentions


def _key(tokens: Tokens, first: int, stop: int) -> tuple[str, ...]:
    return tuple(word.casefold() for word in tokens.texts[first:stop])


def _often(key: tuple[str, ...], counts: Counter[tuple[str, ...]]) -> bool:
    if len(key) > 1:
        return counts[key] >= _PHRASE_REPEATS
    return counts[key] >= _SINGLE_REPEATS and len("".join(key)) >= _SINGLE_LETTERS


def _mention(tokens: Tokens, first: int, stop: int) -> Mention:
    return Mention(tokens.starts[first], tokens.ends[stop - 1], CONCEPT, tokens.sentence_of[first])
