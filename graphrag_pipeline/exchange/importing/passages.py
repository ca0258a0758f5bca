"""Text units made elsewhere, found again in the documents they were cut from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphrag_pipeline.core.patterns import pattern_of

_METADATA_LINE = pattern_of(r"[\w .-]{1,80}: [^\n]*\n")
_MOST_METADATA = 20
_BROKEN = "\ufffd"

Span = tuple[int, int]


def locate(text: str, units: Sequence[str]) -> list[Span] | None:
    """Return where each unit stands in a text, or None if one of them does not.

    Each is looked for from behind the start of the one before. Metadata that GraphRAG put before
    a unit's text (``title: ...`` lines), and the remains of characters cut in two at its ends, do
    not belong to the text and are left out of the span.
    """
    spans: list[Span] = []
    taken_spans: set[Span] = set()
    after = 0
    skipped = 0
    for unit in units:
        match = _find(text, unit, after, skipped, taken_spans)
        if match is None:
            return None
        span, skipped = match
        spans.append(span)
        taken_spans.add(span)
        after = span[0] + 1
    return spans


def _find(
    text: str, unit: str, after: int, skipped: int, taken_spans: set[Span]
) -> tuple[Span, int] | None:
    bodies = dict(enumerate(_bodies(unit)))
    likely = sorted(bodies, key=lambda n: (n != skipped, n))
    for place in (after, 0):
        for lines in likely:
            start = text.find(bodies[lines], place)
            span = (start, start + len(bodies[lines]))
            if start >= 0 and span not in taken_spans:
                return span, lines
    return None


def _bodies(unit: str) -> Iterator[str]:
    """Yield the unit without its first 0, 1, 2... lines, as long as these look like metadata."""
    start = 0
    for _ in range(_MOST_METADATA + 1):
        body = unit[start:].strip(_BROKEN)
        if not body.strip():
            return
        yield body
        line = _METADATA_LINE.match(unit, start)
        if line is None:
            return
        start = line.end()
