"""Theorems, definitions and proofs of LaTeX with the heads that readers see: Lemma 2.3 (Tides)."""

from __future__ import annotations

import re
from collections import Counter

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_pairs

_DECLARED = pattern_of(
    r"\\newtheorem(\*?)\s*\{(\w+\*?)\}\s*(?:\[(\w+)\])?\s*\{([^{}\n]{1,60})\}\s*(?:\[(\w+)\])?"
)
_WELL_KNOWN = word_pairs("signs.txt", "theorem")
"""Environments that classes and macros in other files declare; without a head, their own names."""
_PLACES = pattern_of(
    r"\\(chapter|section|subsection)(\*?)|\\begin\{(\w+\*?)\}[ \t]*(?:\[([^\[\]\n]{1,200})\])?"
    r"((?:\s*\\label\{[^{}\n]*\})*)[ \t]*\n?[ \t]*"
)
_LEVELS = ("chapter", "section", "subsection")


def with_theorems(source: str) -> str:
    """Return a source in which each theorem begins with its head, numbered if the file says how."""
    declared = {match[2]: match for match in _DECLARED.finditer(source)}
    counts: Counter[str] = Counter()

    def number_of(name: str) -> str:
        """Return the next number of what is declared, within the divisions that it counts by."""
        match = declared.get(name)
        if match is None or match[1]:
            return ""
        counter = match[3] if match[3] in declared else name
        counts[counter] += 1
        within = declared[counter][5]
        levels = _LEVELS[: _LEVELS.index(within) + 1] if within in _LEVELS else ()
        parts = [*(counts[level] for level in levels if counts[level]), counts[counter]]
        return " " + ".".join(map(str, parts))

    def said(match: re.Match[str]) -> str:
        if level := match[1]:
            if not match[2]:
                counts[level] += 1
                inner = _LEVELS[_LEVELS.index(level) :]
                for other in (*inner[1:], *(n for n, d in declared.items() if d[5] in inner)):
                    counts[other] = 0
            return match[0]
        name = match[3]
        head = declared[name][4] if name in declared else _WELL_KNOWN.get(name.rstrip("*"))
        if head is None:
            return match[0]
        title = f" ({match[4]})" if match[4] else ""
        head = head or name.rstrip("*").capitalize()
        return f"\\begin{{{name}}}{{}}{head}{number_of(name)}{title}. {match[5]}"

    return _PLACES.sub(said, source)
