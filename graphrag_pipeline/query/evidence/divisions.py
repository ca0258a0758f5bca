"""Divisions that a question calls by their numbers: chapter 36, act 2 scene 1, Article 5, § 12.

What such a division says begins below its heading: that is where somebody would look it up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import permutations
from typing import TYPE_CHECKING

from graphrag_pipeline.core.prose import readable
from graphrag_pipeline.core.text import terms
from graphrag_pipeline.query.evidence.widening import RankedPassage
from graphrag_pipeline.query.question import AnalysedQuestion, words_pattern

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.sentences import Sentence

_ASKED = re.compile(
    rf"(?:({words_pattern('division')})\s+|§+\s*)(\d{{1,4}}(?:\.\d{{1,3}}){{0,3}}|[ivxlc]{{1,7}})\b"
)
_MOST = 3
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
    if not asked:
        return ""
    orders = (r"\b[^\n]{0,20}\b".join(each) for each in permutations(asked))
    return rf"(?im)^[#*=\s]{{0,8}}(?:{'|'.join(orders)})(?:\W|$)"


def _pairs(question: str) -> list[str]:
    found = _ASKED.findall(AnalysedQuestion.of(question).folded)[:_MOST]
    return [_division(word, number) for word, number in found]


def _division(word: str, number: str) -> str:
    numbers = [re.escape(number)]
    if number.isdigit() and 0 < int(number) <= _MOST_ROMAN:
        numbers.append(_as_roman(int(number)))
    elif number.isalpha():
        numbers += (str(n) for n in range(1, _MOST_ROMAN + 1) if _as_roman(n) == number)
    kind = rf"{re.escape(word)}\s+" if word else r"§\s*"
    # Headings of manuals have the numbers alone: 3.2 Fees.
    return rf"(?:{kind}){'?' * ('.' in number)}(?:{'|'.join(numbers)})"


def _as_roman(number: int) -> str:
    letters = ""
    for value, sign in _ROMAN:
        letters += sign * (number // value)
        number %= value
    return letters


def told_by_division(
    question: AnalysedQuestion, sentences: Sequence[Sentence]
) -> list[RankedPassage]:
    """Return how the divisions begin that a question calls by number, of documents that it names.

    Of all, where it names none.
    """
    pattern = division_pattern(question)
    if not pattern:
        return []
    heading = re.compile(pattern)
    begun = [
        s for s in sentences if heading.match(s.first) and s.window.line_start(s.start) == s.start
    ]
    words = frozenset(question.terms)
    named = [s for s in begun if words.issuperset(terms(s.window.row["title"]))]
    return [_beginning(each) for each in named or begun]


def _beginning(sentence: Sentence) -> RankedPassage:
    """Return a heading with what stands below it, up to the next or as much as is read at once."""
    window, start = sentence.window, sentence.start
    line = window.text(start, min(start + _LONGEST_HEADING, window.end)).split("\n", 1)[0]
    end = head = start + len(line)
    for _, stop in window.whole.values():
        if stop <= end:
            continue
        if stop - head > _LONGEST and end > head:
            break
        end = stop
    heading, below = line.strip("#*= .:"), window.text(head, end).strip()
    text = f"{heading}: {below}" if below else heading
    return RankedPassage(readable([text])[0], 1.0, window.cite(start, end))
