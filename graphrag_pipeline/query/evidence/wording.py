"""The words of units: lines of records after the name of the record, speech without the speaker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.records import SEPARATOR, named_key, record_line
from graphrag_pipeline.query.evidence.asked_fields import asks_for_fact
from graphrag_pipeline.query.evidence.asked_figures import with_unit
from graphrag_pipeline.query.evidence.listed_items import item_told
from graphrag_pipeline.query.evidence.sentences import without_item_number
from graphrag_pipeline.query.evidence.table_rows import tell_rows
from graphrag_pipeline.query.evidence.times import with_date
from graphrag_pipeline.query.evidence.units import (
    CELL_END,
    DEFINITION,
    FACT,
    FIELD,
    ITEM,
    LINES,
    OF_RECORDS,
    ROW,
    TITLE,
    Unit,
)
from graphrag_pipeline.query.question import AnalysedQuestion

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.sentences import Sentence
    from graphrag_pipeline.query.release import Release

_NUMBERED = pattern_of(r": (?:.*!)?row-\d+$")
_WIDE_COLON = pattern_of(r"：\s?")
_NAMING, _MOST_NAMING = pattern_of(r"[^\n]{1,60}?: [^\W\d_][^\n]{0,60}$"), 3
_SPEAKER = pattern_of(r"^[A-Z][A-Z.'’ -]{2,40}:\s+")
_LATER_SPEAKER = pattern_of(r"(?<=\n)[A-Z][A-Z.'’ -]{2,40}:\s+")

# What the keys in records refer to; a record without a name is known by the first of them.
_LINKS = """
SELECT l.chunk_id, c.start_char + l.start_char AS start_char, l.source, l.target, l.names_source,
       l.names_target
FROM record_links l JOIN chunks c ON c.id = l.chunk_id
SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS id) wanted ON wanted.id = c.id
"""

_Targets = Mapping[tuple[str, int], str]


def say(index: Release, question: AnalysedQuestion, units: Sequence[Unit]) -> None:
    """Set what units say: ``line``, ``shown`` and ``said``, and this as what is ``told``.

    A key whose record has a name becomes a field: it says what it refers to.
    """
    tell_rows(index, question, units)
    chunks = {unit.sentence.chunk_id for unit in units if unit.kind in OF_RECORDS}
    has_links = chunks and index.has_rows("record_links")
    links = index.rows(_LINKS, ids=sorted(chunks)) if has_links else []
    targets = {(k["chunk_id"], k["start_char"]): k["target"] for k in links if k["names_target"]}
    subjects = {link["chunk_id"]: link["source"] for link in links if link["names_source"]}
    for unit in units:
        unit.shown = unit.line
        if unit.kind == DEFINITION:
            unit.shown = unit.sentence.first
        elif unit.kind == TITLE:
            unit.shown = with_date(question, unit.line, unit.row["text"])
        elif unit.kind in OF_RECORDS:
            _say_of_record(question, unit, targets, subjects.get(unit.sentence.chunk_id))
        is_line = unit.kind == ROW or (
            unit.kind == FACT and not asks_for_fact(question, unit.title, unit.line)
        )
        # Who speaks is no answer to a question about that person.
        unit.said = unit.told = unit.line if is_line else _unspoken(unit.shown, unit.sentence)


def _say_of_record(
    question: AnalysedQuestion, unit: Unit, targets: _Targets, subject: str | None
) -> None:
    """Set what is shown of a record: its line after its name, a key with what that refers to."""
    text, row = unit.line, unit.row
    if unit.kind == ITEM:
        text = item_told(unit.sentence, question.terms, partial(_name_of, targets, row["id"]))
    elif target := targets.get((row["id"], unit.sentence.start)):
        text, unit.kind = named_key(text, target), FIELD
    if unit.kind in LINES:
        text = _WIDE_COLON.sub(SEPARATOR, text, 1)
        text = with_date(question, with_unit(text, row["text"]), row["text"])
        text = with_name(text, row)
    unit.shown = record_line(f"{subject} ({unit.title})" if subject else unit.title, text)


def with_name(line: str, row: Mapping[str, Any]) -> str:
    """Return a line of a record that is only numbered after the names that it begins with."""
    if row["window_start"] or not _NUMBERED.search(row["title"]):
        return line
    lines = row["text"].split("\n", _MOST_NAMING)[:_MOST_NAMING]
    naming = takewhile(lambda each: _NAMING.match(each) and each not in line, lines)
    return CELL_END.join((*naming, line))


def _name_of(targets: _Targets, chunk: str, start: int) -> str | None:
    return targets.get((chunk, start))


def is_spoken(sentence: Sentence) -> bool:
    """Whether somebody speaks it who speaks again around it: no label of a form stands so often."""
    speaker = _SPEAKER.match(sentence.first)
    text = f"\n{sentence.window.row['text']}"
    return speaker is not None and text.count(f"\n{speaker[0].rstrip()}") > 1


def _unspoken(text: str, sentence: Sentence) -> str:
    """Return a text without its number in a list, and the names of those who speak it."""
    text = without_item_number(text)
    speaker = _SPEAKER.match(text)
    own = text[speaker.end() :] if speaker else text
    return _LATER_SPEAKER.sub("", own) if sentence.announces else own
