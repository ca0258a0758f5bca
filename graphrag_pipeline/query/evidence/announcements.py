"""Announcements: what follows a question, a heading, a colon or a term is part of that sentence.

A question and a line that ends in a colon announce what follows, and so does a sentence that ends
in words such as "has the following limitations" or "as follows", and a line that is quoted, as by
an answer in a mail. So does a line without an end, if the next stands apart from it: after an empty
line or a "#", as an item of a list, or indented. It is a heading, the term of a definition, or a
sentence that a list or an example completes. An item of a list announces only what stands further
to the right. What is announced ends with its paragraph, list or message, before code that is not
its first, or after ``_LONGEST`` characters; it is one sentence at least. A line followed by another
question or heading announces nothing, for a table of contents has no answers, and neither does a
greeting.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.prose import LETTERED
from graphrag_pipeline.core.text import fold
from graphrag_pipeline.extraction.rules.nouns import is_address
from graphrag_pipeline.query.question import words_pattern

Span = tuple[int, int]

MESSAGE = pattern_of(
    r"^\[(?:undated|\d{4}-\d\d-\d\d(?: \d\d?:\d\d)?|\d\d?:\d\d)\] [^:\n]{1,80}: ", re.MULTILINE
)
"""How a message of a chat begins, as readers write it: by whom, and when."""
OPTION = pattern_of(r"(?:[-*•] )?[`*]{0,3}--?[^\W\d_][\w-]{0,40}(?=[\s,=:`*\[]|$)")
"""How an option of a command begins with what it does: each stands for itself."""
CAPTION = pattern_of(rf"(?:{words_pattern('captions')})\s+[A-Z]?[\d.]{{1,9}}\.", re.IGNORECASE)
"""How the caption of a figure begins, of which no sentence ends with its number."""
# For the current release, please see section 4: that says where it is told.
_REFERS = pattern_of(
    rf"\W*(?:(?:{words_pattern('leads_to_name')})\s[^.;:]{{1,80}}?,\s+)?"
    rf"(?:please\s+)?(?:{words_pattern('refers_to')})\b"
)
_LONGEST_REFERENCE = 240
_LONGEST = 200
_LONGEST_FIRST = 480
_CLOSING = "\"'”’»)]*_"
_ASKS = frozenset("?？؟")
_TELLS = frozenset(":：")
_ENDS = frozenset(".!;,…。！；，、।|–—-")
LIST_ITEM = pattern_of(r"(?:[-*•‣·◦–—]|\(?\d{1,3}[.)](?!\d)|\(?[a-z]\.|\(?" + LETTERED + r")\s|```")
_HEADING = pattern_of(r"#{1,6} ")
_SUBHEADING = pattern_of(r"#{2,6} ")
"""One sign may be a prompt, or begin a comment."""
_SAYS = pattern_of(r"[^\W\d_]{2}")
_FENCE = pattern_of(r"`{3,}\w*")
# The word, and up to three after it.
_FOLLOWS = pattern_of(rf"(?:{words_pattern('follows')})((?:\s+[\w-]+){{0,3}})\W*$")
_TERM = pattern_of(
    rf"[^\n]{{1,60}}?\s(?:/[^/\n]{{1,40}}/[^\n]{{0,12}}|\(?(?:{words_pattern('parts_of_speech')})\.\)?)"
)
"""How a dictionary begins what it says of a word: harbour /har-b@r/, n."""
_WHEN = pattern_of(words_pattern("spans_of_time"))
_LAST_WORDS = 60
_TAIL = 8
_LEADING, _MOST_OF_GREETING = 3, 7  # words
_QUESTION, _COLON, _LIST, _LINE, _NONE = "?", ":", "-", "#", ""


def is_reference(text: str) -> bool:
    """Whether a text says no more than where something is told.

    >>> is_reference("For the winch, see section 4."), is_reference("They see the winch.")
    (True, False)
    """
    return len(text) <= _LONGEST_REFERENCE and _REFERS.match(fold(text)) is not None


def announcements(text: str, spans: Sequence[Span]) -> Mapping[int, tuple[int, bool]]:
    """Return (last, is_marked) of the sentences of a text that announce what follows, by place.

    ``last`` is the place of the last sentence announced. ``is_marked`` says that a mark, a list or
    a fence of code tells so; otherwise the line announces only what is prose.
    """
    signs = [_sign(text, spans, place) for place in range(len(spans))]
    return {
        place: (last, sign != _LINE)
        for place, sign in enumerate(signs)
        if sign and (last := _last(text, spans, signs, place)) > place
    }


def _sign(text: str, spans: Sequence[Span], place: int) -> str:
    start, end = spans[place]
    last = text[max(start, end - _TAIL) : end].removesuffix("\n").rstrip(_CLOSING)[-1:]
    if last in _ASKS:
        return _QUESTION
    if place + 1 == len(spans):
        return _NONE
    following, _ = spans[place + 1]
    if text.startswith("> ", start) and text[end:following].count("\n") == 1:
        return _COLON
    if last in _TELLS:
        return _NONE if _greets(text[start:end]) else _COLON
    if CAPTION.match(text, start):
        return _NONE
    if last == "." and _says_follows(text[max(start, end - _LAST_WORDS) : end]):
        return _COLON
    if "\n" not in text[end:following]:
        return _NONE
    if last in _ENDS:
        return _LINE if _TERM.fullmatch(text, start, end) else _NONE
    if not LIST_ITEM.match(text, start):
        if LIST_ITEM.match(text, following):
            return _LIST
        if "\n\n" in text[end:following] or _HEADING.match(text, start):
            return _LINE
    return _LINE if _indent(text, following) > _indent(text, start) else _NONE


def _greets(line: str) -> bool:
    """Whether a line ending in a colon addresses a reader and announces nothing: Querida Lucía:"""
    words = line[:_LONGEST].casefold().split()
    return len(words) <= _MOST_OF_GREETING and any(map(is_address, words[:_LEADING]))


def _says_follows(words: str) -> bool:
    """Whether the last words of a sentence announce what follows, and are not "the following year".

    >>> _says_follows("It has the following limits."), _says_follows("He left the following year.")
    (True, False)
    """
    found = _FOLLOWS.search(fold(words))
    return found is not None and _WHEN.search(found[1]) is None


def _indent(text: str, at: int) -> int:
    return at - text.rfind("\n", 0, at)


def _last(text: str, spans: Sequence[Span], signs: Sequence[str], place: int) -> int:
    """Return the place of the last sentence announced at a place, which may be that itself."""
    n, first = len(spans), place + 1
    while first < n and (
        _FENCE.fullmatch(text, *spans[first])
        or (signs[first] == _QUESTION and "\n" not in text[spans[first - 1][1] : spans[first][0]])
    ):
        first += 1
    first = _after_captions(text, spans, first)
    if first == n or signs[first] in (_QUESTION, _LINE) or not _says(text, spans[first]):
        return place
    is_heading = first == place + 1 and _HEADING.match(text, spans[first][0])
    if is_heading or OPTION.match(text, spans[first][0]):
        return place
    begin, end = spans[first]
    if end - begin > _LONGEST_FIRST:
        return place
    last = first
    while last + 1 < n and _says(text, spans[last + 1]):
        following, end = spans[last + 1]
        is_next = signs[last + 1] not in (_QUESTION, _LINE) and end - begin <= _LONGEST
        if signs[last] != _COLON and not (is_next and _goes_on(text, spans[last][1], following)):
            break
        if any(begins.match(text, following) for begins in (MESSAGE, _FENCE, _SUBHEADING)):
            break
        last += 1
    return last


def _after_captions(text: str, spans: Sequence[Span], first: int) -> int:
    """Return the place of the first sentence that is no caption of a figure."""
    while first < len(spans) and CAPTION.match(text, spans[first][0]):
        first += 1
    return first


def _says(text: str, span: Span) -> bool:
    """Whether there are words, and not those of a table's head, which say nothing without rows."""
    return _SAYS.search(text, *span) is not None and not text.startswith("|", span[0])


def _goes_on(text: str, end: int, following: int) -> bool:
    """Whether what follows is of one paragraph or list with what ends before it."""
    return not OPTION.match(text, following) and (
        "\n\n" not in text[end:following] or LIST_ITEM.match(text, following) is not None
    )
