"""Words of a question that no document says: read as the one that is spelt nearly so, if any.

The words of the documents are known by their hashes alone. So what is one or two mistakes off is
written down and looked up: a letter too many, too few, another, or two in the wrong order. A
question whose words are all known costs one look.

What a tokenizer knows as one token, or a list of names, is spelt as somebody meant it, however near
another is: Jonson is not Johnson, and a county no country. A name is read as a name alone.
"""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import (
    STOP_WORDS,
    UNSPACED,
    asked_in,
    asked_language,
    fold,
    terms,
    terms_batch,
)
from graphrag_pipeline.core.tokens import is_token
from graphrag_pipeline.core.word_lists import word_lists

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_WORD = pattern_of(
    rf"(?<![\w@/\\.'’-])[^\W\d_{UNSPACED}]{{4,64}}(?![\w{UNSPACED}@/\\-]|[.'’](?!s\b)\w)"
)
_LEAST_OF_NAME, _LEAST_OF_TWO = 6, 8  # letters
_ENDING = 3
_BLOCK = 128
# How much likelier than another letter each mistake is, and than any other word the one chosen.
_SWAPPED, _DOUBLED, _TOO_MANY, _TOO_FEW, _OTHER = 8.0, 6.0, 3.0, 3.0, 1.0
_SURELY = 2.0
_MOST_READ = 50
_AS_NAME = """
SELECT 1 FROM chunks SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS id) USING (id)
WHERE regexp_matches(text, $name) LIMIT 1
"""


class _Mistake(NamedTuple):
    """A mistake in a word, how likely it is beside others, and where it is."""

    likely: float
    place: int


def as_spelt(index: Release, question: str) -> tuple[str, tuple[str, ...]]:
    """Return a question with words that documents say for those that none says, and lines on it.

    One also says that no document has the only name of a question.
    """
    # A question that needs no passages is answered without them.
    with contextlib.suppress(StorageError), index.compared_in(question):
        return _as_spelt(index, question)
    return question, ()


def _as_spelt(index: Release, question: str) -> tuple[str, tuple[str, ...]]:
    question = unicodedata.normalize("NFC", question)
    unknown = _unknown(index, question)
    if not unknown or not index.languages().get(asked_language() or ""):
        return question, ()
    pieces, lines, last = [], [], 0
    for start, word in unknown:
        instead = _instead(index, question, word)
        if instead:
            lines.append(f"no document says '{word}': read as '{instead}'")
        elif start and word[0].isupper() and _names_one(question):
            lines.append(f"no document says '{word}'")
        pieces += [question[last:start], instead or word]
        last = start + len(word)
    return "".join((*pieces, question[last:])), tuple(dict.fromkeys(lines))


def _names_one(question: str) -> bool:
    """Whether one run of words in a question, but for its first, begins with capitals."""
    begin = [word[0].isupper() for word in question.split()[1:]]
    return sum(now and not before for before, now in pairwise([False, *begin])) == 1


def _unknown(index: Release, question: str) -> list[tuple[int, str]]:
    """Return the words of a question, and their places, that no text and no entity has."""
    words = [
        (match.start(), match[0])
        for match in _WORD.finditer(question)
        if match[0][1:].islower() and terms(match[0])
    ]
    counts = _counts(index, [word.lower() for _, word in words])
    return [each for each, count in zip(words, counts, strict=True) if not count]


def _counts(index: Release, words: Sequence[str]) -> list[int]:
    """Return in how many passages each word is said, in the language that says it most."""
    best = [0] * len(words)
    for code in index.languages() if words else ():
        with asked_in(code):
            lines = terms_batch(words)
        counts, _ = index.term_counts("chunks", lines)
        best = [max(n, counts[line]) for n, line in zip(best, lines, strict=True)]
    return best


