"""Words that a line of print breaks, as recognised texts have them: har-/bour is harbour."""

from __future__ import annotations

import re

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_lists

_WORD = pattern_of(r"[^\W\d_]+")
_BROKEN = pattern_of(
    r"(?<![^\W\d_])(?P<begun>[^\W\d_]{2,40})-[ \t]*\n[ \t]*(?P<rest>[^\W\d_]{2,40})(?![\w-])"
    r"(?P<after>[^\s\w]{0,4})[ \t]*"
)
# Programs that take the text out of a page often leave a blank for the end of a line: har- bour.
_BLANK = pattern_of(r"-(?<=[^\W\d_]{2}-) (?=[^\W\d_]{2})")
_BROKEN_BY_BLANK = pattern_of(
    r"(?<!\w)(?P<begun>[^\W\d_]{2,40})- (?P<rest>[^\W\d_]{2,40})(?!\w)(?P<after>)"
)
_SOFT = pattern_of("\u00ad[ \t]*\r?\n[ \t]*")
_LEAST = 3
"""So many lines end within a word where a text is set in lines: of fewer, some end in a dash."""
_LEAST_SHARE = 4
_LONG = 3
_CONJUNCTIONS = word_lists("documents.txt")["conjunction"]
"""What follows a word that is not broken but goes on later: time- and token-consuming."""


def with_whole_words(text: str) -> str:
    """Return a text in which words that go on in the next line stand on the first of the two.

    One that the text has with its hyphen elsewhere keeps it (well-known), and so does one whose
    second half is a name (Alsace-Lorraine) or whose first is in capitals (LLM-based), and one whose
    halves the text has, but not the whole.
    """
    if "\u00ad" in text:
        text = _SOFT.sub("", text)
    if "-\n" in text and len(_BROKEN.findall(text)) >= _LEAST:
        text = _joined(text, _BROKEN, "\n", _words(text, _BROKEN))
    if "- " in text and len(_BLANK.findall(text)) >= _LEAST:
        words = _words(text, _BROKEN_BY_BLANK)
        wholes = {
            f"{match['begun']}{match['rest']}".lower()
            for match in _BROKEN_BY_BLANK.finditer(text)
            if match["rest"].islower()
        }
        if len(wholes & words) >= max(_LEAST, len(wholes) / _LEAST_SHARE):
            text = _joined(text, _BROKEN_BY_BLANK, "", words)
    return text


def _words(text: str, broken: re.Pattern[str]) -> set[str]:
    """Return the words of a text in lower case, but for those that are broken."""
    return set(_WORD.findall(broken.sub(" ", text).lower()))


def _joined(text: str, broken: re.Pattern[str], end: str, words: set[str]) -> str:
    compounds = frozenset(word.lower() for word in re.findall(r"[^\W\d_]+-[^\W\d_]+", text))

    def whole(match: re.Match[str]) -> str:
        begun, rest = match["begun"], match["rest"]
        is_known = f"{begun}{rest}".lower() in words
        is_within = "-" in (
            text[match.start() - 1 : match.start()],
            text[match.end() : match.end() + 1],
        )
        if rest in _CONJUNCTIONS and not (is_known or is_within):
            return match.group()
        is_long = min(len(begun), len(rest)) > _LONG
        are_words = is_long and begun.lower() in words and rest in words
        is_compound = (
            is_within
            or begun.isupper()
            or not rest.islower()
            or f"{begun}-{rest}".lower() in compounds
            or (not is_known and are_words)
        )
        return f"{begun}{'-' * is_compound}{rest}{match['after']}{end}"

    return broken.sub(whole, text)
