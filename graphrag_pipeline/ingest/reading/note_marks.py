"""Marks that programs for notes keep in their files for themselves: Logseq, Roam and Notion.

Ids of blocks, whether they are folded, times of a clock, queries, and addresses of pages.
"""

from __future__ import annotations

import re

from graphrag_pipeline.core.patterns import pattern_of

_LOGSEQ = ("::", "((", "{{", ":LOGBOOK:", "SCHEDULED: <", "DEADLINE: <", "#+")
_CLOCK = pattern_of(
    r"^[ \t]*:LOGBOOK:[ \t]*\n(?:(?![ \t]*:END:)[^\n]*\n){0,500}[ \t]*:END:[ \t]*\n?", re.M
)
_QUERY = pattern_of(
    r"^[ \t]*(?:- )?#\+BEGIN_QUERY[^\n]*\n(?:(?![ \t]*#\+END_)[^\n]*\n){0,500}"
    r"[ \t]*#\+END_[^\n]*\n?",
    re.M,
)
_PROPERTY = pattern_of(
    r"[ \t]*(?:[-*] )?(?P<name>id|collapsed|logseq\.[\w.-]+|background-color|ls-type|hl-\w+|icon"
    r"|created-at|updated-at|template(?:-[\w-]+)?|query-[\w-]+|card-[\w-]+|heading)::"
    r" ?(?P<value>.*)"
)
_MARKER = pattern_of(r"[ \t]*#\+(?:BEGIN|END)_\w+[^\n]*")
_TIME = pattern_of(
    r"\b(SCHEDULED|DEADLINE): <(\d{4}-\d\d-\d\d)(?: [^\W\d_]{2,4}\.?)?(?: (\d\d:\d\d))?"
    r"[^<>\n]{0,20}>"
)
_ID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=[\w-]{0,8}\d)[\w-]{9}"
_LABELLED = pattern_of(rf"\[([^\[\]\n]{{1,300}})\]\(\(\((?:{_ID})\)\)\)")
_REFERENCE = pattern_of(rf"\(\(({_ID})\)\)")
_EMBEDDED = pattern_of(r"\{\{(?:\[\[)?embed(?:\]\])?:?[ \t]*([^{}\n]*)\}\}")
_TASK = pattern_of(r"\{\{\[\[(TODO|DONE)\]\]\}\}")
_MACRO = pattern_of(
    r"\{\{(?:\[\[)?(?:query|renderer|video|youtube|tweet|twitter|cloze|function|namespace|table|"
    r"kanban|roam/\w+)\b(?:[^{}\n]|\{[^{}\n]{0,500}\}){0,1000}\}\}"
)
_EMPTY = pattern_of(r"[ \t]*[-*][ \t]*")
_LONGEST = 300  # characters of a block that is shown where another one refers to it
_PAGE = pattern_of(
    r" \((?:https?://(?:www\.)?notion\.(?:so|site)/[^()\s]*"
    r"|[^()\s]{0,300}(?:%20|[ -])[0-9a-f]{32}\.(?:md|csv|html)(?:\?[^()\s]*)?)\)"
)


def without_page_addresses(text: str) -> str:
    """Return text without the addresses that Notion writes after names of pages in its exports.

    >>> without_page_addresses("Emden (https://www.notion.so/Emden-0123?pvs=4), Leer (40 m)")
    'Emden, Leer (40 m)'
    """
    is_there = "notion." in text or any(f".{end})" in text for end in ("md", "csv", "html"))
    return _PAGE.sub("", text) if is_there else text


def without_marks(text: str) -> str:
    """Return a note without what outliners keep for themselves; what refers to a block shows it."""
    if not any(mark in text for mark in _LOGSEQ):
        return text
    written = _QUERY.sub("", _CLOCK.sub("", text))
    blocks: dict[str, str] = {}
    lines: list[str] = []
    for line in written.split("\n"):
        own = _PROPERTY.fullmatch(line) if "::" in line else None
        if own and own["name"] == "id" and lines:
            blocks[own["value"].strip()] = lines[-1].strip(" \t-*")[:_LONGEST]
        elif not own and not ("#+" in line and _MARKER.fullmatch(line)):
            lines.append(line)
    written = "\n".join(lines)
    if "((" in written:
        written = _REFERENCE.sub(
            lambda match: blocks.get(match[1], ""), _LABELLED.sub(r"\1", written)
        )
    if "{{" in written:
        written = _MACRO.sub("", _TASK.sub(r"\1", _EMBEDDED.sub(r"\1", written)))
    written = _TIME.sub(_time, written)
    if written == text:
        return text
    return "\n".join(line for line in written.split("\n") if not _EMPTY.fullmatch(line))


def _time(match: re.Match[str]) -> str:
    return f"{match[1].lower()}: {match[2]}{f' {match[3]}' if match[3] else ''}"
