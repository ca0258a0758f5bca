"""Sentence spans in running text, headings, lists, dialogue and transcripts, in any script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.prose import LETTERED
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.extraction.rules.cjk import is_cjk

Span = tuple[int, int]

# It begins with one set of characters, which is five times as fast as two that either may begin.
_END = pattern_of(
    r"[.!?…؟।。！？｡](?:(?<=[.!?…؟।])[.!?…؟।]*[\"'”’»)\]_*]*(?=\s|$|[“‘\"«(])"
    r"|(?<=[。！？｡])[。！？｡]*[」』”’》）〉\"]*)"
)
_LINE = pattern_of(r"[^\n]+")
_QUOTES = pattern_of(r"(?:>[ \t])+")
_LINK = pattern_of(r"[^\s\[]?\[[^\[\]\n]{1,200}\]\(")
_WORD_BEFORE = pattern_of(r"[^\W_](?:[\w.&’'-]*[^\W_])?$")
_NEXT = pattern_of(r"[\s\"'“‘«(\[_*—–-]*(\w?)")
_FRESH_LINE = pattern_of(
    rf"\s*(?:[-*•‣·–—]\s|\(?(?:\d{{1,3}}[.)]|{LETTERED})\s"
    r"|#{1,6}\s|(?:[^\W\d_]|\d{4}\b)[\w .'’()/%€$£&°²³-]{0,60}:\s"
    r"|\[(?:\d{4}-\d\d-\d\d|\d\d:\d\d|undated)[^\]\n]{0,9}\]\s"
    # An option of a command.
    r"|--?[^\W\d_][\w-]{0,40}(?=[\s,=:\[]|$)"
    # A message of a log, and a line of a web server.
    r"|\[?(?:[A-Z]{4,8}\]? \[?)?(?:\d{4}[-/.]\d\d[-/.]\d\d[T ]|\d\d[/.]\d\d[/.]\d{4} )?"
    r"\d\d:\d\d:\d\d(?!\d)"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |\d{1,3}(?:\.\d{1,3}){3} \S{1,80} \S{1,80} \[)"
)
_ABBREVIATIONS = word_lists("nlp_sentences.txt")["abbreviation"]
_MAY_END = word_lists("nlp_sentences.txt")["may_end"]
_INITIALS = pattern_of(r"(?:[^\W\d_]\.)+[^\W\d_]")
_LETTER = pattern_of(r"\.\s[^\W\d_]\.")
"""A letter with a point, after one: z. B., i. V."""
_OPENER = pattern_of(r"\s+(?:He|She|It|They|We|I|The|This|That|In|But|And|His|Her|A|An)\b")
_MONTH = pattern_of(r"\.\s(?:Januar|Jänner|Februar|März|Mai|Juni|Juli|Oktober|Dezember)\b")
_THE_NTH = pattern_of(
    r"\b(?:[Dd](?:er|ie|as|em|en|es)|[Ii]m|(?<!I )[Aa]m|[Vv]om|[Zz]u[mr]|[Bb]eim) $"
)
_LOOK_BACK = 24
_NARROW = 40


def sentence_spans(text: str) -> list[Span]:
    """Return the spans of the sentences of a text, in order, without surrounding white space.

    A heading, a list item, a line of verse and a speaker's turn each begin a sentence; the lines
    of a hard-wrapped paragraph do not. Linear in the length of the text.
    """
    return [
        trimmed
        for start, end in _segments(text)
        for span in _split_segment(text, start, end)
        if (trimmed := _trim(text, span))
    ]


def _trim(text: str, span: Span) -> Span | None:
    start, end = span
    while start < end and (text[start].isspace() or text[start] == "\ufeff"):
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else None


def _segments(text: str) -> Iterator[Span]:
    """Yield runs of lines that a writer wrapped only for width."""
    for block in _blocks(text):
        wrapped = max(_breadth(text, line) for line in block)
        width = wrapped if wrapped >= _NARROW else max(end - start for start, end in block)
        begin = block[0][0]
        for line, following in pairwise(block):
            if _deliberate_break(text, line, following, width):
                yield begin, line[1]
                begin = following[0]
        yield begin, block[-1][1]


def _blocks(text: str) -> Iterator[list[Span]]:
    """Yield the lines of each paragraph."""
    block: list[Span] = []
    for match in _LINE.finditer(text):
        span = _trim(text, match.span())
        if span is None or (block and text.count("\n", block[-1][1], match.start()) > 1):
            if block:
                yield block
            block = []
        if span is not None:
            block.append(span)
    if block:
        yield block


def _breadth(text: str, line: Span) -> int:
    """Return how broad a line is; what a writer could not break is its last word, an address."""
    start, end = line
    space = text.rfind(" ", start, end)
    return (space if space >= 0 and text.find("://", space, end) >= 0 else end) - start


def _deliberate_break(text: str, line: Span, following: Span, width: int) -> bool:
    if _FRESH_LINE.match(text, following[0], following[1]):
        return True
    if quoted := _QUOTES.match(text, *following):
        following = quoted.end(), following[1]
    first = text[following[0]]
    if first.islower() or text[line[1] - 1] in ",;-–—、，":
        return False
    if width < _NARROW:
        return True
    word = 1 if is_cjk(first) else _first_word_length(text, line, following)
    return line[1] - line[0] + 1 + word <= width - 3


def _first_word_length(text: str, line: Span, following: Span) -> int:
    """Return how much would have to fit on a line; links are whole, but in lists of them."""
    link = None if _LINK.match(text, *line) else _LINK.match(text, *following)
    space = text.find(" ", link.end() if link else following[0], following[1])
    return (space if space >= 0 else following[1]) - following[0]


def _split_segment(text: str, start: int, end: int) -> Iterator[Span]:
    begin = start
    for match in _END.finditer(text, start, end):
        if _is_end(text, match, begin, end):
            yield begin, match.end()
            begin = match.end()
    if begin < end:
        yield begin, end


def _is_end(text: str, match: re.Match[str], begin: int, end: int) -> bool:
    mark = match.group()
    if mark[0] in "。！？｡؟।":
        return True
    following = _NEXT.match(text, match.end(), min(end, match.end() + 16))
    letter = following.group(1) if following else ""
    if letter.islower():
        return False
    if mark != ".":
        return True
    return not _is_abbreviation(text, max(begin, match.start() - _LOOK_BACK), match.start(), letter)


def _is_abbreviation(text: str, start: int, end: int, next_letter: str) -> bool:
    before = _WORD_BEFORE.search(text, start, end)
    if before is None:
        return False
    word = before.group()
    if len(word) <= len("31") and word.isdecimal():
        is_of_month = _MONTH.match(text, end) is not None
        return is_of_month or _THE_NTH.search(text, start, before.start()) is not None
    if len(word) == 1 and word.isupper() and word != "I":
        return bool(next_letter)
    if len(word) == 1 and _LETTER.match(text, end):
        return True
    if _INITIALS.fullmatch(word):
        return bool(next_letter) and not _OPENER.match(text, end + 1)
    key = word.casefold()
    if key in _MAY_END:
        return next_letter.isdigit()
    return key in _ABBREVIATIONS
