"""Which of a series a question asks for: "Which PEP introduced structural pattern matching?"

Proposals, requests and orders are called by a number, which their texts hardly ever say, and after
what they are to bring: one whose title has most of the question's words is meant, before texts that
mention it. Else the sentences that say a number of the series may tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.prose import Prose, grade_of, readable
from graphrag_pipeline.core.records import record_line
from graphrag_pipeline.core.text import terms
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.asked_series import asked_series, titles_of_series
from graphrag_pipeline.query.evidence.widening import RankedPassage
from graphrag_pipeline.query.question import AnalysedQuestion, words_pattern

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.sentences import Sentence
    from graphrag_pipeline.query.release import Release

_BRINGS_IN = pattern_of(words_pattern("brings_in"))
_SAYS_MUCH = 0.5
"""The share of a question's other words, by rarity, that a title must have."""
_MOST, _READ = 2, 20
_FIRST_CHUNKS = """
SELECT arg_min(id, start_char) AS id FROM chunks
SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS document_id) USING (document_id)
GROUP BY document_id
"""


def first_of_series(index: Release, question: str) -> list[str]:
    """Return the first chunks of those of a series that a question may ask for."""
    meant = _meant(index, AnalysedQuestion.of(question))
    return [row["id"] for row in index.rows(_FIRST_CHUNKS, ids=meant)] if meant else []


def told_of_series(
    index: Release, question: AnalysedQuestion, sentences: Sequence[Sentence]
) -> list[RankedPassage]:
    """Return which of a series is meant, with what its text says most to the question."""
    told: list[RankedPassage] = []
    words = frozenset(question.terms)
    for document in _meant(index, question):
        own = [s for s in sentences if s.document_id == document]
        own = sorted(own, key=lambda s: s.start)[:_READ]
        prose = [s for s in own if grade_of(s.first)[0] >= Prose.ITEM] or own
        best = max(prose, key=lambda s: len(words.intersection(terms(s.first))), default=None)
        if best is not None:
            alone = best.window.cite(best.start, best.start + len(best.first))
            line = record_line(best.window.row["title"], readable([best.first])[0])
            told.append(RankedPassage(line, 1.0, alone))
    return told


def _meant(index: Release, question: AnalysedQuestion) -> list[str]:
    """Return the documents of an asked series whose titles have most of the question's words.

    None where several have as many, and not all, and say as much else.
    """
    series = asked_series(index, question)
    if not series:
        return []
    weights = op.rarity(index, question)
    words = frozenset(question.without(_BRINGS_IN).terms) & frozenset(weights)
    words -= frozenset(terms(series))
    total = sum(weights[word] for word in words)
    shares: list[tuple[float, float, str]] = []
    for key, own in titles_of_series(index)[series]:
        share = sum(weights[word] for word in words & own)
        if share > 0 and share >= _SAYS_MUCH * total:
            shares.append((-round(share / total, 6), -len(words & own) / len(own), key))
    best = [row for row in sorted(shares) if row[0] == min(shares)[0]]
    if len(best) > 1:
        # Of equal ones those that say hardly anything else; all of them where they say all.
        is_alone = best[0][0] == -1.0 or best[0][1] < best[1][1]
        best = best[: _MOST if best[0][0] == -1.0 else 1] if is_alone else []
        best = [row for row in best if -row[1] >= _SAYS_MUCH]
    return [key for *_, key in best]
