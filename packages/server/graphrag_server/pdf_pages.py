"""Pages of a PDF on which a passage may stand; the PDF is read in a process of its own.

A PDF is somebody else's: whatever it does to who reads it ends that process alone.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

_MOST_CHARACTERS = 20_000_000
_N_WORDS = 3
_WORD = re.compile(r"\w+")


def page_of(pages: Sequence[str], passage: str, place: float) -> int | None:
    """Return the number, from 1, of the page that has most of a passage; None where none has any.

    Of several that have as much, the nearest to ``place``, where the passage begins in the whole
    text (0 to 1).
    """
    wanted = _runs(passage)
    counts = [len(wanted & _runs(page)) for page in pages]
    if not any(counts):
        return None
    best = [n for n, count in enumerate(counts) if count == max(counts)]
    return 1 + min(best, key=lambda n: abs(n - place * len(pages)))


def pages_of(data: bytes, *, megabytes: float, seconds: float) -> list[str]:
    """Return the text of each page, none where it cannot be read within memory and time."""
    command = [sys.executable, "-P", "-m", __name__, str(megabytes)]
    try:
        read = subprocess.run(command, input=data, capture_output=True, timeout=seconds, check=True)
        return list(json.loads(read.stdout))
    except (OSError, subprocess.SubprocessError, ValueError):
        return []


def _runs(text: str) -> set[tuple[str, ...]]:
    """Return the words of a text, three after three; fewer where it has no more."""
    words = _WORD.findall(text.casefold())
    n = min(_N_WORDS, max(len(words), 1))
    return {tuple(words[place : place + n]) for place in range(len(words) - n + 1)}


def _main() -> None:
    _limit_memory(float(sys.argv[1]))
    from pypdfium2 import PdfDocument

    texts: list[str] = []
    room = _MOST_CHARACTERS
    for page in PdfDocument(sys.stdin.buffer.read()):
        texts.append(page.get_textpage().get_text_range()[: max(room, 0)])
        room -= len(texts[-1])
    json.dump(texts, sys.stdout)


def _limit_memory(megabytes: float) -> None:
    try:
        resource: Any = importlib.import_module("resource")
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_DATA, (int(megabytes * 1e6),) * 2)


if __name__ == "__main__":
    _main()
