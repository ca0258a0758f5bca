"""Sections of a document that a question calls by its title: the steps, what it takes, its limits.

"How do I make plum cake?" is answered by the steps of the document on plum cake, and "What are the
limits of the Osvik crane?" by its section *Limits*, not by the sentence that has most of the words.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.prose import readable_list
from graphrag_pipeline.core.text import fold, terms
from graphrag_pipeline.query.evidence.document_facts import called_whole, subject_of
from graphrag_pipeline.query.evidence.units import BLOCKS_OF, HEADING
from graphrag_pipeline.query.evidence.widening import RankedPassage
from graphrag_pipeline.query.operators.chunks import cite_text, documents_of
from graphrag_pipeline.query.question import AnalysedQuestion, words_pattern

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.sentences import Sentence
    from graphrag_pipeline.query.release import Release

_HOW, _STEPS, _NEEDS, _NEEDED, _DOES = (
    pattern_of(words_pattern(section))
    for section in ("how_done", "steps", "needs", "needed", "does")
)
_PRAISE = pattern_of(rf"^(?:[\w-]+ ){{0,2}}[\w-]+['’]s\s|\s\([^()]*\)$|{words_pattern('praise')}")
_NUMBERED = pattern_of(r"\(?1[.)]\s")
_FIRST_UNSPACED = "\u2e80"
_LONGEST, _LONGEST_PROSE, _FAR = 1_200, 420, 200  # characters
_MOST = 2


@dataclass(frozen=True)
class _Section:
    """A heading, and the places in its document where it begins and where its text does and ends.

    ``last`` is where the sections below it end, ``lists`` are the spans of the lists in its text.
    """

    heading: str
    start: int
    body: int
    end: int
    last: int
    lists: Sequence[tuple[int, int]]

    def is_of(self, heads: re.Pattern[str], question: AnalysedQuestion) -> bool:
        """Whether its heading is one of a kind, and says nothing besides that is not asked for."""
        heading = fold(self.heading)
        others = terms(heads.sub(" ", heading))
        is_unspaced = max(heading, default="") >= _FIRST_UNSPACED
        return heads.search(heading) is not None and (
            is_unspaced or frozenset(question.terms).issuperset(others)
        )

    @property
    def words(self) -> frozenset[str]:
        return frozenset(terms(self.heading))


def told_by_section(
    index: Release, question: AnalysedQuestion, sentences: Sequence[Sentence]
) -> list[RankedPassage]:
    """Return the section that a question asks for of the document whose title it says, whole.

    What else it says must be the section's heading. Who asks how something is done is told the
    steps: the first numbered list, or what stands below a heading such as *Steps*; who asks what it
    takes, what stands below *Ingredients* or *Requirements*.
    """
    if question.asks_for or not index.has_rows("blocks"):
        return []
    titles = {s.document_id: s.window.row["title"] for s in sentences}
    subjects = called_whole(question, titles) or called_whole(question, _unpraised(titles))
    about = {key: frozenset(terms(own)) for key, own in subjects.items()}
    said = {key: len(own.intersection(question.terms)) for key, own in about.items()}
    most = max(said.values(), default=0)
    named = [key for key, n in said.items() if n == most][:_MOST]
    documents = documents_of(index, named)
    blocks = index.rows(BLOCKS_OF, ids=named) if named else []
    told: list[RankedPassage] = []
    for document in documents:
        own = [block for block in blocks if block["document_id"] == document["id"]]
        sections = list(_sections(document["text"], own))
        span = _asked(question, document, sections)
        if span:
            told.append(_passage(index, document, *span))
    return told


def _unpraised(titles: Mapping[str, str]) -> dict[str, str]:
    """Return titles without whose or how good something is: *Grandma's easy plum cake*."""
    return {key: _PRAISE.sub(" ", fold(title)) for key, title in titles.items()}


def _sections(text: str, blocks: Sequence[Mapping[str, Any]]) -> Iterator[_Section]:
    """Yield what stands above the first heading of a text, and each heading with what is below."""
    heads = [(b["start_char"], b["end_char"]) for b in blocks if b["kind"] == "heading"]
    lists = [(b["start_char"], b["end_char"]) for b in blocks if b["kind"] == "list"]
    starts = [start for start, _ in lists]
    end_of_text = len(text), len(text)
    for n, ((start, body), (end, _)) in enumerate(pairwise([(0, 0), *heads, end_of_text])):
        level = _level(text[start:body])
        later = (at for at, stop in heads[n:] if _level(text[at:stop]) <= level)
        last = next(later, len(text)) if level else end
        within = lists[bisect_left(starts, body) : bisect_left(starts, end)]
        yield _Section(text[start:body].strip("#*=~ \n"), start, body, end, last, within)


