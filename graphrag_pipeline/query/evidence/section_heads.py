"""Headings that a question says: what stands below *Sabbatical* answers how long a sabbatical is.

Sentences of a section seldom say its heading again; others that do are about something else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.prose import readable
from graphrag_pipeline.core.text import fold, terms, terms_batch
from graphrag_pipeline.query.evidence.units import HEADING
from graphrag_pipeline.query.question import AnalysedQuestion, words_pattern

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.units import Unit
    from graphrag_pipeline.query.release import Release

_WHY = pattern_of(words_pattern("why"))
_NUMBER = pattern_of(r"^(?:[A-Z]\.)?(?:\d{1,3}\.)+(?:\d{1,3})?\s+")
"""The number of a section, which no question needs to say."""
_LEAST = 0.5
"""The share of the words of a heading and a question that both have, from which it is said."""

_BARE = 0.95
"""What a heading counts that is all of a question but *how long* and the like."""
_BELOW = 0.5
"""What what stands below a heading gains by it, of what the heading gains with what it begins."""


def tell_headings(index: Release, question: AnalysedQuestion, units: Sequence[Unit]) -> None:
    """Set how much of the question the heading above each unit says, and tell units with it.

    Only those that say something else of the question are told so.
    """
    headings = _headings_above(units)
    distinct = [*dict.fromkeys(filter(None, headings))]
    asked = frozenset(question.terms)
    bare = frozenset(question.without_time_and_number.terms)
    shares: dict[str, float] = {}
    words_of: dict[str, frozenset[str]] = {}
    unnumbered = [_NUMBER.sub("", heading) for heading in readable(distinct)]
    for heading, line in zip(distinct, terms_batch(unnumbered), strict=True):
        words = words_of[heading] = frozenset(line.split())
        if _WHY.search(fold(heading)) is None or _WHY.search(question.folded):
            shares[heading] = max(_alike(words, asked), _BARE * _alike(words, bare))
    for unit, heading in zip(units, headings, strict=True):
        share = shares.get(heading, 0.0)
        if share >= _LEAST:
            unit.section = share**2 * (1.0 if unit.kind == "heading" else _BELOW)
            if not (asked - words_of[heading]).isdisjoint(terms(unit.told)):
                unit.told = f"{unit.told} {heading}"


def _headings_above(units: Sequence[Unit]) -> list[str]:
    """Return the last heading before each unit, or that with which it begins, in its window.

    The title of its document is none: that is said in another way.
    """
    known: dict[int, dict[int, str]] = {}
    for unit in units:
        window, text = unit.sentence.window, unit.row["text"]
        if id(window) not in known:
            marked = HEADING.finditer(text)
            known[id(window)] = {match.start(): match[1].strip("#*_ ") for match in marked}
        start = unit.sentence.start - unit.row["window_start"]
        if unit.kind == "heading" and not text.startswith("#", start):
            known[id(window)][start] = unit.sentence.first
    headings: list[str] = []
    starts_of = {window: sorted(heads) for window, heads in known.items()}
    for unit in units:
        window = id(unit.sentence.window)
        starts = starts_of[window]
        n_before = bisect_right(starts, unit.sentence.start - unit.row["window_start"])
        heading = known[window][starts[n_before - 1]] if n_before else ""
        headings.append("" if heading == unit.title else heading)
    return headings


def _alike(some: frozenset[str], others: frozenset[str]) -> float:
    return len(some & others) / (len(some | others) or 1)
