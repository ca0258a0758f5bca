"""Places at which a text may be cut: not inside a word, and never inside one visible sign.

Words of scripts without spaces may be cut between any two signs.
"""

from __future__ import annotations

import unicodedata

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import UNSPACED

_UNSPACED = pattern_of(f"[{UNSPACED}]")
# Within a word they join letters or digits: don't, 3.14, e-mail, name@host, snake_case.
_JOINING = frozenset("'’-‐‑.,_@:/\\&=+#%·")
_JOINER = "\u200d"
_MODIFIERS = ("\U0001f3fb", "\U0001f3ff")
_MOST_FLAGS = 64
_REGIONAL = ("\U0001f1e6", "\U0001f1ff")


def may_cut(text: str, place: int) -> bool:
    """Say whether a text may be cut before the character at a place."""
    return not (0 < place < len(text)) or not (is_in_sign(text, place) or _is_in_word(text, place))


def is_in_sign(text: str, place: int) -> bool:
    """Say whether a place is inside what a reader sees as one sign: é of two, a flag, a family."""
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if after.isascii():
        return before == "\r" and after == "\n"
    if _REGIONAL[0] <= after <= _REGIONAL[1] and _REGIONAL[0] <= before <= _REGIONAL[1]:
        return _flags_before(text, place) % 2 == 1
    joins = _JOINER in (before, after) or _MODIFIERS[0] <= after <= _MODIFIERS[1]
    return joins or unicodedata.category(after)[0] == "M"


def _flags_before(text: str, place: int) -> int:
    first = place
    while first > max(place - _MOST_FLAGS, 0) and _REGIONAL[0] <= text[first - 1] <= _REGIONAL[1]:
        first -= 1
    return place - first


def _is_in_word(text: str, place: int) -> bool:
    before, after = text[place - 1], text[place]
    if before.isspace() or after.isspace():
        return False
    if _is_of_word(before):
        return _is_of_word(after) or (
            after in _JOINING and _is_of_word(text[place + 1 : place + 2])
        )
    return before in _JOINING and _is_of_word(after) and place > 1 and _is_of_word(text[place - 2])


def _is_of_word(sign: str) -> bool:
    is_mark = bool(sign) and not sign.isascii() and unicodedata.category(sign)[0] == "M"
    return (sign.isalnum() or is_mark) and not _UNSPACED.match(sign)
