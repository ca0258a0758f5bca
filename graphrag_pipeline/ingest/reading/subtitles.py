"""Subtitles: what is said, without numbers, time codes and what rolling captions say again."""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterator
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.cleaning import clean_text
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.model import (
    SMALL,
    FileFormat,
    ReadingOptions,
    ReadResult,
    Unreadable,
    whole_document,
)

_TIME = r"(?:\d{1,4}:)?\d{1,2}:\d{1,2}[.,]\d{1,3}"
_TIMES = pattern_of(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}")
_VOICE = pattern_of(r"<v(?:\.[^\s<>]{1,100})?[ \t]+([^<>\n]{1,200})>")
_TAG = pattern_of(r"</?[A-Za-z0-9][^<>\n]{0,200}>|\{\\[^{}\n]{0,200}\}")
_SENTENCE_END = pattern_of(r"[.!?…。！？][\"'”’»)\]]*$")
_MOST_REPEATED = 4


def read_subtitles(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read SubRip or WebVTT as running text; a line ends with a sentence or where another speaks.

    A voice, as in ``<v Ada>``, goes before what it says. Notes, styles and regions are left out.
    """
    text = clean_text(decode(data, options.encoding))
    cues = list(_cues(text.split("\n")))
    if not cues:
        raise Unreadable(
            "the file has no subtitles: no line of it has times, as 00:01.0 --> 00:02.0"
        )
    return whole_document(path, "".join(_joined(_without_repeated(cues))))


def _cues(lines: list[str]) -> Iterator[list[str]]:
    """Yield the lines of each cue. What stands directly above times is the cue's name."""
    times = [number for number, line in enumerate(lines) if _TIMES.match(line)]
    for start, end in itertools.pairwise([*times, len(lines)] if times else []):
        below = lines[start + 1 : end - 1 if end < len(lines) else end]
        blank = next((n for n, line in enumerate(below) if not line.strip()), len(below))
        if spoken := [words for line in below[:blank] if (words := _words(line))]:
            yield spoken


def _words(line: str) -> str:
    voiced = _VOICE.sub(lambda voice: f"{voice[1].strip()}: ", line)
    return " ".join(html.unescape(_TAG.sub("", voiced)).split())


def _without_repeated(cues: list[list[str]]) -> Iterator[str]:
    """Yield the lines that are new: a rolling caption begins with the last lines of the one before.

    A line that only goes on with the line before it is said in its place.
    """
    shown: list[str] = []
    for cue in cues:
        most = min(len(cue), len(shown), _MOST_REPEATED)
        repeated = next((n for n in range(most, 0, -1) if shown[-n:] == cue[:n]), 0)
        fresh = cue[repeated:]
        if shown and fresh and not repeated and fresh[0].startswith(f"{shown[-1]} "):
            shown.pop()
        elif shown and shown[-1]:
            yield from shown[:-_MOST_REPEATED]
            shown = shown[-_MOST_REPEATED:]
        shown += fresh
    yield from shown


def _joined(lines: Iterator[str]) -> Iterator[str]:
    speaker, is_first, ends = "", True, True
    for line in lines:
        name, colon, rest = line.partition(": ")
        is_voice = bool(colon) and len(name) < 80
        if is_voice and name == speaker:
            line = rest
        is_new = (is_voice and name != speaker) or line.startswith("- ")
        speaker = name if is_voice else speaker
        yield line if is_first else f"\n{line}" if is_new or ends else f" {line}"
        is_first, ends = False, bool(_SENTENCE_END.search(line))


SUBTITLES = FileFormat(read_subtitles, versions.of("subtitles"), SMALL)
