"""Terms of languages the extractor has no grammar for: word sequences that a text repeats."""

from __future__ import annotations

from collections import Counter

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.extraction.rules.entity_types import CONCEPT
from graphrag_pipeline.extraction.rules.korean import is_korean, korean_term
from graphrag_pipeline.extraction.rules.names import Mention
from graphrag_pipeline.extraction.rules.nouns import (
    BY_ARTICLE,
    BY_CAPITAL,
    is_month,
    is_verb_after,
    no_noun,
    nouns,
)
from graphrag_pipeline.extraction.rules.tokens import Tokens

_RUN = pattern_of(r"n+")
_LONGEST = 4
_SINGLE_REPEATS = 3
_SINGLE_LETTERS = 4
_KOREAN_LETTERS = 2
_PHRASE_REPEATS = 2


def find_repeated_terms(tokens: Tokens, max_words: int) -> list[Mention]:
    """Return content words (three times or more) and sequences of them (twice or more).

    Of overlapping candidates the longest is kept. Where nouns can be told, a term has one: as its
    first word, in Dutch as its last.
    """
    if tokens.language in BY_CAPITAL:
        return []
    ends = _ends(tokens)
    spans: list[tuple[int, int]] = []
    counts: Counter[tuple[str, ...]] = Counter()
    for match in _RUN.finditer(tokens.classes):
        for first in range(match.start(), match.end()):
            for stop in range(first + 1, min(match.end(), first + min(_LONGEST, max_words)) + 1):
                if key := _key(tokens, first, stop, ends):
                    spans.append((first, stop))
                    counts[key] += 1
    frequent = _of_nouns(tokens, [s for s in spans if _often(_key(tokens, *s, ends), counts)], ends)
    covered_positions: set[int] = set()
    mentions: list[Mention] = []
    for first, stop in sorted(frequent, key=lambda span: (span[0] - span[1], span[0])):
        if covered_positions.isdisjoint(range(first, stop)):
            covered_positions.update(range(first, stop))
            mentions.append(_mention(tokens, first, stop, ends))
    return mentions


def _ends(tokens: Tokens) -> dict[str, str]:
    """Return the term that each Korean word of a text may be, empty for a verb."""
    words = {word for word in tokens.texts if is_korean(word)}
    return {word: korean_term(word) for word in words}


def _of_nouns(
    tokens: Tokens, spans: list[tuple[int, int]], ends: dict[str, str]
) -> list[tuple[int, int]]:
    if tokens.language not in BY_ARTICLE:
        return spans
    of_text = nouns(tokens.texts, tokens.classes, tokens.language)
    keys = [(span, _key(tokens, *span, ends)) for span in spans]
    return [span for span, key in keys if _has_noun(key, tokens.language, of_text)]


def _has_noun(key: tuple[str, ...], language: str, of_text: frozenset[str]) -> bool:
    head = key[-1] if language == "nl" else key[0]
    others = [word for word in key if word != head]
    if len(key) == 1 and is_month(head):
        return False
    if language != "nl" and any(is_verb_after(word, language) for word in others):
        return False
    return head in of_text and not any(no_noun(word, language) for word in others)


def _key(tokens: Tokens, first: int, stop: int, ends: dict[str, str]) -> tuple[str, ...]:
    """Return what a run of words is counted as.

    Nothing where a Korean one ends in a verb, or has a particle within.
    """
    words = tokens.texts[first:stop]
    if words[-1] in ends or words[0] in ends:
        if not ends.get(words[-1], words[-1]) or any(ends.get(w, w) != w for w in words[:-1]):
            return ()
        words = [*words[:-1], ends.get(words[-1], words[-1])]
    return tuple(word.casefold() for word in words)


def _often(key: tuple[str, ...], counts: Counter[tuple[str, ...]]) -> bool:
    if len(key) > 1:
        return counts[key] >= _PHRASE_REPEATS
    word = "".join(key)
    letters = _KOREAN_LETTERS if is_korean(word) else _SINGLE_LETTERS
    return counts[key] >= _SINGLE_REPEATS and len(word) >= letters


def _mention(tokens: Tokens, first: int, stop: int, ends: dict[str, str]) -> Mention:
    last = tokens.texts[stop - 1]
    end = tokens.ends[stop - 1] - len(last) + len(ends.get(last, last))
    return Mention(tokens.starts[first], end, CONCEPT, tokens.sentence_of[first])
