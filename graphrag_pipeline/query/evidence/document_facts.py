"""Authors, dates and other fields of documents: for a question that asks it of a document.

Metadata are of the document, and not of what it is about: a question should call it a report, a
paper or the like. "Who wrote Hamlet?" is answered by them only where no text answers it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.records import field_line, record_line
from graphrag_pipeline.core.text import fold, terms, terms_batch
from graphrag_pipeline.graph.titles import NUMBERED
from graphrag_pipeline.query.asked_authors import AUTHORS
from graphrag_pipeline.query.asked_documents import KEYS
from graphrag_pipeline.query.evidence.bylines import authors_in, date_in
from graphrag_pipeline.query.evidence.latest import version_of
from graphrag_pipeline.query.evidence.widening import RankedPassage
from graphrag_pipeline.query.question import AnalysedQuestion, without_asking, words_pattern

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.sentences import Sentence
    from graphrag_pipeline.query.evidence.units import Unit
    from graphrag_pipeline.query.release import Release

_WROTE, _PUBLISHED, _DOCUMENT, _GUIDE = (
    pattern_of(words_pattern(section)) for section in ("wrote", "published", "document", "guide")
)
_OF_VERSION = pattern_of(r"\bv(?:ersion|\.)? ?\d[\d.]*")
_COUNTED = pattern_of(r"^\W*(?!(?:19|20)\d\d\b)\d{1,5}[\s.:_-]+(?=[^\W\d])")
"""The number at the beginning of a title that is no year."""
_OF_MANUAL = pattern_of(r"(?<=\w)\([1-9]\w{0,3}\)$")
"""How titles of manual pages end: ls(1)."""
_FEWEST_TITLES, _IN_NEARLY_ALL = 4, 0.8
_HEAD, _END = 3_000, 1_000  # characters
_SAYS_MUCH = 0.5
"""The share of a question's other words that a title or a file's name must have."""


def _metadata_sql(keys: Sequence[str]) -> str:
    values = ", ".join(f"json_extract_string(metadata, '/{key}')" for key in keys)
    return f"""
SELECT id, title, coalesce({values}) AS said,
       left(text, {_HEAD}) AS head, right(text, {_END}) AS tail
FROM documents SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS id) USING (id)
"""


_METADATA = """
SELECT id, metadata::VARCHAR AS metadata
FROM documents SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS id) USING (id)
"""
_FIELDS = "SELECT DISTINCT unnest(json_keys(metadata)) AS name FROM documents ORDER BY name"
_SAID = {"author": _metadata_sql(AUTHORS), "date": _metadata_sql(KEYS)}


def told_by_metadata(
    index: Release,
    question: AnalysedQuestion,
    sentences: Sequence[Sentence],
    *,
    is_answered: bool,
) -> list[RankedPassage]:
    """Return who wrote, or when, the document that a question calls by its title, if it asks so.

    Only documents of the sentences count, and of these the ones whose titles or names have most of
    the question's words; all of a title must be said where it is called no document, and the texts
    must not have answered. The citation is the first of the sentences that are of the document.
    """
    first: dict[str, Sentence] = {}
    for sentence in sentences:
        first.setdefault(sentence.document_id, sentence)
    asked, is_document = _asked(question), bool(_DOCUMENT.search(question.folded))
    numbers = _numbers(question, map(_title, first.values())) if asked else {}
    called = [key for key, sentence in first.items() if _title(sentence) in numbers]
    if asked and not called and (is_document or not is_answered):
        called = _called(question, first) if is_document else _named(question, first)
    rows = index.rows(_SAID[asked], ids=called) if called else []
    said = {row["id"]: field_line(asked, words) for row in rows if (words := _said(asked, row))}
    return [
        RankedPassage(record_line(_title(first[key]), line), 1.0, first[key].citation)
        for key, line in (_fields(index, question, first) or said).items()
    ]


def _said(asked: str, row: Mapping[str, str]) -> str:
    """Return what metadata say, or the text itself; of a date that first: files are younger."""
    if asked == "date":
        return date_in(row["title"], row["head"]) or row["said"] or ""
    return row["said"] or authors_in(row["title"], row["head"], row["tail"])


def _asked(question: AnalysedQuestion) -> str:
    text = question.folded
    if _WROTE.search(text):
        return "author"
    return "date" if question.asks_for == "time" and _PUBLISHED.search(text) else ""


def _called(question: AnalysedQuestion, documents: Mapping[str, Sentence]) -> list[str]:
    """Return the documents whose titles and names have most of what else a question says."""
    bare = question.without(_WROTE).without(_PUBLISHED).without(_DOCUMENT)
    words = frozenset(bare.terms)
    if not words:
        return []
    shared = {key: len(words & own) for key, own in _words_of_names(documents).items()}
    most = max(shared.values(), default=0)
    if most < _SAYS_MUCH * len(words):
        return []
    return [key for key, n in shared.items() if n == most]


def _words_of_names(documents: Mapping[str, Sentence]) -> dict[str, frozenset[str]]:
    """Return the search terms of the title and the file's name of each document."""
    names = [f"{_title(s)} {_file_name(s)}" for s in documents.values()]
    lines = terms_batch(names)
    return {key: frozenset(line.split()) for key, line in zip(documents, lines, strict=True)}


