"""Evidence: the sentences of retrieved chunks that say most to the question, with their places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.text import terms
from graphrag_pipeline.extraction.rules.sentences import sentence_spans
from graphrag_pipeline.query.citations import citations_of, cite_chunk
from graphrag_pipeline.query.operators.chunks import chunk_records
from graphrag_pipeline.query.operators.scoring import relevance
from graphrag_pipeline.query.results import Citation, Record
from graphrag_pipeline.query.trace import operator

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

RANK_WEIGHT = 0.15
ENTITY_WEIGHT = 0.1
ENTITIES_FOR_FULL_WEIGHT = 3
SHORT_TERMS = 3
"""A sentence with fewer terms, or that does not end as one, counts half: it is a heading."""
LEAST_SHARE = 0.35
"""A passage that scores less than this share of the best says nothing to the question."""

_SENTENCE_ENDS = tuple(".!?。！？…\"'”’»」』)]")
_CONTEXT_CHARS = 400
_LONGEST_SENTENCE = 600
_SAID = 0.75
_REST = rf".{{0,{_LONGEST_SENTENCE - 1}}}"
_PIECE = re.compile(rf"\S(?:{_REST}(?=\s|$)|{_REST})", re.DOTALL)

# A chunk with some of the document around it, so that sentences at its edges are whole.
_WINDOWS = """
SELECT c.id, c.document_id, d.title, d.uri, c.start_char, c.end_char, d.n_chars,
       greatest(c.start_char - $around, 0) AS window_start,
       substr(d.text, greatest(c.start_char - $around, 0) + 1,
              c.end_char + $around - greatest(c.start_char - $around, 0)) AS text
FROM (SELECT unnest($ids::JSON::VARCHAR[]) AS id,
             generate_subscripts($ids::JSON::VARCHAR[], 1) AS place)
JOIN chunks c USING (id) JOIN documents d ON d.id = c.document_id ORDER BY place
"""

_SUPPORT = """
SELECT relationship_id AS id, first(chunk_id ORDER BY n_mentions DESC, chunk_id) AS chunk_id
FROM relationship_chunks
SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS relationship_id) USING (relationship_id)
GROUP BY relationship_id
"""


@dataclass(frozen=True)
class RankedPassage:
    """A statement that bears on a question, and the place it is taken from or rests on.

    ``heading`` is the title of the report that a finding comes from.
    """

    text: str
    score: float
    citation: Citation
    heading: str = ""


@operator
def find_evidence(
    index: Release, question: str, records: Sequence[Record], most: int
) -> list[RankedPassage]:
    """Return up to ``most`` distinct passages that bear on a question, best first.

    Findings of reports, where there are any, stand as they are ranked. Otherwise the sentences of
    the chunks are ranked by words shared with the question, embedding similarity, rank of their
    chunk, and how many of the retrieved entities they name; a summary stands for the best chunks
    below it. Of a retrieval without text, the relationships are ranked by the first two and cite
    the chunk that supports them most.
    """
    findings = [record for record in records if record.kind == "finding"]
    if findings:
        return _distinct(_stated(index, findings), most)
    chunks = list(dict.fromkeys(key for record in records for key in _chunks_of(record)))
    if not chunks:
        edges = [record for record in records if record.kind == "relationship"]
        return _distinct(_related(index, question, edges), most)
    names = {record.title for record in records if record.kind == "entity"}
    return _distinct(_ranked(index, question, list(_sentences(index, chunks)), names), most)


def _chunks_of(record: Record) -> Sequence[str]:
    if record.kind == "summary":
        return record.attributes["chunk_ids"]
    return [record.id] if record.kind == "chunk" else []


def _stated(index: Release, findings: Sequence[Record]) -> list[RankedPassage]:
    citations = citations_of(index, findings)
    return [
        RankedPassage(finding.text, finding.score, citation, finding.title)
        for finding, citation in zip(findings, citations, strict=True)
    ]


def _related(index: Release, question: str, edges: Sequence[Record]) -> list[RankedPassage]:
    rows = {row["id"]: row["chunk_id"] for row in index.rows(_SUPPORT, ids=[e.id for e in edges])}
    chunks = chunk_records(index, dict.fromkeys(rows.values(), 1.0))
    citation_of = {chunk.id: cite_chunk(chunk) for chunk in chunks}
    edges_with_chunks = [edge for edge in edges if rows.get(edge.id) in citation_of]
    scores = relevance(
        index, question, [f"{edge.title}: {edge.text}" for edge in edges_with_chunks]
    )
    passages = [
        RankedPassage(edge.text, score, citation_of[rows[edge.id]], edge.title)
        for edge, score in zip(edges_with_chunks, scores, strict=True)
    ]
    return sorted(passages, key=lambda passage: -passage.score)


def _ranked(
    index: Release, question: str, sentences: Sequence[tuple[int, Citation]], names: set[str]
) -> list[RankedPassage]:
    scores = relevance(index, question, [citation.text for _, citation in sentences])
    if index.lexical:
        question_words = set(terms(question))
        scores = [
            score if question_words & set(terms(citation.text)) else 0.0
            for score, (_, citation) in zip(scores, sentences, strict=True)
        ]
        if not any(scores):
            return []
    entities = [frozenset(term) for term in map(terms, sorted(names)) if term]
    passages = [
        RankedPassage(citation.text, _score(citation.text, score, rank, entities), citation)
        for (rank, citation), score in zip(sentences, scores, strict=True)
    ]
    return sorted(passages, key=lambda passage: -passage.score)


def _score(text: str, relevant: float, rank: int, entities: Sequence[frozenset[str]]) -> float:
    words = terms(text)
    word_set = set(words)
    share_of_entities = sum(entity <= word_set for entity in entities) / ENTITIES_FOR_FULL_WEIGHT
    score = relevant + RANK_WEIGHT / (1 + rank) + ENTITY_WEIGHT * min(1.0, share_of_entities)
    is_heading = len(words) < SHORT_TERMS or not text.rstrip().endswith(_SENTENCE_ENDS)
    return score / 2 if is_heading else score


def _sentences(index: Release, chunks: Sequence[str]) -> Iterator[tuple[int, Citation]]:
    """Yield sentences with the rank of their chunk, each once, whole across a chunk's edges."""
    places: set[tuple[str, int]] = set()
    for rank, row in enumerate(index.rows(_WINDOWS, ids=list(chunks), around=_CONTEXT_CHARS)):
        for start, end in _spans_within(row):
            if (row["document_id"], end) not in places:
                places.add((row["document_id"], end))
                yield rank, _cite_sentence(row, start, end)


