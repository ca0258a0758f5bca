"""The word lists that the package ships, in ``data``."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parents[1] / "data"
_SECTION = re.compile(r"^\[(\w+)\]$", re.MULTILINE)
_COMMENT = re.compile(r"^#.*$", re.MULTILINE)


@cache
def word_lists(name: str) -> dict[str, frozenset[str]]:
    """Read a shipped list file into its sections, words as written."""
    text = (_FOLDER / name).read_text(encoding="utf-8")
    parts = _SECTION.split(_COMMENT.sub("", text))
    return {
        section: frozenset(words.split())
        for section, words in zip(parts[1::2], parts[2::2], strict=True)
    }
