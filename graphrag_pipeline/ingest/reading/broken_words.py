"""Words that a line of print breaks, as recognised texts have them: har-/bour is harbour."""

from __future__ import annotations

import re

_BROKEN = re.compile(
    r"(?<![^\W\d_])(?P<begun>[^\W\d_]{2,40})-[ \t]*\n[ \t]*(?P<rest>[^\W\d_]{2,40})(?![\w-])"
    r"(?P<after>[^\s\w]{0,4})[ \t]*"
)
_SOFT = re.compile("\u00ad[ \t]*\r?\n[ \t]*")
_LEAST = 3
"""So many lines end within a word where a text is set in lines: of fewer, some end in a dash."""


def with_whole_words(text: str) -> str:
    """Return a text in which words that go on in the next line stand on the first of the two.

    One that the text has with its hyphen elsewhere keeps it (well-known), and so does one whose
    second half is a name (Alsace-Lorraine).
    """
    if "\u00ad" in text:
        text = _SOFT.sub("", text)
    if "-\n" not in text or len(_BROKEN.findall(text)) < _LEAST:
        return text
    compounds = frozenset(word.lower() for word in re.findall(r"[^\W\d_]+-[^\W\d_]+", text))

    def whole(match: re.Match[str]) -> str:
        begun, rest = match["begun"], match["rest"]
        is_compound = not rest.islower() or f"{begun}-{rest}".lower() in compounds
        return f"{begun}{'-' * is_compound}{rest}{match['after']}\n"

    return _BROKEN.sub(whole, text)
