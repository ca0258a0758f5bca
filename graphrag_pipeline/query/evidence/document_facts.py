"""Authors and dates of documents, by their metadata: for a question that asks it of a document.

Metadata are of the document, and not of what it is about: a question must call it a report, a paper
or the like. "Who wrote Hamlet?" is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from graphrag_pipeline.core.text import terms_batch
from graphrag_pipeline.query.asked_dates import KEYS
from graphrag_pipeline.query.evidence.widening import RankedPassage
from graphrag_pipeline.query.question import AnalysedQuestion, words_pattern

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.sentences import Sentence
    from graphrag_pipeline.query.release import Release

_AUTHORS = ("author", "authors", "creator", "written_by", "byline")
_WROTE, _PUBLISHED, _DOCUMENT = (
    re.compile(words_pattern(section)) for section in ("wrote", "published", "document")
)
_SAYS_MUCH = 0.5
"""The share of a question's other words that a title or a file's name must have."""


def _metadata_sql(keys: Sequence[str]) -> str:
    values = ", ".join(f"json_extract_string(metadata, '/{key}')" for key in keys)
    return f"""
SELECT id, coalesce({values}) AS said
FROM documents SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS id) USING (id)
"""


_SAID = {"author": _metadata_sql(_AUTHORS), "date": _metadata_sql(KEYS)}


def told_by_metadata(
    index: Release, question: AnalysedQuestion, sentences: Sequence[Sentence]
) -> list[RankedPassage]:
    """Return who wrote, or when, the document that a question calls by its title, if it asks so.

    Only documents of the sentences count, and of these the ones whose titles or names have most of
    the question's words. The citation is the first of the sentences that are of the document.
    """
    asked = _asked(question)
    if not asked:
        return []
    first: dict[str, Sentence] = {}
    for sentence in sentences:
        first.setdefault(sentence.window.row["document_id"], sentence)
    called = _called(question, first)
    rows = index.rows(_SAID[asked], ids=called) if called else []
    said = {row["id"]: row["said"] for row in rows if row["said"]}
    return [
        RankedPassage(f"{asked}: {said[key]}", 1.0, first[key].citation, _title(first[key]))
        for key in called
        if key in said
    ]


def _asked(question: AnalysedQuestion) -> str:
    text = question.folded
    if not _DOCUMENT.search(text):
        return ""
    if _WROTE.search(text):
        return "author"
    return "date" if question.asks_for == "time" and _PUBLISHED.search(text) else ""


def _called(question: AnalysedQuestion, documents: Mapping[str, Sentence]) -> list[str]:
    """Return the documents whose titles and names have most of what else a question says."""
    bare = question.without(_WROTE).without(_PUBLISHED).without(_DOCUMENT)
    words = frozenset(bare.terms)
    if not words:
        return []
    names = [f"{_title(s)} {_file_name(s)}" for s in documents.values()]
    shared = [len(words.intersection(line.split())) for line in terms_batch(names)]
    most = max(shared, default=0)
    if most < _SAYS_MUCH * len(words):
        return []
    return [key for key, n in zip(documents, shared, strict=True) if n == most]


def _title(sentence: Sentence) -> str:
    return sentence.window.row["title"]


def _file_name(sentence: Sentence) -> str:
    name = sentence.window.row["uri"].rpartition("/")[2]
    return re.sub(r"[\W_]+", " ", name.partition(".")[0])
