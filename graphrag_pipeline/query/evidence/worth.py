"""Texts that may answer, by what they read as: sentences, items, lines of records, headings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.prose import Prose, grade_of
from graphrag_pipeline.query.evidence.announcements import CAPTION, is_reference
from graphrag_pipeline.query.evidence.answer_kinds import AskedFor
from graphrag_pipeline.query.evidence.sentences import Sentence
from graphrag_pipeline.query.evidence.units import (
    DEFINITION,
    KEY,
    OF_RECORDS,
    OPTION,
    TITLE,
    Unit,
)
from graphrag_pipeline.query.question import words_pattern

WORTH = {Prose.CODE: 0.35, Prose.FRAGMENT: 0.5, Prose.ITEM: 0.9, Prose.SENTENCE: 1.0}
"""What the score of a sentence is multiplied by, as it reads."""
_HEADINGS = frozenset(("heading", TITLE))
_STAMPED = pattern_of(
    r"\[?(?:undated\]|\d\d:\d\d[\]:]|"
    r"\d{4}-\d\d-\d\d[T ]\d\d?:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:)"
    r"|(?:\d{1,3}\.){3}\d{1,3} [^\[\n]{1,60}\[\d\d/"
)
"""How messages of chats and lines of logs begin: with their time, of servers after the address."""
# The fee is due in May: few words, and yet a sentence.
_SHORT = pattern_of(
    rf"[\"'“„«]?[^\W\d_a-z]\S*(?:\s+\S+){{0,3}}?\s+(?:{words_pattern('is')})\s+\S+(?:\s+\S+){{0,4}}[.!]"
)
# Sentences looked at beyond those asked for, in place of those that become part of another.
SPARE = 3
# So many are read at once, until there are this many times as many whole sentences as are shown.
_READ_AT_ONCE, _READ_FOR_EACH = 24, 2


def by_worth(
    units: Sequence[Unit],
    totals: Sequence[float],
    most: int,
    wanted: AskedFor | None,
    sure: Sequence[int] = (),
) -> list[tuple[int, float, bool]]:
    """Return (place, score, leans) of units, best first, totals weighed by what they read as.

    Code and fragments stand only before any whole sentence, headings if they hold what is asked
    for, too, but for those of a list: the items of many hardly are sentences. As most of the time
    would go into reading, no more are read than may be among the best, and those at places that
    are ``sure`` to be looked at.
    """
    bounds = [
        total * _most_worth(unit.kind, unit.sentence.announces)
        for total, unit in zip(totals, units, strict=True)
    ]
    looked_at = frozenset(sure)
    order = [place for place in range(len(units)) if place not in looked_at]
    order.sort(key=lambda place: -bounds[place])
    batches = (order[n : n + _READ_AT_ONCE] for n in range(0, len(order), _READ_AT_ONCE))
    whole: list[tuple[int, float, bool]] = []
    others: list[tuple[int, float, bool]] = []
    enough = _READ_FOR_EACH * (most + SPARE)
    for places in chain([sure], batches):
        scores = sorted((score for _, score, _ in whole), reverse=True)
        if len(scores) >= enough and scores[enough - 1] >= bounds[places[0]]:
            break
        for place in places:
            unit = units[place]
            reads_as, leans = _reads_as(unit)
            graded = _grade(unit.sentence, reads_as, unit.kind)
            if graded == Prose.FRAGMENT and wanted and wanted.defines:
                # What something is may be said at greater length than other prose.
                graded = Prose.ITEM if wanted.holds(unit.sentence) >= 1 else graded
            least = Prose.FRAGMENT if unit.kind == "list" else Prose.ITEM
            scored = (place, totals[place] * WORTH[graded], leans)
            (whole if graded >= least else others).append(scored)
    best = max((score for _, score, _ in whole), default=0.0)
    for place, score, leans in others:
        unit = units[place]
        is_bare = unit.kind in _HEADINGS and wanted and not wanted.holds(unit.sentence)
        if score > best and not (whole and is_bare):
            whole.append((place, score, leans))
    return sorted(whole, key=lambda scored: (-scored[1], scored[0]))


def _reads_as(unit: Unit) -> tuple[Prose, bool]:
    """Return what a unit reads as: of what it announces the first sentence, or else all of it."""
    if not unit.sentence.announces:
        return grade_of(unit.said)
    reads_as, leans = grade_of(unit.sentence.read_as)
    if reads_as == Prose.FRAGMENT and unit.kind == "heading" and not unit.sentence.is_marked:
        reads_as, _ = grade_of(unit.sentence.announced)
    return reads_as, leans


def _grade(sentence: Sentence, reads_as: Prose, kind: str) -> Prose:
    """Return what a text reads as, at best what the blocks are that it begins in.

    A record's line is read with the record's title, which makes it whole; a key alone says little.
    What stands with what it announces says as much as an item of a list, and so does a message or a
    line of a log, however it is written; a caption and a reference say less.
    """
    best = _best_of(kind, sentence.announces)
    if kind in OF_RECORDS or kind in (OPTION, DEFINITION):
        return best
    is_item = sentence.is_marked and reads_as != Prose.CODE
    if (sentence.announces and is_item) or (
        reads_as < Prose.ITEM and _STAMPED.match(sentence.first)
    ):
        reads_as = Prose.ITEM
    if reads_as == Prose.FRAGMENT and not kind and _SHORT.fullmatch(sentence.first):
        reads_as = Prose.ITEM
    says_less = CAPTION.match(sentence.first) or _is_reference(sentence)
    return min(best, reads_as, Prose.FRAGMENT if says_less else best)


def _is_reference(sentence: Sentence) -> bool:
    return is_reference(sentence.announced if sentence.announces else sentence.first)


@cache
def _most_worth(kind: str, announces: bool) -> float:
    return WORTH[_best_of(kind, announces)]


def _best_of(kind: str, announces: bool) -> Prose:
    best = _best_within(kind)
    is_item = announces and best != Prose.CODE and kind not in OF_RECORDS
    return Prose.ITEM if is_item else best


def _best_within(kind: str) -> Prose:
    if kind in OF_RECORDS:
        return Prose.FRAGMENT if kind == KEY else Prose.ITEM
    if kind in ("code", "table"):
        return Prose.CODE
    if kind in _HEADINGS:
        return Prose.FRAGMENT
    return Prose.ITEM if kind not in ("", DEFINITION) else Prose.SENTENCE
