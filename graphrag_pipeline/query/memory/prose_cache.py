"""Prose of sentences, cached from one question to the next: many meet the same ones."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import islice

from graphrag_pipeline.core.prose import Prose, grades

MOST_REMEMBERED = 1 << 14

_of_late: dict[str, tuple[Prose, bool]] = {}
_lock = threading.Lock()


def read_sentences(texts: Sequence[str]) -> list[tuple[Prose, bool]]:
    """Return (grade, leans) of texts as ``read_prose`` has them; those of late are remembered."""
    known = {text: reading for text in texts if (reading := _of_late.get(text))}
    unread = list({text: None for text in texts if text not in known})
    if unread:
        newly_read = dict(zip(unread, grades(unread), strict=True))
        known |= newly_read
        with _lock:
            _of_late.update(newly_read)
            for text in list(islice(_of_late, max(0, len(_of_late) - MOST_REMEMBERED))):
                del _of_late[text]
    return [known[text] for text in texts]
