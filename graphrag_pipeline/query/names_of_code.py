"""Names of code that a question asks for, and how a text that writes or defines one reads."""

from __future__ import annotations

import re
from collections.abc import Sequence

from graphrag_pipeline.query.question import NAME_OF_CODE, bare_word

_DEFINING = (
    "def class function func fn fun sub interface struct enum trait type module namespace record "
    "protocol macro procedure table view union const let var val static define"
)


def names_of_code(question: str) -> list[str]:
    """Return the words of a question that are written as names are in code.

    >>> names_of_code("Who calls `may_go` of batches.Limits, and run()?")
    ['may_go', 'run']
    """
    words = [bare_word(w).split(".") for w in question.split() if NAME_OF_CODE.search(w)]
    names = [[part for part in word if NAME_OF_CODE.search(part)] or word[-1:] for word in words]
    return sorted({part for parts in names for part in parts} - {""})


def written(names: Sequence[str]) -> str:
    """Return a pattern of a text that writes one of the names: of DuckDB, too."""
    return rf"(?:^|\W)(?:{_any(names)})(?:\W|$)"


def defined(names: Sequence[str]) -> str:
    """Return a pattern of a line that defines one of the names, in most languages: of DuckDB, too.

    After a word such as *class*, as what something is assigned to, or as a function of C.
    """
    words = _DEFINING.replace(" ", "|")
    return (
        rf"(?m)^[ \t]*(?:(?:[\w@.()\[\]<>*&:-]+[ \t]+)*?(?:{words})[ \t]+"
        rf"(?:\([^)\n]*\)[ \t]*)?(?:{_any(names)})(?:\W|$)|"
        rf"(?:[\w$.]+\.)?(?:{_any(names)})[ \t]*(?::[^=\n]+)?=(?:[^=]|$)|"
        rf"[\w*&<>][\w*&<> \t]*?[ \t*&](?:{_any(names)})\([^;\n]*\{{[ \t]*$)"
    )


def _any(names: Sequence[str]) -> str:
    """Return a pattern of the names: one all in small letters may be written otherwise."""
    return "|".join(
        re.escape(n) if any(map(str.isupper, n)) else f"(?i:{re.escape(n)})" for n in names
    )
