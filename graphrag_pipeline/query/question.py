"""A question, and what is read from it by rule, each once: its terms, and what it asks for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import UNSPACED, asked_language, fold, terms
from graphrag_pipeline.core.word_lists import word_lists

T = TypeVar("T")

_WORDS = word_lists("questions.txt")


def words_pattern(section: str) -> str:
    """Return a pattern of the words and phrases of a section of the lists for questions."""
    words = sorted(_WORDS[section], key=len, reverse=True)
    spaced = [re.escape(fold(w)).replace("_", r"\s+") for w in words if w[0] < "\u2e80"]
    unspaced = [re.escape(word).replace("_", r"\s*") for word in words if word[0] >= "\u2e80"]
    return "|".join([*([rf"\b(?:{'|'.join(spaced)})\b"] if spaced else ()), *unspaced])


def may_say(text: AnalysedQuestion, *sections: str) -> bool:
    """Whether a question may match the pattern of a section: its compilation takes longer."""
    words = (word for section in sections for word in _WORDS[section])
    return any(fold(word.partition("_")[0]) in text.folded for word in words)


def ends_pattern(section: str) -> str:
    """Return a pattern of the ends of words in a section of the lists for questions."""
    return "|".join(re.escape(fold(end)) for end in sorted(_WORDS[section]))


_AM = pattern_of(r"\b[Ii] am\b|(?<!\d )\b[Aa]m [Ii]\b")
_ASKS = {kind: pattern_of(words_pattern(kind)) for kind in ("asks_ja", "asks_ko", "asks_zh")}
_ASKED = {kind: pattern_of(words_pattern(kind)) for kind in ("time", "number", "person", "place")}
_WHAT = pattern_of(words_pattern("what"))
_WHAT_AFTER = pattern_of(rf"(?:{words_pattern('what_after')})$")
_WHAT_END = pattern_of(rf"\s+(?:{words_pattern('what_end')})$")
_WHAT_DOES = pattern_of(words_pattern("what_does"))
_ASKS_DOES = pattern_of(rf"{words_pattern('what_does')}|{words_pattern('asks_does')}")
_WHAT_HEAD = pattern_of(rf"(?:{words_pattern('what_head')})\s+")
_COMPARED = pattern_of(words_pattern("compare"))
NAME_OF_CODE = pattern_of(r"[^\W_]_+[^\W_]|[a-z\d][A-Z]|(?<!\w)_+[^\W_]|\w\(\)")
"""What tells a word that is written as names are in code: may_go, MayGo, _go, go()."""
_AS_WRITTEN = pattern_of(rf"\d|(?<!\S)[\"'`]*(?:[a-z]|-)?-[^\W\d_]|{NAME_OF_CODE.pattern}")
_ANY_WORD, _SCRIPT = pattern_of(r"\w"), pattern_of("([\u3041-\u30fa])|([\uac00-\ud7a3])")
_SIGNS_AFTER = pattern_of(rf"(?<=[\x21-\x7e])[{UNSPACED}]+\W*$")
_MOST_FIGURES = 50
_AROUND = "?.,;:!()\"'`"


class AnalysedQuestion(str):
    """A question that is its text, with what is read from it: each when it is first asked for.

    :class:`~graphrag_pipeline.query.Ask` holds one, so that methods and operators, which take any
    text, share what one of them has read. Terms are those of the language in which texts are
    compared now (``Release.asked_in``).
    """

    @classmethod
    def of(cls, text: str) -> AnalysedQuestion:
        """Return a text as a question: itself, where it is one."""
        return text if isinstance(text, cls) else cls(text)

    @property
    def terms(self) -> tuple[str, ...]:
        """Its search terms in their order, each as often as it stands there."""
        return self.read(_terms_of)

    @property
    def distinct_terms(self) -> list[str]:
        """Its search terms in the order in which they first stand there, each once."""
        return list(dict.fromkeys(self.terms))

    @cached_property
    def folded(self) -> str:
        """Its text without case and marks."""
        return fold(self)

    @cached_property
    def asks_for(self) -> str:
        """The kind of thing it asks for: time, number, person, place, or nothing of these.

        The word that stands first decides, the longer one where two begin at one place.
        """
        matches = {kind: pattern.search(self.folded) for kind, pattern in _ASKED.items()}
        places = {kind: (m.start(), -m.end()) for kind, m in matches.items() if m}
        return min(places, key=lambda kind: places[kind], default="")

    @cached_property
    def compares(self) -> bool:
        """Whether it asks for two or more things beside each other."""
        return _COMPARED.search(self.folded) is not None

    @cached_property
    def subject(self) -> str:
        """What it asks the nature of: "ada king" in "Who is Ada King?"; else nothing.

        Who asks what somebody does asks for that, and who asks what they sell does not.
        """
        text = self.folded.strip(" ?？¿。")
        if after := _WHAT_AFTER.search(text):
            return text[: after.start()].strip()
        asks = _WHAT.match(text)
        subject = text[asks.end() :].strip() if asks else ""
        if asks and _WHAT_DOES.fullmatch(asks[0]) and not _WHAT_END.search(subject):
            return ""
        head = _WHAT_HEAD.match(subject)
        return _WHAT_END.sub("", subject[head.end() if head else 0 :]).strip()

    @property
    def asks_what(self) -> bool:
        """Whether it asks what something is, does or has."""
        return bool(self.subject) or _WHAT.match(self.folded) is not None

    @property
    def asks_does(self) -> bool:
        """Whether it asks what something does."""
        return _ASKS_DOES.match(self.folded.lstrip(" ¿")) is not None

    @cached_property
    def without_quantity(self) -> AnalysedQuestion:
        """Itself without the words that ask for a number, such as "how many"."""
        if self.asks_for != "number":
            return self
        return self.without(_ASKED["number"])

    @cached_property
    def without_time_and_number(self) -> AnalysedQuestion:
        """Itself without the words that ask for a time or a number, such as "how long"."""
        return self.without(_ASKED["time"]).without(_ASKED["number"])

    def without(self, pattern: re.Pattern[str]) -> AnalysedQuestion:
        """Return itself without what a pattern finds in its folded text; the rest as it is written.

        The same question, read once, where nothing is found. Stems of most languages are told with
        their marks: chaudière, and not chaudiere.
        """
        signs = unicodedata.normalize("NFC", self)
        folded = [fold(sign) for sign in signs]
        place_of = [place for place, sign in enumerate(folded) for _ in sign]
        found = pattern.finditer("".join(folded))
        gone = {place_of[n] for match in found for n in range(*match.span())}
        if not gone:
            return self
        kept = (" " if place in gone else sign for place, sign in enumerate(signs))
        return AnalysedQuestion("".join(kept))

    @cached_property
    def figures(self) -> list[str]:
        """Its figures, options and names of code, without case and the marks around them.

        The first of very many.
        """
        words = (fold(bare_word(word)) for word in self.split() if _AS_WRITTEN.search(word))
        return sorted(islice(dict.fromkeys(words), _MOST_FIGURES))

    def read(self, reader: Callable[[str], T]) -> T:
        """Return what a function reads from its text, such as the names in it."""
        key = (asked_language(), reader)
        if key not in self._read:
            self._read[key] = reader(self)
        return self._read[key]

    @property
    def compared(self) -> list[frozenset[str]]:
        """The terms of each thing that it compares: runs of words that begin with a capital.

        Without the first word. Empty where it compares nothing.

        >>> question = AnalysedQuestion("How do Port Rowan and Bergen differ?")
        >>> [sorted(each) for each in question.compared]
        [['port', 'rowan'], ['bergen']]
        """
        runs: list[list[str]] = [[]]
        for word in self.split()[1:] if self.compares else ():
            if word.lstrip("\"'“‘«(")[:1].isupper():
                runs[-1].append(word)
            if not word[0].isupper() or word[-1] in ",;:?!.":
                runs.append([])
        return list(dict.fromkeys(frozenset(terms(" ".join(run))) for run in runs if run))

    @cached_property
    def _read(self) -> dict[tuple[str | None, Callable[[str], Any]], Any]:
        return {}


def bare_word(word: str) -> str:
    """Return a word of a question without the marks around it, and the signs of Asia after it.

    >>> bare_word("`may_go`は？")
    'may_go'
    """
    return _SIGNS_AFTER.sub("", word).strip(_AROUND)


def without_asking(text: str) -> str:
    """Return a question in Chinese, Japanese or Korean without what it asks with, *I am* as *I*.

    The first would be in pairs of signs, the second find *AM* and *a.m.*

    >>> without_asking("What if I am late?")
    'What if I late?'
    >>> without_asking("插槽有什么作用？")
    '插槽 作用？'
    """
    scripts = {match.lastindex for match in _SCRIPT.finditer(text)}
    kind = "asks_ja" if 1 in scripts else "asks_ko" if scripts else "asks_zh"
    bare = _ASKS[kind].sub(" ", _AM.sub("I", text))
    return bare if _ANY_WORD.search(bare) else text


def _terms_of(text: str) -> tuple[str, ...]:
    return tuple(terms(without_asking(text)))