def _level(heading: str) -> int:
    return len(heading) - len(heading.lstrip("#"))


def _asked(
    question: AnalysedQuestion, document: Mapping[str, Any], sections: Sequence[_Section]
) -> tuple[int, int] | None:
    """Return where what is asked of a document begins and ends; None where nothing tells."""
    text, subject = document["text"], subject_of(document["title"])
    of_subject = frozenset(terms(subject))
    bare = question.without(_whole_words(subject))
    asks_how, asks_needs = _HOW.search(bare.folded), _NEEDS.search(bare.folded)
    bare = bare.without(_HOW).without(_NEEDS).without(_DOES)
    rest = _terms(bare) - of_subject
    own = [s for s in sections if rest and rest <= s.words and s.start]
    if own:
        # *Not allowed* has the terms of *Allowed*.
        said = question.folded
        return _whole(
            text,
            min(own, key=lambda s: (fold(s.heading) not in said, len(s.words), -len(s.heading))),
        )
    if asks_needs or _NEEDED.search(bare.folded):
        below = (s for s in sections if s.is_of(_NEEDED, question))
        return next((_whole(text, s) for s in below), None)
    if asks_how or _STEPS.search(bare.folded):
        rest = _terms(bare.without(_STEPS)) - of_subject
        below = [s for s in sections if s.is_of(_STEPS, question) and s.start]
        return _steps(text, sections, below, rest)
    return None


def _whole_words(text: str) -> re.Pattern[str]:
    """Return a pattern of a text that is no part of longer words, where its script has spaces."""
    begin = r"(?<!\w)" if text[:1] < _FIRST_UNSPACED else ""
    end = r"(?!\w)" if text[-1:] < _FIRST_UNSPACED else ""
    return re.compile(f"{begin}{re.escape(text)}{end}")


def _terms(question: AnalysedQuestion) -> frozenset[str]:
    """Return its terms without single signs of unspaced scripts, which are left of what is gone."""
    return frozenset(term for term in question.terms if len(term) > 1 or term.isascii())


def _steps(
    text: str, sections: Sequence[_Section], below: Sequence[_Section], rest: Set[str]
) -> tuple[int, int] | None:
    """Return the first steps that say the rest of a question: ``below`` a heading of steps, or any.

    Numbered ones come with the heading that is near above them.
    """
    for section in below:
        if rest <= frozenset(terms(text[section.start : section.end])):
            return _whole(text, section)
    for section, (start, end) in ((s, span) for s in sections for span in s.lists):
        if _NUMBERED.match(text, start) and rest <= frozenset(terms(text[start:end])):
            is_near = start - section.body <= _FAR
            return (section.start if is_near else start), _cut(text, start, end)
    return None


def _whole(text: str, section: _Section) -> tuple[int, int]:
    """Return where a section begins and ends: a list in it whole, of prose the beginning.

    Where its text begins with other headings, these are its steps.
    """
    near = [span for span in section.lists if span[0] - section.body <= _FAR]
    if near:
        return section.start, _cut(text, *near[0])
    if not text[section.body : section.end].strip():
        return section.start, _cut(text, section.body, section.last)
    return section.start, _cut(text, section.body, section.end, _LONGEST_PROSE)


def _cut(text: str, start: int, end: int, longest: int = _LONGEST) -> int:
    """Return the end of what is shown between two places: no line is cut, but for the first."""
    if end - start > longest:
        end = max(text.rfind("\n", start, start + longest), start)
        end = end if end > start else start + longest
    return start + len(text[start:end].rstrip())


def _passage(index: Release, document: Mapping[str, Any], start: int, end: int) -> RankedPassage:
    text = document["text"][start:end]
    heading, _, below = text.partition("\n")
    citation = cite_text(index, document, start, end)
    is_headed = bool(below.strip()) and not _NUMBERED.match(text)
    below = HEADING.sub(r"\1:", below.strip())
    shown = f"{heading.strip('#*=~ ')}:\n{below}" if is_headed else text
    return RankedPassage(readable_list(shown), 1.0, citation)
