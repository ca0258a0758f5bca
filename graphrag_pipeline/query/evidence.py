"""Evidence: the sentences of retrieved chunks that say most to the question, with their places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_pipeline.query.citations import Passage, passages_of
from graphrag_pipeline.query.operators.scoring import relevance
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.timing import operator
from graphrag_pipeline.text import terms

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

RANK_WEIGHT = 0.15
ENTITY_WEIGHT = 0.1
SHORT_TERMS = 3
"""A sentence with fewer terms than this counts half: it is a heading or an exclamation."""
LEAST_SHARE = 0.35
"""A passage that scores less than this share of the best says nothing to the question."""

_CONTEXT_CHARS = 400
_LONGEST_SENTENCE = 600
_SAME = 0.7
_PIECE = re.compile(rf"\S.{{0,{_LONGEST_SENTENCE - 1}}}(?=\s|$)|\S.{{0,{_LONGEST_SENTENCE - 1}}}", re.S)

# A chunk with some of the document around it, so that sentences at its edges are whole.
_WINDOWS = """
SELECT c.id, c.document_id, c.start_char, c.end_char, d.n_chars,
       greatest(c.start_char - $around, 0) AS window_start,
       substr(d.text, greatest(c.start_char - $around, 0) + 1,
              c.end_char + $around - greatest(c.start_char - $around, 0)) AS text
FROM (SELECT unnest($ids::VARCHAR[]) AS id, generate_subscripts($ids::VARCHAR[], 1) AS place)
JOIN chunks c USING (id) JOIN documents d ON d.id = c.document_id ORDER BY place
"""


@dataclass(frozen=True)
class _Sentence:
    text: str
    document_id: str
    chunk_id: str
    start_char: int
    end_char: int
    rank: int


@operator
def find_evidence(
    index: Release, question: str, records: Sequence[Record], most: int
) -> list[Passage]:
    """Return up to ``most`` distinct passages that bear on a question, best first.

    Findings of reports, where there are any, stand as they are ranked. Otherwise the sentences of
    the chunks are ranked by words shared with the question, embedding similarity, rank of their
    chunk, and how many of the retrieved entities they name.
    """
    findings = [record for record in records if record.kind == "finding"]
    if findings:
        return _distinct(passages_of(index, findings), most)
    sentences = list(_sentences(index, [r.id for r in records if r.kind == "chunk"]))
    names = {record.title for record in records if record.kind == "entity"}
    return _distinct(_ranked(index, question, sentences, names), most)


def _ranked(
    index: Release, question: str, sentences: Sequence[_Sentence], names: set[str]
) -> list[Passage]:
    scores = relevance(index, question, [sentence.text for sentence in sentences])
    entities = [term for term in map(terms, names) if term]
    passages = [
        Passage(
            text=sentence.text,
            chunk_id=sentence.chunk_id,
            start_char=sentence.start_char,
            end_char=sentence.end_char,
            score=_score(sentence, score, entities),
        )
        for sentence, score in zip(sentences, scores, strict=True)
    ]
    return sorted(passages, key=lambda passage: -passage.score)


def _score(sentence: _Sentence, relevant: float, entities: Sequence[Sequence[str]]) -> float:
    words = terms(sentence.text)
    held = set(words)
    named = sum(held.issuperset(entity) for entity in entities)
    score = relevant + RANK_WEIGHT / (1 + sentence.rank) + ENTITY_WEIGHT * min(1.0, named / 3)
    return score / 2 if len(words) < SHORT_TERMS else score


def _sentences(index: Release, chunks: Sequence[str]) -> Iterator[_Sentence]:
    """Yield the sentences of chunks, each place once, whole where they cross a chunk's edge."""
    seen: set[tuple[str, int]] = set()
    for rank, row in enumerate(index.rows(_WINDOWS, ids=list(chunks), around=_CONTEXT_CHARS)):
        for start, end in _spans_within(row):
            if (row["document_id"], end) not in seen:
                seen.add((row["document_id"], end))
                text = row["text"][start - row["window_start"] : end - row["window_start"]]
                yield _Sentence(text, row["document_id"], row["id"], start, end, rank)


def _spans_within(row: dict[str, object]) -> Iterator[tuple[int, int]]:
    """Yield document spans of the sentences that touch a chunk; none is cut by the window."""
    from graphrag_pipeline.extraction.sentences import sentence_spans

    text, offset = str(row["text"]), int(str(row["window_start"]))
    first, last = int(str(row["start_char"])), int(str(row["end_char"]))
    window_end = offset + len(text)
    for start, end in _short_spans(text, sentence_spans(text)):
        begin, stop = offset + start, offset + end
        if begin == offset and offset > 0:
            begin = max(begin, first)
        if stop == window_end and window_end < int(str(row["n_chars"])):
            stop = min(stop, last)
        if begin < last and stop > first and begin < stop:
            yield begin, stop


def _short_spans(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for start, end in spans:
        if end - start <= _LONGEST_SENTENCE:
            yield start, end
        else:
            yield from (match.span() for match in _PIECE.finditer(text, start, end))


def _distinct(passages: Sequence[Passage], most: int) -> list[Passage]:
    """Return the first ``most`` that do not say what an earlier one said, best first."""
    floor = LEAST_SHARE * max((passage.score for passage in passages), default=0.0)
    kept: dict[frozenset[str], Passage] = {}
    for passage in passages:
        words = frozenset(terms(passage.text) or [passage.text])
        if passage.score >= floor and all(_overlap(words, other) < _SAME for other in kept):
            kept[words] = passage
        if len(kept) == most:
            break
    return list(kept.values())


def _overlap(words: frozenset[str], other: frozenset[str]) -> float:
    return len(words & other) / len(words | other)
