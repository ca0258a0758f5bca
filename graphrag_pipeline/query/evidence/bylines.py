"""Authors and dates that the head of a document says in its text, as papers do, or its end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import alternatives, word_lists
from graphrag_pipeline.extraction.rules.entity_types import (
    is_listed_given,
    is_place,
    is_surname,
)
from graphrag_pipeline.extraction.rules.words import usually_lower
from graphrag_pipeline.query.asked_dates import dates_in

_MOST_LINES = 12
_LONGEST_LINE = 300
_ABSTRACT = pattern_of(
    r"\W*(?:\d\W+)?(?:abstract|summary|zusammenfassung|kurzfassung|résumé|resumen|riassunto|resumo"
    r"|sommario|samenvatting|摘要|概要|要旨)\b",
    re.I,
)
_MARKS = pattern_of(r"\S+@\S+|\(\S*@\S*\)|[*_#†‡§¶∗]|(?<=[^\W\d_])\d(?:,?\d)*|[⁰¹²³⁴-⁹]|\[\d+\]")
_LISTS = word_lists("questions.txt")
_LEADS = alternatives(words.replace("_", " ") for words in _LISTS["byline"])
_BY = pattern_of(rf"^\W*(?:{_LEADS})\b\s*[:：]?\s+(?=\S)", re.I)
_OF_GROUPS = pattern_of(rf"\b(?:{alternatives(_LISTS['group_begins'])})", re.I)
_PARTED = pattern_of(r"\s*(?:,\s*(?:and|und|et|y|e|en)\s|[,;&·]|\s(?:and|und|et|y|e|en)\s)\s*")
_WORD = pattern_of(r"[^\W\d_][\w.'’-]*")
_PARTICLES = frozenset(
    (
        *("de", "da", "do", "dos", "du", "del", "della", "di", "la", "le", "al", "el", "bin"),
        *("van", "von", "der", "den", "ter", "ten", "te"),
    )
)


def authors_in(title: str, head: str, end: str) -> str:
    """Return who wrote a document, by the line below its title or one that says so; "" if none.

    Names without a word such as "by" count only above an abstract.
    """
    lines = list(_lines(head, title))
    abstract = next((n for n, line in enumerate(lines) if _ABSTRACT.match(line)), 0)
    for number, line in enumerate(lines):
        if match := _BY.match(line):
            if names := _names(line[match.end() :]):
                return ", ".join(names)
        elif number < abstract and (names := _all_names(line)):
            below = lines[number + 1 : abstract] if len(names) == 1 else []
            return ", ".join((*names, *(name for each in below for name in _all_names(each))))
    said = (_names(line[m.end() :]) for line in _lines(end, "") if (m := _BY.match(line)))
    return ", ".join(next(filter(None, said), []))


def date_in(title: str, head: str) -> str:
    """Return the first date in the lines between a title and an abstract; "" if there is none."""
    lines = list(_lines(head, title))
    abstract = next((n for n, line in enumerate(lines) if _ABSTRACT.match(line)), 0)
    return next((found for line in lines[:abstract] for found in dates_in(line)), "")


def _lines(text: str, title: str) -> Iterator[str]:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    for line in lines[:_MOST_LINES] if title else lines[-_MOST_LINES:]:
        bare = " ".join(_MARKS.sub(" ", line[:_LONGEST_LINE]).split())
        if bare and bare.casefold() != title.casefold():
            yield bare


def _all_names(line: str) -> Sequence[str]:
    """Return the names of a line that says nothing else."""
    parts = [part for part in _PARTED.split(line.strip(" ,;.")) if part]
    return parts if parts and all(map(_is_name, parts)) else []


def _names(line: str) -> Sequence[str]:
    """Return the names with which a line begins."""
    names: list[str] = []
    for part in _PARTED.split(line.strip(" ,;.:")):
        bare = part.strip(" .")
        if not _is_name(bare):
            break
        names.append(bare)
    return names


def _is_name(part: str) -> bool:
    words = part.split()
    capital = [word for word in words if word[:1].isupper()]
    return (
        2 <= len(words) <= 5
        and len(capital) >= 2
        and all(_WORD.fullmatch(word) for word in words)
        and all(word in capital or word.casefold() in _PARTICLES for word in words)
        and not is_place(part)
        and not _OF_GROUPS.search(part)
        and not all(map(_is_common, words))
    )


def _is_common(word: str) -> bool:
    """Whether a word is one of the language, and no name of people: Second Edition."""
    return usually_lower(word.casefold()) and not (is_surname(word) or is_listed_given(word))