def _instead(index: Release, question: str, word: str) -> str:
    """Return the word that one which is misspelt was to be, as it is written; else nothing."""
    is_name, plain = word[0].isupper(), word.lower()
    if _is_spelt_so(word):
        return ""
    has_stems = asked_language() or not STOP_WORDS.isdisjoint(fold(question).split())
    of_name = _TOO_FEW if len(word) >= _LEAST_OF_NAME else _DOUBLED
    least = of_name if is_name else _OTHER
    near = {
        each: mistake
        for each, mistake in _one_off(plain).items()
        if (mistake.place or mistake.likely == _SWAPPED)
        and mistake.likely >= least
        and (has_stems or mistake.likely > _TOO_FEW or mistake.place < len(word) - _ENDING)
    }
    counts = _counts(index, list(near))
    near = {each: m for (each, m), count in zip(near.items(), counts, strict=True) if count}
    chosen = _likeliest(near, filter(None, counts))
    if not near and len(plain) >= _LEAST_OF_TWO and not is_name:
        chosen = _two_off(index, plain)
    if not chosen or not is_name:
        return chosen
    name = chosen[0].upper() + chosen[1:]
    return name if _is_name(index, name) else ""


def _is_spelt_so(word: str) -> bool:
    return is_token(f" {word}") or is_token(f" {word.lower()}") or word in _names()


@cache
def _names() -> frozenset[str]:
    """Return names of people and places."""
    lists = (word_lists(name).values() for name in ("nlp_people.txt", "nlp_places.txt"))
    return frozenset[str]().union(*(words for each in lists for words in each))


def _likeliest(near: Mapping[str, _Mistake], counts: Iterable[int]) -> str:
    """Return the word that stands out by how often it is said and how likely the mistake is."""
    worth: dict[str, tuple[float, str]] = {}
    for (word, (likely, _)), count in zip(near.items(), counts, strict=True):
        key = " ".join(terms(word))
        worth[key] = max(worth.get(key, (0.0, "")), (likely * count**0.5, word))
    first, second = [*sorted(worth.values(), reverse=True), (0.0, ""), (0.0, "")][:2]
    return first[1] if first[0] > _SURELY * second[0] else ""


def _two_off(index: Release, word: str) -> str:
    """Return the word that is two mistakes off, one of which is a letter too many or in its place.

    Terms are looked up as they are: to find those of all that is two off would take too long.
    """
    own = terms(word)
    if len(own) != 1 or not word.startswith(own[0]):
        return ""
    near = {
        after: _Mistake(then.likely * first.likely, max(first.place, then.place))
        for before, first in _one_off(own[0]).items()
        if len(before) <= len(own[0]) and first.likely > _OTHER
        for after, then in _one_off(before).items()
        if first.place > 0 and 0 < then.place < len(own[0]) - _ENDING
    }
    counts, _ = index.term_counts("chunks", list(near))
    near = {each: mistake for each, mistake in near.items() if counts[each]}
    chosen = _likeliest(near, [counts[each] for each in near])
    return chosen + word[len(own[0]) :] if chosen else ""


def _one_off(word: str) -> dict[str, _Mistake]:
    """Return what a word may have been before one mistake, each with the likeliest that made it."""
    cuts = [(n, word[:n], word[n:]) for n in range(len(word) + 1)]
    letters = "".join(map(_letters, sorted({ord(sign) // _BLOCK for sign in word})))
    near: dict[str, _Mistake] = {word: _Mistake(0.0, 0)}
    for n, a, b in cuts:
        near.setdefault(a + b[1:2] + b[:1] + b[2:], _Mistake(_SWAPPED, n))
        if a[-1:] == b[:1]:
            near.setdefault(a + b[1:], _Mistake(_DOUBLED, n))
        near.setdefault(a + b[:1] + b, _Mistake(_DOUBLED, n))
    for n, a, b in cuts:
        near.setdefault(a + b[1:], _Mistake(_TOO_MANY, n))
        few, other = _Mistake(_TOO_FEW, n), _Mistake(_OTHER, n)
        for letter in letters:
            near.setdefault(a + letter + b, few)
            near.setdefault(a + letter + b[1:], other)
    del near[word]
    return near


@cache
def _letters(block: int) -> str:
    """Return the letters of a block of signs that search terms may have."""
    signs = map(chr, range(block * _BLOCK, (block + 1) * _BLOCK))
    return "".join(
        sign
        for sign in signs
        if (sign.isalpha() or unicodedata.category(sign)[0] == "M") and fold(sign) == sign
    )


def _is_name(index: Release, name: str) -> bool:
    """Whether a text that says a word writes it as a name."""
    hits = index.search_text("chunks", name, _MOST_READ)
    pattern = rf"(?:^|[^\pL]){re.escape(name)}"
    return bool(index.rows(_AS_NAME, ids=hits["id"].to_pylist(), name=pattern))