def _cite_sentence(row: dict[str, Any], start: int, end: int) -> Citation:
    offset = row["window_start"]
    return Citation(
        number=0,
        document_id=row["document_id"],
        document_title=row["title"],
        uri=row["uri"],
        chunk_id=row["id"],
        start_char=start,
        end_char=end,
        text=row["text"][start - offset : end - offset],
    )


def _spans_within(row: dict[str, Any]) -> Iterator[tuple[int, int]]:
    """Yield document spans of the sentences that touch a chunk, cut only if far longer than it."""
    text, offset = row["text"], row["window_start"]
    cut_end = offset + len(text) if offset + len(text) < row["n_chars"] else -1
    for start, end in _short_spans(text, sentence_spans(text)):
        begin, stop = offset + start, offset + end
        if begin == offset > 0:
            begin = max(begin, row["start_char"])
        if stop == cut_end:
            stop = min(stop, row["end_char"])
        if max(begin, row["start_char"]) < min(stop, row["end_char"]):
            yield begin, stop


def _short_spans(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for start, end in spans:
        if end - start <= _LONGEST_SENTENCE:
            yield start, end
        else:
            yield from (match.span() for match in _PIECE.finditer(text, start, end))


def _distinct(passages: Sequence[RankedPassage], most: int) -> list[RankedPassage]:
    """Return the first ``most`` that do not say what an earlier one said, best first."""
    floor = LEAST_SHARE * max((passage.score for passage in passages), default=0.0)
    distinct_passages: dict[frozenset[str], RankedPassage] = {}
    for passage in passages:
        words = frozenset(terms(passage.text) or [passage.text])
        if passage.score >= floor and all(
            _share_said(words, earlier) < _SAID for earlier in distinct_passages
        ):
            distinct_passages[words] = passage
        if len(distinct_passages) == most:
            break
    return list(distinct_passages.values())


def _share_said(words: frozenset[str], earlier: frozenset[str]) -> float:
    return len(words & earlier) / len(words)
