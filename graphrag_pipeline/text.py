"""Text as every stage sees it: titles made comparable, and text split into search terms."""

from __future__ import annotations

import re
import unicodedata

_SPACE = re.compile(r"\s+")
_EDGE = " \t\n\"'“”‘’«»„`´()[]{}<>.,;:!?…·*_~|-–—"


def normalize_title(title: str) -> str:
    """Return the key by which mentions of one entity are merged.

    Unicode NFKC, case folded, white space collapsed, quotes and stray punctuation trimmed.

    >>> normalize_title('  “Marie  CURIE” ')
    'marie curie'
    """
    folded = unicodedata.normalize("NFKC", title).casefold()
    return _SPACE.sub(" ", folded).strip(_EDGE) or _SPACE.sub(" ", folded).strip()
