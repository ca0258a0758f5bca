"""Names of code that a question asks for, and how a text that writes or defines one reads."""

from __future__ import annotations

import re
from collections.abc import Sequence

from graphrag_pipeline.query.question import NAME_OF_CODE, bare_word

_DEFINING = (
    "def class function func fn fun sub interface struct enum trait type module namespace record "
    "protocol macro procedure table view union define"
)
_MOST_NAMES, _LONGEST = 8, 100


def names_of_code(question: str) -> list[str]:
    """Return the words of a question that are written as names are in code.

    Of a name with dots they are the parts that are; the last, where it is called or none is. No
    more than the first few, and none that are longer than names are.

    >>> names_of_code("Who calls `may_go` of batches.Limits, or Ship.sail() of ShipYard.quays?")
    ['ShipYard', 'may_go', 'sail']
    """
    names: dict[str, None] = {}
    for word in filter(NAME_OF_CODE.search, question.split()):
        parts = bare_word(word).split(".")
        of_code = [] if "()" in word else [part for part in parts if NAME_OF_CODE.search(part)]
        names |= dict.fromkeys(of_code or parts[-1:])
    return sorted([name for name in names if 0 < len(name) <= _LONGEST][:_MOST_NAMES])


def written(names: Sequence[str]) -> str:
    """Return a pattern of a text that writes one of the names: of DuckDB, too."""
    return rf"(?:^|\W)(?:{_any(names)})(?:\W|$)"


def defined(names: Sequence[str]) -> str:
    """Return a pattern of a line that defines one of the names, in most languages: of DuckDB, too.

    After a word such as *class*, as what something is assigned to, as a function or method with its
    block, or with a type before it where a line begins. A statement may read so, too.
    """
    words, name = _DEFINING.replace(" ", "|"), f"(?:{_any(names)})"
    before = r"(?:[\w@.()\[\]<>*&:-]+[ \t]+)*?"
    return (
        rf"(?m)^[ \t]*(?:{before}(?:{words})[ \t]+(?:\([^)\n]*\)[ \t]*)?{name}(?:\W|$)|"
        rf"{before}(?:[\w$.]+\.)?{name}(?:[ \t]*:[^=\n]+)?[ \t]+=(?:[^=>]|$)|"
        rf"{before}[*&]*{name}\([^()\n]*\)[^;()=\n]*\{{[ \t]*$)|"
        rf"^(?:[\w<>():]+[ \t*&]+)+?{name}\([^=\n]*[),;{{][ \t]*$"
    )


def _any(names: Sequence[str]) -> str:
    """Return a pattern of the names: one all in small letters may be written otherwise."""
    return "|".join(
        re.escape(n) if any(map(str.isupper, n)) else f"(?i:{re.escape(n)})" for n in names
    )
