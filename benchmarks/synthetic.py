"""Corpora of any size by seed: real sentences, in which people, firms and places go by made names.

Names come from a Pitman-Yor process (Pitman and Yor, 1997), as words of a language do: a document
tells of names known already, more often of those told of often, and sometimes of a new one, so that
distinct names grow as a power of the text (Heaps' law), and a few are everywhere. Documents belong
to themes, which come and grow in the same way; most names of a document come from its theme.

The documents of a smaller corpus are the first of a larger one of the same seed.
"""

from __future__ import annotations

import random
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

NAMES_DISCOUNT = 0.75
"""Distinct names grow with so great a power of the names drawn."""

_NAMES_STRENGTH = 10.0
_THEMES_DISCOUNT = 0.4
_THEMES_STRENGTH = 5.0
_OF_THEME = 0.7
_AGAIN = 0.35
_WORDS = 110
"""Words of a document: about 150 tokens."""
_NAMED = 0.6
"""The share of sentences with a place for a name; of the source's own, it is a quarter."""
_SHORTEST, _LONGEST = 40, 300
_PER_FOLDER = 1000

_SENTENCE = re.compile(r"(?<=[.?!])\s+")
_SPEAKER = re.compile(r"^[A-Z .]+:\s*")
_WHOLE = re.compile(r"[^_]*[.?!]")
_PLACE = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+(?: [A-Z][a-z]+)*(?![\w-])")
_BEGINNINGS = (
    *("Bal", "Bren", "Cal", "Cor", "Dal", "Dor", "El", "Fal", "Fen", "Gar", "Hal", "Har"),
    *("Ist", "Jor", "Kal", "Kel", "Lan", "Lor", "Mal", "Mar", "Nor", "Or", "Pel", "Quen"),
    *("Ral", "Ros", "Sal", "Sel", "Tam", "Tor", "Ul", "Val", "Ver", "Wil", "Yar", "Zel"),
)
_MIDDLES = ("a", "an", "ar", "e", "en", "er", "i", "in", "o", "on", "or", "u")
_JOINTS = tuple("bdfglmnrstvz")
_ENDINGS = ("bert", "da", "dric", "gard", "lin", "mir", "mond", "na", "ric", "sa", "ston", "wen")
_FIRMS = ("Institute", "Company", "University", "Foundation", "Laboratory", "Group")
_KINDS = 3


def sentences_of(archive: Path) -> list[str]:
    """Return the sentences of all texts of a zip archive, without who says them, in order."""
    with zipfile.ZipFile(archive) as texts:
        names = sorted(name for name in texts.namelist() if name.endswith(".txt"))
        whole = [texts.read(name).decode("utf-8", "replace") for name in names]
    lines = (line.strip() for text in whole for line in text.splitlines())
    sentences = (s for line in lines for s in _SENTENCE.split(_SPEAKER.sub("", line)))
    distinct = (s for s in dict.fromkeys(sentences) if _SHORTEST <= len(s) <= _LONGEST)
    return [s for s in distinct if _WHOLE.fullmatch(s)]


def documents(sentences: Sequence[str], seed: int) -> Iterator[str]:
    """Yield documents without end, each the same for the same sentences and seed.

    Raises ValueError where no sentence, or every one, holds a capitalised name.
    """
    chance = random.Random(seed)
    named = [s for s in sentences if _PLACE.search(s)]
    plain = [s for s in sentences if not _PLACE.search(s)]
    if not (named and plain):
        raise ValueError("sentences with and without names are needed")
    themes = _Urn(chance, _THEMES_DISCOUNT, _THEMES_STRENGTH)
    everywhere = _Urn(chance, NAMES_DISCOUNT, _NAMES_STRENGTH)
    of_theme: list[_Urn] = []
    while True:
        theme = themes.draw()
        if theme == len(of_theme):
            of_theme.append(_Urn(chance, NAMES_DISCOUNT, _NAMES_STRENGTH))
        told: list[str] = []

        def name(_: re.Match[str], theme: int = theme, told: list[str] = told) -> str:
            if told and chance.random() < _AGAIN:
                return chance.choice(told)
            if chance.random() < _OF_THEME:
                told.append(_name(theme + 1, of_theme[theme].draw()))
            else:
                told.append(_name(0, everywhere.draw()))
            return told[-1]

        written: list[str] = []
        n_words = 0
        while n_words < _WORDS:
            sentence = chance.choice(named if chance.random() < _NAMED else plain)
            written.append(_PLACE.sub(name, sentence))
            n_words += written[-1].count(" ") + 1
        yield " ".join(written) + "\n"


def write_corpus(
    sentences: Sequence[str], folder: Path, first: int, last: int, seed: int = 1
) -> None:
    """Write the documents ``first`` to ``last``, which is left out, as ``NNN/doc-NNNNNN.txt``."""
    for place, text in zip(range(last), documents(sentences, seed), strict=False):
        if place < first:
            continue
        target = folder / f"{place // _PER_FOLDER:03}" / f"doc-{place:06}.txt"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


class _Urn:
    """A Pitman-Yor process, drawn from by its predictive rule: numbers from 0 as they come new.

    After n draws with K distinct, a new number has the chance (strength + discount K) / (strength +
    n), one of count c the chance (c - discount) / (strength + n). The second is drawn by taking an
    earlier draw and keeping it with the chance (c - discount) / c.
    """

    def __init__(self, chance: random.Random, discount: float, strength: float) -> None:
        self._chance = chance
        self._discount = discount
        self._strength = strength
        self._drawn: list[int] = []
        self._counts: list[int] = []

    def draw(self) -> int:
        n, distinct = len(self._drawn), len(self._counts)
        new = self._strength + self._discount * distinct
        if self._chance.random() * (self._strength + n) < new:
            number = distinct
            self._counts.append(0)
        else:
            number = self._kept()
        self._counts[number] += 1
        self._drawn.append(number)
        return number

    def _kept(self) -> int:
        while True:
            number = self._chance.choice(self._drawn)
            if self._chance.random() * self._counts[number] >= self._discount:
                return number


def _name(theme: int, number: int) -> str:
    """Return the name of a number within a theme: a person's, a firm's or a place's."""
    mixed = random.Random(theme * 1_000_003 + number)
    first, last = _word(mixed), _word(mixed)
    kind = mixed.randrange(_KINDS)
    return (f"{first} {last}", f"{last} {mixed.choice(_FIRMS)}", first)[kind]


def _word(mixed: random.Random) -> str:
    middle = mixed.choice(_MIDDLES) + mixed.choice(_JOINTS) + mixed.choice(_MIDDLES)
    return mixed.choice(_BEGINNINGS) + middle + mixed.choice(_ENDINGS)
