"""Heads that a paragraph runs in from: "Port Rowan. The pier fell in 1906, and nobody was hurt."

All its sentences are about what it begins with, and hardly any says that again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.prose import Prose, grade_of, readable
from graphrag_pipeline.core.text import terms

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.sentences import Sentence, Window
    from graphrag_pipeline.query.evidence.units import Unit
    from graphrag_pipeline.query.question import AnalysedQuestion
    from graphrag_pipeline.query.release import Release

_LONGEST = 60  # characters, without an address behind them
_ADDRESS = pattern_of(r"\]\([^()\s]*\)")


def tell_run_in_heads(index: Release, question: AnalysedQuestion, units: Sequence[Unit]) -> None:
    """Tell units with the head of their paragraph, if the question names that.

    The first of a paragraph, and others where they say something else of the question, too; of the
    head itself nothing.
    """
    heads = heads_of(question, [(unit.sentence.window, unit.sentence.start) for unit in units])
    words = frozenset(question.terms)
    before: Unit | None = None
    for unit, head in zip(units, heads, strict=True):
        if head:
            is_first = _is_first(unit.sentence)
            if is_first and before and before.sentence.window is unit.sentence.window:
                before.told = ""
            if is_first or (words - {*terms(head)}).intersection(terms(unit.told)):
                unit.told = f"{unit.told} {head}"
        before = unit


def _is_first(sentence: Sentence) -> bool:
    """Whether a sentence comes after the head of its paragraph."""
    window, place = sentence.window, sentence.place - 1
    return place in window.whole and window.whole[place][0] == window.line_start(sentence.start)


def heads_of(question: AnalysedQuestion, places: Iterable[tuple[Window, int]]) -> list[str]:
    """Return the head of the paragraph around each place of a window, if a question says its words.

    Else "", also of the head itself.
    """
    words = frozenset(question.terms)
    ends_of: dict[int, dict[int, int]] = {}
    known: dict[tuple[int, int], str] = {}
    heads: list[str] = []
    for window, start in places:
        first = window.line_start(start)
        key = (id(window), first)
        if key not in known:
            ends = ends_of.get(key[0]) or ends_of.setdefault(key[0], dict(window.whole.values()))
            known[key] = _head(window.text(first, ends.get(first, first)), words)
        heads.append(known[key] if start > first else "")
    return heads


def _head(written: str, words: frozenset[str]) -> str:
    """Return the first sentence of a line, if it is a head that has one of some terms; else ""."""
    if not written.endswith(".") or len(_ADDRESS.sub("", written)) > _LONGEST:
        return ""
    (head,) = readable([written])
    is_named = head[:1].isupper() and words.intersection(terms(head))
    return head.rstrip(". ") if is_named and grade_of(head)[0] <= Prose.FRAGMENT else ""