def _fields(
    index: Release, question: AnalysedQuestion, documents: Mapping[str, Sentence]
) -> dict[str, str]:
    """Return the field that a question asks for of the documents that all its other words name."""
    words = frozenset(question.terms)
    known = index.once("terms of fields", _terms_of_fields)
    asked = sorted((own for own in known if own < words), key=len, reverse=True)
    if not asked:
        return {}
    names_of = _words_of_names(documents)
    rows = index.rows(_METADATA, ids=[key for key, own in names_of.items() if words & own])
    said: dict[str, str] = {}
    for row in rows:
        fields = json.loads(row["metadata"] or "{}")
        for own in asked:
            name = next((name for name in known[own] if name in fields), "")
            value, of_title = " ".join(str(fields.get(name, "")).split()), names_of[row["id"]]
            is_new = not of_title.issuperset(terms(value))
            if is_new and row["id"] not in said and words - own <= of_title:
                said[row["id"]] = field_line(name, value)
    return said


def _terms_of_fields(index: Release) -> dict[frozenset[str], list[str]]:
    """Return the names of all fields by their search terms."""
    fields: dict[frozenset[str], list[str]] = {}
    for row in index.rows(_FIELDS):
        fields.setdefault(frozenset(terms(row["name"])), []).append(row["name"])
    fields.pop(frozenset(), None)
    return fields


def _named(question: AnalysedQuestion, documents: Mapping[str, Sentence]) -> list[str]:
    """Return the documents of which a question says all of the title or of the file's name."""
    words = frozenset(question.terms)
    names = [(terms(_title(s)), terms(_file_name(s))) for s in documents.values()]
    return [
        key
        for key, each in zip(documents, names, strict=True)
        if any(name and words.issuperset(name) for name in each)
    ]


def tell_titles(index: Release, question: AnalysedQuestion, units: Sequence[Unit]) -> None:
    """Tell units with the number by which a question calls their document.

    Or with the title, if it asks for a number, a time, a person or a place, not of the document
    itself, or with the name of a manual page: a text hardly ever says its own title. Only units
    that say something else are told so, beside names of code.
    """
    words = frozenset(question.terms).difference(terms(" ".join(question.figures)))
    titles = {unit.title: _OF_MANUAL.sub("", unit.title) for unit in units}
    is_of_text = question.asks_for and not _asked(question)
    named = {title: name for title, name in titles.items() if is_of_text or name != title}
    called = called_whole(question, named) | _numbers(question, titles)
    for unit in units if called else ():
        name = called.get(unit.title, "")
        if name and not (words - {*terms(name)}).isdisjoint(terms(unit.told)):
            unit.told = f"{unit.told} {name}"


def called_whole(question: AnalysedQuestion, titles: Mapping[str, str]) -> dict[str, str]:
    """Return what those titles are about that a question says whole, by their keys.

    Without words that nearly all of the titles have, as those of cheat sheets do.
    """
    subjects = {key: subject_of(title) for key, title in titles.items()}
    lines = terms_batch(list(subjects.values()))
    words_of = {key: frozenset(line.split()) for key, line in zip(subjects, lines, strict=True)}
    counts = Counter(word for words in words_of.values() for word in words)
    least = max(_FEWEST_TITLES, _IN_NEARLY_ALL * len(titles))
    said = {*question.terms, *(word for word, number in counts.items() if number >= least)}
    asked = frozenset(question.terms)
    return {
        key: subjects[key]
        for key, words in words_of.items()
        if words <= said and not words.isdisjoint(asked)
    }


def subject_of(title: str) -> str:
    """Return what a title is about, folded: without *How to make* and the like, or its number.

    >>> subject_of("How to make plum cake"), subject_of("0042 mooring rules")
    ('plum cake', 'mooring rules')
    """
    return without_asking(_GUIDE.sub(" ", _COUNTED.sub("", fold(title)))).strip()


def _numbers(question: AnalysedQuestion, titles: Iterable[str]) -> dict[str, str]:
    """Return the titles that a question calls by their numbers in a series, as PEP 8, and these.

    Or by their versions: version 2 is v2.
    """
    words = frozenset(question.terms)
    numbers = {title: number[0] for title in {*titles} if (number := NUMBERED.match(title))}
    called = {title: each for title, each in numbers.items() if words.issuperset(terms(each))}
    if version := question.read(version_of):
        said = " ".join(_OF_VERSION.findall(question.folded))
        called |= {title: said for title in {*titles} if version_of(title) == version}
    return called


def _title(sentence: Sentence) -> str:
    return sentence.window.row["title"]


def _file_name(sentence: Sentence) -> str:
    name = sentence.window.row["uri"].rpartition("/")[2]
    return re.sub(r"[\W_]+", " ", name.partition(".")[0])
