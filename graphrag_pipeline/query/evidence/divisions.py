"""Divisions that a question calls by their numbers: chapter 36, act 2 scene 1, Article 5, § 12.

What such a division says begins below its heading: that is where somebody would look it up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import permutations
from typing import TYPE_CHECKING

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.prose import readable
from graphrag_pipeline.core.text import fold, terms
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.query.evidence.widening import RankedPassage
from graphrag_pipeline.query.question import AnalysedQuestion, words_pattern

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.sentences import Sentence
    from graphrag_pipeline.query.release import Release

_LISTS = word_lists("questions.txt")
_ASKED = pattern_of(
    rf"(?:({words_pattern('division')})(?:\s+|\.\s*)|§+\s*)"
    r"(\d{1,4}(?:\.\d{1,3}){0,3}[a-z]?|[ivxlc]{1,7})\b"
)
_OF_UNSPACED = pattern_of(r"[第제]\s*\d+\s*[条條章節조장절]")
_WITHIN = pattern_of(rf"({words_pattern('within_division')})\.?\s*(\d{{1,2}})\b")
_NAMES_OF_ONE = [_LISTS[kind] for kind in ("article", "chapter", "section")]
_NEXT = pattern_of(rf"#|(?:{words_pattern('division')})\s+(?:\d|[ivxlc]+\b)", re.IGNORECASE)
_MOST, _MOST_TOLD = 3, 3
_ROMAN = (
    *((100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv")),
    (1, "i"),
)
_MOST_ROMAN = 300
_LONGEST, _LONGEST_HEADING = 420, 120  # characters


def division_pattern(question: str) -> str:
    """Return a pattern (of RE2, too) of how the headings of asked divisions begin; else "".

    >>> bool(re.search(division_pattern("Who speaks in scene 1 of act 2?"), "ACT II, Scene 1"))
    True
    """
    asked = AnalysedQuestion.of(question).read(_pairs)
    if unspaced := _OF_UNSPACED.search(question):
        return rf"(?im)^[#*=\s]{{0,8}}{unspaced[0]}(?:\W|$)"
    if not asked:
        return ""
    orders = (r"\b[^\n]{0,20}\b".join(each) for each in permutations(asked))
    return rf"(?im)^[#*=\s]{{0,8}}(?:{'|'.join(orders)})(?:\W|$)"


def _pairs(question: str) -> list[str]:
    text = AnalysedQuestion.of(question).folded
    found = _ASKED.findall(text)
    # The second paragraph of § 5 is no division besides.
    within = _WITHIN.findall(text) if len(found) > 1 else []
    return [_division(*pair) for pair in found if pair not in within[-_MOST:]][:_MOST]


def _division(word: str, number: str) -> str:
    numbers = [re.escape(number)]
    if number.isdigit() and 0 < int(number) <= _MOST_ROMAN:
        numbers.append(_as_roman(int(number)))
    elif number.isalpha():
        numbers += (str(n) for n in range(1, _MOST_ROMAN + 1) if _as_roman(n) == number)
    kind = rf"(?:{_names_of(word)})\.?\s+" if word else r"§\s*"
    # Headings of manuals have the numbers alone: 3.2 Fees.
    return rf"(?:{kind}){'?' * ('.' in number)}(?:{'|'.join(numbers)})"


def _names_of(word: str) -> str:
    """Return a pattern of how texts write a word of a question, without accents, or another."""
    own = {name for name in _LISTS["division"] if fold(name) == word}
    names = own.union({word}, *(names for names in _NAMES_OF_ONE if names & own))
    return "|".join(map(re.escape, sorted(names, key=lambda name: (-len(name), name))))


def _as_roman(number: int) -> str:
    letters = ""
    for value, sign in _ROMAN:
        letters += sign * (number // value)
        number %= value
    return letters


def told_by_division(
    index: Release, question: AnalysedQuestion, sentences: Sequence[Sentence]
) -> list[RankedPassage]:
    """Return how the divisions begin that a question calls by number, of documents that it names.

    Else of those whose titles say most of it. Where it calls a paragraph within one, that one.
    """
    pattern = division_pattern(question)
    if not pattern:
        return []
    heading = re.compile(pattern)
    begun = [
        s for s in sentences if heading.match(s.first) and s.window.line_start(s.start) == s.start
    ]
    words = frozenset(terms(index.with_short_titles(question)))
    titles = [terms(s.window.row["title"]) for s in begun]
    shares = [(words.issuperset(title), len(words.intersection(title))) for title in titles]
    named = [s for s, share in zip(begun, shares, strict=True) if share == max(shares)]
    within = [number for _, number in _WITHIN.findall(question.folded)]
    return [_beginning(each, within[0] if within else "") for each in named[:_MOST_TOLD]]


def _beginning(sentence: Sentence, paragraph: str) -> RankedPassage:
    """Return a heading with what stands below it, up to the next or as much as is read at once.

    Or with the paragraph below it that has a number.
    """
    window, start = sentence.window, sentence.start
    line = window.text(start, min(start + _LONGEST_HEADING, window.end)).split("\n", 1)[0]
    end = head = start + len(line)
    numbered = re.compile(rf"\W*{paragraph}[.)]\s")
    below = (place for place, _ in window.whole.values() if place >= head)
    if paragraph and (own := [b for b in below if numbered.match(window.text(b, window.end))]):
        start = end = head = own[0]
    for begin, stop in window.whole.values():
        if stop <= end:
            continue
        is_line = begin > head and window.line_start(begin) == begin
        is_next = is_line and _NEXT.match(window.text(begin, stop))
        if end > head and (stop - head > _LONGEST or is_next):
            break
        end = stop
    heading, below = line.strip("#*= :"), window.text(head, end).strip()
    mark = "" if heading.endswith(".") or not below else ":"
    text = f"{heading}{mark} {below}".strip()
    return RankedPassage(readable([text])[0], 1.0, window.cite(start, end))
