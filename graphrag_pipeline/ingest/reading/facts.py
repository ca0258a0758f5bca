"""Facts that a note tells of itself in lines of their own: ``Owner:: [[Name]]``, ``Owner: Name``.

They are fields of a record whose name is the document's title. A line is one only where nothing
says that it is about something else: it stands before all headings or below the one that is the
title, after whole sentences, and its field stands nowhere else in the document.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple
from urllib.parse import unquote

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.records import SEPARATOR, field_head, names_nothing
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.ingest.reading.blocks import Block
from graphrag_pipeline.ingest.reading.line_blocks import line_blocks

_KEY = r"[^\W\d_][\w/'’-]{0,30}(?: [\w/'’-]{1,30}){0,3}"
_FIELD = pattern_of(
    rf"(?:[-*+] )?(?P<mark>\*\*|__|)(?P<key>{_KEY})"
    r"(?:(?P<sign>::?)(?P=mark)|(?P=mark)(?P<after>::?))[ \t]+(?P<value>\S.*)"
)
_MAY_BE = pattern_of(rf"\n(?:[-*+] )?(?:\*\*|__)?({_KEY})(?:\*\*|__)?:")
_INLINE_LAST = pattern_of(rf"(\S.*[.!?])[ \t]+(?={_KEY}::[ \t]+\S)")
_LINK = pattern_of(r"!?\[([^\[\]\n]+)\]\(([^()\s]*)\)")
_BETWEEN_LINKS = pattern_of(r"(?<=\)),? +(?=!?\[[^\[\]\n]+\]\([^()\s]*\))")
_NAME = pattern_of(r"(?:(?:[Tt]he|[Aa]n?) )?[^\W\d_a-z][^\s:]*(?: [^\s:]+){0,7}")
_WITHIN = pattern_of(r"(?<!\b[^\W\d_])(?<!\b[^\W\d_]{2})[.!?…。]\s+[^\W\d_a-z]")
_END = pattern_of(r"[.!?…。][\"'”’»)\]*_]*$")
_END_OF_SHORT = pattern_of(r"\b[A-Z][^\W\d_]{0,3}\.$")
_FIRST = pattern_of(rf"{_KEY} ?: *\S")
_BESIDE = pattern_of(rf"(?<=\S)(?: {{3,}}|\t+)(?=[^a-z])(?={_KEY} ?: *\S)")
_LONGEST, _LONGEST_LINE = 120, 1_000  # characters of a value, and of a line
_WORDS = word_lists("nlp_records.txt")
_KINDS = ("person", "place", "organisation", "event", "work")
_OF_NAMES = frozenset().union(*(_WORDS[kind] for kind in _KINDS))


def with_fields_apart(text: str) -> str:
    """Return a text in which fields side by side, with room between them, stand on lines of theirs.

    >>> with_fields_apart("Number: 4711      Month: May 2024")
    'Number: 4711\\nMonth: May 2024'
    """
    if ("   " not in text and "\t" not in text) or not _BESIDE.search(text):
        return text
    lines = (
        _BESIDE.sub("\n", line) if len(line) <= _LONGEST_LINE and _FIRST.match(line) else line
        for line in text.split("\n")
    )
    return "\n".join(lines)


class _Line(NamedTuple):
    text: str
    kind: str
    """Of its block; "" where it is prose."""


def with_facts(text: str, title: str, *, markdown: bool) -> tuple[str, list[Block]]:
    """Return a text in which facts about its title are lines ``field: value``, and its blocks."""
    blocks = line_blocks(text, markdown=markdown)
    if not _may_hold_facts(text):
        return text, blocks
    lines = _lines(text, blocks)
    facts = _facts(lines, " ".join(title.split()).casefold())
    if not facts:
        return text, blocks
    spans: list[Block] = []
    written: list[str] = []
    place = 0
    for number, line in enumerate(lines):
        written.append(facts.get(number, line.text))
        if number in facts:
            spans.append(Block(place, place + len(written[-1]), "fact"))
        place += len(written[-1]) + 1
    text = "\n".join(written)
    return text, outside(line_blocks(text, markdown=markdown), spans)


def _may_hold_facts(text: str) -> bool:
    """Whether a field is marked as one, or a line begins as a field that holds names does."""
    if "::" in text:
        return True
    keys = dict.fromkeys(_MAY_BE.findall(f"\n{text}")) if ":" in text else ()
    return any(field_head(key) in _OF_NAMES for key in keys)


def with_properties(
    text: str, blocks: Sequence[Block], linked: Mapping[str, Sequence[str]]
) -> tuple[str, list[Block]]:
    """Return a text below facts of its title: what properties of a note link to, and the blocks."""
    lines = [f"{name}{SEPARATOR}{'; '.join(notes)}" for name, notes in linked.items() if notes]
    if not lines:
        return text, [*blocks]
    head = "".join(f"{line}\n" for line in lines)
    ends = [*accumulate(len(line) + 1 for line in lines)]
    facts = [
        Block(end - len(line) - 1, end - 1, "fact") for line, end in zip(lines, ends, strict=True)
    ]
    if not text:
        return head.rstrip("\n"), facts
    return f"{head}\n{text}", [*facts, *(block.moved(len(head) + 1) for block in blocks)]


def _lines(text: str, blocks: Sequence[Block]) -> list[_Line]:
    """Return the lines with their kinds; an inline field after sentences gets its own line."""
    lines: list[_Line] = []
    place = number = 0
    for line in text.split("\n"):
        while number < len(blocks) and blocks[number].end <= place:
            number += 1
        inside = number < len(blocks) and blocks[number].start < place + max(len(line), 1)
        kind = blocks[number].kind if inside else ""
        place += len(line) + 1
        may_hold = not kind and "::" in line and len(line) <= _LONGEST_LINE
        if may_hold and (last := _INLINE_LAST.match(line)):
            lines.append(_Line(last[1], kind))
            line = line[last.end() :]
        lines.append(_Line(line, kind))
    return lines


def _facts(lines: Sequence[_Line], title: str) -> dict[int, str]:
    """Return what of the lines are facts, by their numbers: as they are to be written."""
    fields = {number: field for number, line in enumerate(lines) if (field := _field(line))}
    begins = Counter(
        field["key"].casefold()
        for number, field in fields.items()
        if number - 1 not in fields or fields[number - 1]["key"] != field["key"]
    )
    facts: dict[int, str] = {}
    is_of_title = is_whole = True
    n_headings = 0
    for first, stop in _paragraphs(lines):
        if lines[first].kind == "heading":
            heading = " ".join(lines[first].text.strip("#=* _~-\t").split()).casefold()
            n_headings += bool(heading)
            is_of_title = n_headings == 1 and (is_of_title if not heading else heading == title)
            is_whole = is_of_title
            continue
        own: dict[int, re.Match[str]] = {}
        n_fields = 0
        for number in range(first, stop):
            field = fields.get(number)
            n_fields += field is not None
            if field and is_of_title and is_whole and begins[field["key"].casefold()] == 1:
                own[number] = field
            is_end = not lines[number].kind and _END.search(lines[number].text)
            is_whole = bool(is_end) or (field is not None and is_whole)
        facts |= _of_paragraph(own, is_all=n_fields == stop - first)
    return facts


def _field(line: _Line) -> re.Match[str] | None:
    if line.kind not in ("", "list") or len(line.text) > _LONGEST_LINE or ":" not in line.text:
        return None
    return _FIELD.fullmatch(line.text.rstrip())


def _paragraphs(lines: Sequence[_Line]) -> list[tuple[int, int]]:
    """Return the first line and the end of runs of lines without a blank one or another kind."""
    runs: list[tuple[int, int]] = []
    for number, line in enumerate(lines):
        if not line.text.strip():
            continue
        before = lines[number - 1] if number else line
        goes_on = runs and runs[-1][1] == number and before.kind == line.kind != "heading"
        runs[-1:] = [(runs[-1][0], number + 1)] if goes_on else [*runs[-1:], (number, number + 1)]
    return runs


def _of_paragraph(fields: dict[int, re.Match[str]], *, is_all: bool) -> dict[int, str]:
    """Return the facts of a paragraph: its inline fields, and all where it is nothing else."""
    values = {number: _value(field["value"]) for number, field in fields.items()}
    taken = {n for n, field in fields.items() if "::" in (field["sign"], field["after"])}
    if is_all and all(values.values()):
        of_names = {n for n, field in fields.items() if field_head(field["key"]) in _OF_NAMES}
        named = {n for n in of_names if not names_nothing(values[n])}
        if named:
            taken |= named.union(n for n in values if names_nothing(values[n]))
    return {
        number: f"{fields[number]['key']}{SEPARATOR}{value}"
        for number, value in values.items()
        if value and number in taken
    }


def _value(written: str) -> str:
    """Return a value without links; "" for prose, and for a link to what is no name."""
    value = _LINK.sub(_named, _BETWEEN_LINKS.sub("; ", written)).strip()
    is_end = _END.search(value) and not _END_OF_SHORT.search(value)
    if len(value) > _LONGEST or is_end or _WITHIN.search(value) or not re.search(r"\w", value):
        return ""
    if names_nothing(value):
        return "" if _LINK.search(written) else value
    return value if _NAME.fullmatch(value.replace(";", "")) else ""


def _named(link: re.Match[str]) -> str:
    """Return the name that a link stands for: its words, or the file's where these are no name."""
    words, address = link.groups()
    stem = unquote(address).rpartition("/")[2].partition("#")[0].removesuffix(".md")
    return stem if words[0].islower() and address.partition("#")[0].endswith(".md") else words


def outside(blocks: Sequence[Block], facts: Sequence[Block]) -> list[Block]:
    """Return blocks in order, without what of them is facts, and the facts."""
    whole: list[Block] = []
    number = 0
    for block in blocks:
        start = block.start
        while number < len(facts) and facts[number].start < block.end:
            fact = facts[number]
            number += 1
            if fact.end > start:
                whole.append(Block(start, max(start, fact.start), block.kind))
                start = fact.end
        whole.append(Block(start, block.end, block.kind))
    return sorted((*(block for block in whole if block.start < block.end), *facts))
