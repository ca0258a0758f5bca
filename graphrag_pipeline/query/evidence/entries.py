"""Entries of reference pages: what stands below *work_mem (integer)* says what its default is.

Sentences of an entry hardly say again what it is called. A question that says the name of an option
or a setting, as it is written, asks for what its entry says.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.records import record_line
from graphrag_pipeline.core.text import terms
from graphrag_pipeline.query.evidence.units import DEFINITION, OF_RECORDS
from graphrag_pipeline.query.names_of_code import names_of_code
from graphrag_pipeline.query.question import NAME_OF_CODE, bare_word, words_pattern

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.units import Unit
    from graphrag_pipeline.query.question import AnalysedQuestion
    from graphrag_pipeline.query.release import Release

# An option with what it takes, a name with its type, its kind (Timeout Directive) or by itself,
# also before what is said of it; any other heading, and any other short line that stands alone.
_LINES = pattern_of(
    r"^(?:(?:#{1,6} +)?[`*]{0,3}(?P<option>--?[^\W\d_][^\n:]{0,80})(?:(?<![.!?;,])$|:(?=\s))"
    r"|(?:#{1,6} +)?[`*]{0,3}(?P<name>[\w$][\w.$/-]{0,80})[`*]{0,3}(?P<type> \([^()\n]{1,40}\))?"
    rf"(?P<kind>\s+(?:{words_pattern('kinds_of_names')}))?(?:$|:(?=\s))"
    r"|#{1,6} [^\n]*$|(?<=\n\n)[^\n]{1,60}(?<![.!?:;,])(?=\n\n))",
    re.MULTILINE | re.IGNORECASE,
)
_OPTION = pattern_of(r"(?<![\w-])--?[^\W\d_][\w-]*")
_KINDS = pattern_of(words_pattern("entry_kinds"))
_WITHIN = 0.5
_REMEMBERED = 1024


class _Entry(NamedTuple):
    """An entry of a text: where it begins, where the lines with its names end, and these.

    ``of_a_kind``: it is called "Timeout Directive", of which the first may be any word.
    """

    start: int
    body: int
    names: tuple[str, ...]
    of_a_kind: bool = False


def tell_entries(index: Release, question: AnalysedQuestion, units: Sequence[Unit]) -> None:
    """Tell units with the name of the entry that they stand in, if the question says it.

    Who asks no more is told what the entry begins with; else what says something else of the
    question, which counts most where it begins so: *The default is*. Below the name of another
    entry that is the default of another.
    """
    written = [bare_word(word) for word in question.split()]
    said = frozenset(map(str.lower, written))
    as_names = frozenset(word.lower() for word in written[1:] if word != word.lower())
    words = frozenset(question.without(_KINDS).terms)
    entries = [_entry_of(unit) for unit in units]
    names = [_name_said(entry, as_names if entry.of_a_kind else said) for entry in entries]
    asks_by_name = any(names) or question.read(names_of_code)
    others = words.difference(*map(terms, names))
    for unit, entry, name in zip(units, entries, names, strict=True):
        if name:
            _tell(unit, entry, name, words)
        elif asks_by_name and entry.names and not others.isdisjoint(terms(unit.told)[:1]):
            unit.told = ""


def _name_said(entry: _Entry, said: frozenset[str]) -> str:
    return next((name for name in entry.names if name.lower() in said), "")


def stands_in_entry(unit: Unit) -> bool:
    """Whether a unit stands below the names of an entry: its label is of that."""
    entry = _entry_of(unit)
    return bool(entry.names) and unit.sentence.start - unit.row["window_start"] >= entry.body


def _tell(unit: Unit, entry: _Entry, name: str, words: frozenset[str]) -> None:
    offset = unit.row["window_start"]
    others = words.difference(terms(name), terms(unit.title))
    if unit.sentence.end - offset <= entry.body:
        unit.told = ""
    elif unit.sentence.start - offset < entry.body:
        if not others:
            _begin_at(unit, entry.start + offset)
            unit.told, unit.kind, unit.section = f"{unit.told} {name}", DEFINITION, 1.0
    elif told := others.intersection(terms(unit.told)):
        is_subject = terms(unit.told)[0] in told
        if unit.kind == "table":
            unit.shown = record_line(name, unit.shown)
        unit.kind = DEFINITION if is_subject else unit.kind
        unit.section = max(unit.section, 1.0 if is_subject else _WITHIN)
        unit.told = f"{unit.told} {name}"


def _begin_at(unit: Unit, start: int) -> None:
    """Let a unit begin with the first of the names below each other, in place of the last."""
    sentence = unit.sentence
    if start < sentence.start:
        quote = sentence.window.text(start, sentence.end)
        unit.sentence = sentence._replace(start=start, quote=quote)
        unit.shown = quote


def _entry_of(unit: Unit) -> _Entry:
    """Return the entry that a unit stands in; fields of records stand in none."""
    entries = [] if unit.kind in OF_RECORDS else _entries(unit.row["text"])
    start = unit.sentence.start - unit.row["window_start"]
    place = bisect_right(entries, start, key=lambda entry: entry.start)
    return entries[place - 1] if place else _Entry(0, 0, ())


@lru_cache(_REMEMBERED)
def _entries(text: str) -> list[_Entry]:
    """Return the entries of a text, and what ends one: they have no names.

    Lines of several names one below the other begin one entry.
    """
    entries: list[_Entry] = []
    for line in _LINES.finditer(text):
        names = _called(line)
        if names is None:
            continue
        start, above = line.start(), entries[-1] if entries else None
        if names and above and above.names and not text[above.body : start].strip():
            start, names = above.start, above.names + names
            entries.pop()
        entries.append(_Entry(start, line.end(), names, of_a_kind=line["kind"] is not None))
    return entries


def _called(line: re.Match[str]) -> tuple[str, ...] | None:
    """Return what a line calls the entry that it begins, () if it ends one; None of others."""
    name = line["name"] or ""
    if line["option"]:
        return tuple(_OPTION.findall(line["option"]))
    if line["type"] or line["kind"] or NAME_OF_CODE.search(name) or "." in name.rstrip("."):
        return (name,)
    return None if line[0].endswith(":") else ()
