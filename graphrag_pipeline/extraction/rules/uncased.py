"""Names in scripts without capitals: Korean, Arabic, Hebrew, Hindi and Thai; bodies in Cyrillic.

A name is told by the word before it (a title, a kind of body), by its own end, or by a list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.extraction.rules.hindi import hindi_names
from graphrag_pipeline.extraction.rules.korean import korean_names
from graphrag_pipeline.extraction.rules.russian import russian_bodies
from graphrag_pipeline.extraction.rules.scripts import Place
from graphrag_pipeline.extraction.rules.semitic import arabic_names, hebrew_names
from graphrag_pipeline.extraction.rules.thai import thai_names

_SCRIPTS: Mapping[str, Callable[[str], Iterator[Place]]] = {
    "\uac00-\ud7a3": korean_names,
    "\u0620-\u064a": arabic_names,
    "\u05d0-\u05ea": hebrew_names,
    "\u0904-\u0939": hindi_names,
    "\u0e01-\u0e2e": thai_names,
    "\u0430-\u045f": russian_bodies,
}
_ANY = pattern_of(f"[{''.join(_SCRIPTS)}]")


def find_uncased(text: str) -> list[Place]:
    """Return (start, end, type) of names, without overlaps, in order; of two the earlier found."""
    if text.isascii() or not _ANY.search(text):
        return []
    names: list[Place] = []
    taken = bytearray(len(text))
    for signs, names_in in _SCRIPTS.items():
        if re.search(f"[{signs}]", text):
            for start, end, kind in names_in(text):
                if not any(taken[start:end]):
                    taken[start:end] = b"\x01" * (end - start)
                    names.append((start, end, kind))
    return sorted(names)


def is_cyrillic(sign: str) -> bool:
    """Say whether a letter is one of those that Russian and Ukrainian have."""
    return "\u0400" <= sign <= "\u04ff"
