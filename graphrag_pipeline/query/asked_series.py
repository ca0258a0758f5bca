"""Series of documents that are called by numbers (PEP 8), and which of them a question asks of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import fold, terms
from graphrag_pipeline.graph.titles import NUMBERED
from graphrag_pipeline.query.question import AnalysedQuestion, words_pattern

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_WHICH = pattern_of(rf"(?:{words_pattern('which')})\s+([^\W\d_]{{2,6}})(?![\w-])(?!\s+\d)")
_NUMBER = pattern_of(r"[ -]\d+$")
_TITLES = "SELECT id, title FROM documents WHERE regexp_matches(title, '[ -][0-9]{1,6}: ')"


def asked_series(index: Release, question: str) -> str:
    """Return the word that a series has before its numbers, of which a question asks for one."""
    found = _WHICH.findall(AnalysedQuestion.of(question).folded)
    known = titles_of_series(index) if found else {}
    return next((word for each in found for word in (each, each[:-1]) if word in known), "")


def titles_of_series(index: Release) -> dict[str, list[tuple[str, frozenset[str]]]]:
    """Return the documents of each series, with the search terms of their titles."""
    return index.once("series of titles", _titles)


def _titles(index: Release) -> dict[str, list[tuple[str, frozenset[str]]]]:
    series: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for row in index.rows(_TITLES):
        if number := NUMBERED.match(row["title"]):
            said = frozenset(terms(row["title"][number.end() :]))
            series.setdefault(fold(_NUMBER.sub("", number[0])), []).append((row["id"], said))
    return series
