"""English noun phrases in lower case, as patterns over word classes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from graphrag_pipeline.extraction.rules.entity_types import CONCEPT
from graphrag_pipeline.extraction.rules.names import Mention
from graphrag_pipeline.extraction.rules.tokens import Tokens

_VERB_HERE = re.compile(
    r"(?<=[qtxrNAHIm|])b|(?<=[qNAHI])B|(?<![djkoSunbp])[bB](?=[dqN])|(?<=n)B(?=[dqrtnj])"
)
_LEAD = r"(?:(?<=[dSopku,])e|(?<=[dSoku])g)"
_PHRASE = re.compile(
    rf"{_LEAD}?[jnb]{{1,5}}(?:[nmBby]|(?<=[nj])g)(?![nbmBzyNA])|{_LEAD}[nmbBy](?![nbmBzygNA])"
)
_SINGLE = re.compile(
    r"(?:(?<=[dS])|(?<=[dS]k))[nmbB](?![nbmBzygNAj])|(?<=[opatc,])m(?![nbmBzygNAj])"
)
_OWNED = re.compile(
    r"[NAI]{1,2}S[jn]?[nmbBy](?![nbmBzygNAj])|(?<![NAIF])N{1,2}[nmb](?![nbmBzygNAj])"
)
_MIN_OCCURRENCES = 2
_MIN_LETTERS = 3


def find_noun_phrases(tokens: Tokens, max_words: int) -> list[Mention]:
    """Return phrases of two or more words, and single nouns that the text keeps coming back to."""
    classes = _VERB_HERE.sub("v", tokens.classes)
    spans = [match.span() for match in _PHRASE.finditer(classes)]
    spans += [match.span() for match in _OWNED.finditer(classes)]
    spans += _repeated(tokens, [match.span() for match in _SINGLE.finditer(classes)])
    return [
        Mention(tokens.starts[first], tokens.ends[stop - 1], CONCEPT, tokens.sentence_of[first])
        for first, stop in spans
        if stop - first <= max_words
    ]


def _repeated(tokens: Tokens, spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    counts = Counter(map(_stem, tokens.texts))
    for first, stop in spans:
        word = tokens.texts[first]
        often = counts[_stem(word)] >= _MIN_OCCURRENCES and len(word) >= _MIN_LETTERS
        if often or "-" in word:
            yield first, stop


def _stem(word: str) -> str:
    lower = word.lower()
    return lower[:-1] if lower.endswith("s") else lower
