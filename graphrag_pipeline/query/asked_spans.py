"""Spans of time that a question tells from today: last year, le mois dernier, diese Woche."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import cache

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import fold
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.query.question import words_pattern

_DAYS = {"day": 1, "week": 7, "month": 30.44, "year": 365.25}
_WORD = pattern_of(r"[^\W_]+")
# The last year of the war is none that is told from today.
_OF = frozenset(("of", "der", "des", "del", "de", "du", "di", "van", "da", "do"))
_ARTICLES = r"(?:(?:the|dem|den|der|das|die|le|la|les|l'|el|los|il|lo|i|gli|o|a|os|as|het|de)\s*)?"


@cache
def _words() -> Mapping[str, frozenset[str]]:
    lists = word_lists("questions.txt")
    counts = [f"count_{count}" for count in range(2, 7)]
    names = [*_DAYS, *(f"{unit}s" for unit in _DAYS), "last_one", "this_one", "yesterday", *counts]
    return {name: frozenset(map(fold, lists[name])) for name in names}


@cache
def _bounds() -> Mapping[str, re.Pattern[str]]:
    return {
        name: re.compile(rf"(?:{words_pattern(name)})\s+{_ARTICLES}$")
        for name in ("since", "before")
    }


def span_from_today(text: str, today: date) -> dict[str, str]:
    """Return the first and the last day, month or year of the first span; empty where none is said.

    ``text`` is a question without case and marks. A year or a month is a whole one of the calendar,
    a week begins on Monday; the last two months are as many days before today.

    >>> span_from_today("what was paid last month?", date(2024, 3, 15))
    {'>': '2024-02', '<': '2024-02'}
    """
    matches = list(_WORD.finditer(text))
    words = [match[0] for match in matches]
    for place in range(len(words)):
        first, bounds = _span_at(words, place, today)
        if bounds:
            return _as_bound(
                text[max(0, matches[first].start() - 60) : matches[first].start()], bounds
            )
    return {}


def _as_bound(before: str, bounds: dict[str, str]) -> dict[str, str]:
    """Return the side that "since" or "before" asks for, of a text that ends before a span."""
    if _bounds()["since"].search(before):
        return {">": bounds[">"]}
    if _bounds()["before"].search(before):
        first = tuple(map(int, bounds[">"].split("-")))
        return {"<": as_text(beside(first, -1))}
    return bounds


def _span_at(words: Sequence[str], place: int, today: date) -> tuple[int, dict[str, str]]:
    """Return where the span of a unit of time begins, and its bounds."""
    known = _words()
    if words[place] in known["yesterday"]:
        day = (today - timedelta(days=1)).isoformat()
        return place, {">": day, "<": day}
    before = words[max(0, place - 2) : place]
    after = words[place + 1 : place + 3]
    for unit, days in _DAYS.items():
        if words[place] in known[f"{unit}s"] and len(before) == 2:
            others = [word for word in before if word not in known["last_one"]]
            if len(others) == 1 and (count := _count(others[0])):
                start = today - timedelta(days=round(count * days))
                return place - 2, {">": start.isoformat()}
        if words[place] not in known[unit] or unit == "day":
            continue
        for beside_it, start, behind in (
            (before[-1:], place - 1, after[:1]),
            (after[:1], place, after[1:2]),
        ):
            for name, step in (("last_one", -1), ("this_one", 0)):
                if known[name].issuperset(beside_it or [""]) and not _OF.issuperset(behind or [""]):
                    return start, _whole(unit, step, today)
    return place, {}


def _count(word: str) -> int:
    if word.isdecimal():
        return int(word) if len(word) <= 3 else 0
    return next((n for n in range(2, 7) if word in _words()[f"count_{n}"]), 0)


def _whole(unit: str, step: int, today: date) -> dict[str, str]:
    """Return the bounds of this unit of time, or of the one before it."""
    if unit == "week":
        monday = today - timedelta(days=today.weekday() - 7 * step)
        return {">": monday.isoformat(), "<": (monday + timedelta(days=6)).isoformat()}
    now = (today.year, today.month)[: 1 if unit == "year" else 2]
    text = as_text(beside(now, step))
    return {">": text, "<": text}


def beside(when: Sequence[int], step: int) -> tuple[int, ...]:
    """Return the year, month or day that comes ``step`` after one."""
    if len(when) == 3:
        year, month, day = when
        last = (date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)).day
        found = date(year, month, min(day, last)) + timedelta(days=step)
        return found.year, found.month, found.day
    if len(when) == 2:
        months = when[0] * 12 + when[1] - 1 + step
        return months // 12, months % 12 + 1
    return (when[0] + step,)


def as_text(when: Sequence[int]) -> str:
    """Return a year, month or day as 1960, 1960-05 or 1960-05-03."""
    return "-".join(f"{part:02}" for part in when)
