"""References of an answer that share no word with the sentence that makes them, by rule.

A model may refer to a record that exists and says nothing of what the sentence claims. Whether a
record supports a sentence is for people to judge, or for another model; that it has not one word of
it, stop words left out, can be counted without either.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from graphrag_pipeline.core.languages import language_of
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import asked_in, counted, terms
from graphrag_pipeline.extraction.rules.sentences import sentence_spans
from graphrag_pipeline.query.results import Record, Unsupported, render_row
from graphrag_pipeline.query.writing.references import Reference, Shown

_REFERENCE = pattern_of(r"[ \t]?\[Data: ([^\[\]]*)\]")
_SECTION = pattern_of(r"(\w+) \(([^()]*)\)")
_NUMBER = pattern_of(
    r"(?<![\w.,])(?:\d{1,3}(?:[ \u00a0\u202f]\d{3})+|\d+(?:[.,'\u2019]\d+)*)(?!\w)"
)
_OF_A_LIST = pattern_of(r"^[ \t#*]*\d+[.)](?=\s)", re.MULTILINE)
_MOST_SHOWN = 300
_MOST_NAMED = 5
_STOPPED = "The model repeated itself and was stopped there: the answer may lack its end."


@dataclass(frozen=True)
class Support:
    """Counts of a text's references, each in each sentence, and of those without a word."""

    n_references: int
    unsupported: tuple[Unsupported, ...]


def reference_fields(
    text: str,
    shown: Shown,
    n_removed: int,
    *,
    told: Iterable[str] = (),
    may_refer: bool = True,
    is_stopped: bool = False,
) -> dict[str, Any]:
    """Return what an answer says of its references, by the names of its fields.

    ``told`` are the texts that the model had before it when it wrote. ``may_refer`` is false where
    it was told to refer to nothing, ``is_stopped`` true where it was stopped because it went round
    in circles.
    """
    support = support_of(text, shown)
    names_no_source = may_refer and not support.n_references
    return {
        "references_removed": n_removed,
        "references": support.n_references,
        "unsupported": support.unsupported,
        "names_no_source": names_no_source,
        "doubts": (
            *([_STOPPED] if is_stopped else []),
            *([_unnamed(shown)] if names_no_source else []),
            *_doubts(support, n_removed),
            *(_made_up(numbers_nowhere(text, told)) if may_refer and shown.records else []),
        ),
    }


def _unnamed(shown: Shown) -> str:
    if not shown.records:
        return "The answer names no source, for the model was shown none."
    return (
        "The answer names no source. The list is of what the model was shown: it may or may not "
        "support the answer."
    )


def _doubts(support: Support, n_removed: int) -> Iterator[str]:
    if support.unsupported:
        names = [*dict.fromkeys(each.reference for each in support.unsupported)]
        first_names = ", ".join(names[:_MOST_NAMED]) + (" ..." if names[_MOST_NAMED:] else "")
        n_references = counted(support.n_references, "reference")
        n = len(support.unsupported)
        share = "shares" if n == 1 else "share"
        yield f"{n:,} of {n_references} {share} no word with their sentences: {first_names}."
    if n_removed:
        yield f"{counted(n_removed, 'reference')} removed that named nothing the model was shown."


def _made_up(numbers: Sequence[str]) -> Iterator[str]:
    if numbers:
        first = ", ".join(numbers[:_MOST_NAMED]) + (" ..." if numbers[_MOST_NAMED:] else "")
        yield (
            f"{counted(len(numbers), 'number')} of the answer stand nowhere in what the model was "
            f"shown, worked out or made up: {first}."
            if len(numbers) > 1
            else f"A number of the answer stands nowhere in what the model was shown, worked out "
            f"or made up: {first}."
        )


def numbers_nowhere(text: str, told: Iterable[str]) -> list[str]:
    """Return the numbers of a text, as it writes them, that stand in none of these texts.

    Those of one digit are left out, which may stand there as a word, and so are those that count
    the points of a list. How a number is written does not matter: ``46,000`` stands in ``46000``,
    and ``1.5`` in ``1,500,000``.

    >>> numbers_nowhere("1. In 1953 it cost 46,000; call 207-555.", ["1953: 46000 crowns"])
    ['207', '555']
    """
    known = {_digits(number) for each in told for number in _NUMBER.findall(each)}
    plain = _OF_A_LIST.sub("", _REFERENCE.sub("", text))
    numbers = dict.fromkeys(_NUMBER.findall(plain))
    return [n for n in numbers if sum(map(str.isdecimal, n)) > 1 and _digits(n) not in known]


def _digits(number: str) -> str:
    """Return the digits of a number but the zeros around them, whatever script they are of."""
    digits = (str(unicodedata.decimal(sign)) for sign in number if sign.isdecimal())
    return "".join(digits).strip("0")


def support_of(text: str, shown: Shown) -> Support:
    """Compare the references of a text, which all resolve, with the sentences that make them.

    A reference belongs to the sentence before it, at the beginning of a line to the one after it,
    and on a line of its own to all the text before it. One to a record in another language, or in
    another script, is not compared, for words cannot tell then.
    """
    pairs = [
        (reference, sentence)
        for references, sentence in _referring(text)
        for reference in references
        if reference in shown
    ]
    return Support(
        len(pairs),
        tuple(
            Unsupported(f"{section} ({number})", sentence[-_MOST_SHOWN:])
            for (section, number), sentence in dict.fromkeys(pairs)
            if not _may_support(shown[section, number], sentence)
        ),
    )


def _referring(text: str) -> Iterator[tuple[list[Reference], str]]:
    """Yield the references of each bracket, and the sentence that makes them."""
    plain = _REFERENCE.sub("", text)
    spans = sentence_spans(plain)
    removed = 0
    for bracket in _REFERENCE.finditer(text):
        at = bracket.start() - removed
        removed += len(bracket[0])
        references = [
            (section, int(number))
            for section, numbers in _SECTION.findall(bracket[1])
            for number in numbers.split(",")
            if number.strip().isdecimal()
        ]
        yield references, _sentence_at(plain, spans, at)


def _sentence_at(plain: str, spans: list[tuple[int, int]], at: int) -> str:
    """Return the sentence that a reference belongs to, by its place in the text without any."""
    line_start, line_end = plain.rfind("\n", 0, at) + 1, plain.find("\n", at)
    line = plain[line_start : line_end if line_end >= 0 else len(plain)]
    if not re.search(r"\w", line):
        return plain[:at].strip()
    before = [span for span in spans if span[0] < at]
    if not re.search(r"\w", plain[line_start:at]):
        before = [span for span in spans if span[1] > at][:1] or before
    return plain[slice(*before[-1])] if before else plain.strip()


def _may_support(record: Record, sentence: str) -> bool:
    """Whether a record shares a word with a sentence, or cannot be compared with it."""
    row = _REFERENCE.sub("", render_row(record).partition(",")[2])
    language = language_of(row)
    with asked_in(language):
        said = set(terms(sentence))
        if not said or said & set(terms(row)):
            return True
    return language_of(sentence) != language or not _scripts(row)[_main_script(sentence)]


def _main_script(text: str) -> str:
    scripts = _scripts(text)
    return scripts.most_common(1)[0][0] if scripts else ""


def _scripts(text: str) -> Counter[str]:
    """Return how many letters of each script a text has, by the first word of their names."""
    return Counter(_script(sign) for sign in text if sign.isalpha())


@lru_cache(maxsize=1 << 12)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]
