"""English noun phrases in lower case, as patterns over word classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.extraction.rules.entity_types import CONCEPT
from graphrag_pipeline.extraction.rules.names import Mention
from graphrag_pipeline.extraction.rules.tokens import Tokens

_VERB_HERE = pattern_of(
    r"[bB](?:(?<=[qtxrNAHIm|]b)|(?<=[qNAHI]B)|(?<![djkoSunbp].)(?=[dqN])|(?<=nB)(?=[dqrtnj]))"
)
_LEAD = r"(?:(?<=[dSopku,])e|(?<=[dSoku])g)"
_PHRASE = pattern_of(
    rf"{_LEAD}?[jnb]{{1,5}}(?:[nmBby]|(?<=[nj])g)(?![nbmBzyNA])|{_LEAD}[nmbBy](?![nbmBzygNA])"
)
_SINGLE = pattern_of(r"[nmbB](?![nbmBzygNAj])(?:(?<=[dS].)|(?<=[dS]k.)|(?<=[opatc,]m))")
_OWNED = pattern_of(
    r"[NAI]{1,2}S[jn]?[nmbBy](?![nbmBzygNAj])|(?<![NAIF])N{1,2}[nmb](?![nbmBzygNAj])"
)
_WEAK_ALONE = pattern_of(r"y(?![nbmBzygNAj])(?:(?<=[dSpa,]y)|(?<=[dS]ky))")
_MIN_OCCURRENCES = 2
_MIN_WEAK_OCCURRENCES = 4
_MIN_LETTERS = 3


def find_noun_phrases(tokens: Tokens, max_words: int) -> list[Mention]:
    """Return phrases of two or more words, and single nouns, that are more than said in passing.

    A noun alone, or with no more than an adjective, must come back within the text.
    """
    classes = _VERB_HERE.sub("v", tokens.classes)
    counts = Counter(map(_stem, tokens.texts))
    kin = word_lists("nlp_english.txt")["kin"]
    spans = [match.span() for match in _OWNED.finditer(classes)]
    spans += _returning_phrases(
        tokens, classes, counts, [match.span() for match in _PHRASE.finditer(classes)]
    )
    singles = [match.span() for match in _SINGLE.finditer(classes)]
    spans += _repeated(tokens, counts, singles, _MIN_OCCURRENCES)
    weak = [
        match.span()
        for match in _WEAK_ALONE.finditer(classes)
        if tokens.texts[match.start()].lower() not in kin
    ]
    spans += _repeated(tokens, counts, weak, _MIN_WEAK_OCCURRENCES)
    return [
        Mention(tokens.starts[first], tokens.ends[stop - 1], CONCEPT, tokens.sentence_of[first])
        for first, stop in spans
        if stop - first <= max_words
    ]


def _returning_phrases(
    tokens: Tokens, classes: str, counts: Counter[str], spans: list[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    stems = [tuple(map(_stem, tokens.texts[first:stop])) for first, stop in spans]
    phrases = Counter(stems)
    for (first, stop), phrase in zip(spans, stems, strict=True):
        compound = classes[stop - 2] in "nmb" and classes[stop - 1] != "g"
        if compound or phrases[phrase] > 1 or counts[phrase[-1]] >= _MIN_OCCURRENCES:
            yield first, stop


def _repeated(
    tokens: Tokens, counts: Counter[str], spans: list[tuple[int, int]], enough: int
) -> Iterator[tuple[int, int]]:
    for first, stop in spans:
        word = tokens.texts[first]
        often = counts[_stem(word)] >= enough and len(word) >= _MIN_LETTERS
        if often or "-" in word:
            yield first, stop


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    lower = word.lower()
    return lower[:-1] if lower.endswith("s") else lower
