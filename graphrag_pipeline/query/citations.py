"""Places in documents: from chunks, sentences and findings to exact character spans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from graphrag_pipeline.query.results import Citation, Record
from graphrag_pipeline.text import terms

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_SPANS = """
SELECT place, c.document_id, d.title, d.uri,
       coalesce(wanted.start_char, c.start_char) AS start_char,
       coalesce(wanted.end_char, c.end_char) AS end_char,
       substr(d.text, coalesce(wanted.start_char, c.start_char) + 1,
              coalesce(wanted.end_char, c.end_char) - coalesce(wanted.start_char, c.start_char))
       AS text
FROM (SELECT unnest($chunks::VARCHAR[]) AS id, unnest($starts::BIGINT[]) AS start_char,
             unnest($ends::BIGINT[]) AS end_char,
             generate_subscripts($chunks::VARCHAR[], 1) - 1 AS place) wanted
JOIN chunks c USING (id) JOIN documents d ON d.id = c.document_id
"""
_CHUNKS_OF_COMMUNITIES = """
SELECT community_id, c.id, c.text FROM (
    SELECT community_id, chunk_id, count(DISTINCT entity_id) AS n
    FROM community_members JOIN entity_chunks USING (entity_id)
    SEMI JOIN (SELECT unnest($ids::VARCHAR[]) AS community_id) wanted USING (community_id)
    GROUP BY community_id, chunk_id
    QUALIFY row_number() OVER (PARTITION BY community_id ORDER BY n DESC, chunk_id) <= $limit)
JOIN chunks c ON c.id = chunk_id ORDER BY community_id, n DESC, c.id
"""
_CHUNKS_CONSIDERED = 20


@dataclass(frozen=True)
class Passage:
    """A statement and where it stands: a span (None: all) of the document of ``chunk_id``.

    ``text`` is what is said, which for a finding written by a model is not what stands there.
    ``chunk_id`` is None where nothing in the documents is known to support it.
    """

    text: str
    chunk_id: str | None
    start_char: int | None
    end_char: int | None
    score: float
    report_id: str | None = None
    title: str = ""


def cite(index: Release, passages: Sequence[Passage]) -> list[Citation]:
    """Return one citation for each passage; passages of one place share a number, from 1 up."""
    rows = {row["place"]: row for row in _spans(index, passages)}
    numbers: dict[object, int] = {}
    citations: list[Citation] = []
    for place, passage in enumerate(passages):
        row = rows.get(place)
        key = (row["document_id"], row["start_char"], row["end_char"]) if row else passage
        citation = _citation(passage, row)
        citations.append(replace(citation, number=numbers.setdefault(key, len(numbers) + 1)))
    return citations


def distinct(citations: Iterable[Citation]) -> tuple[Citation, ...]:
    """Return each numbered citation once, by number."""
    return tuple({c.number: c for c in reversed(list(citations))}[n] for n in _numbers(citations))


def passages_of(index: Release, records: Sequence[Record]) -> list[Passage]:
    """Return the chunks and findings among records as passages, in order.

    A finding without a place of its own stands on the chunk of its community that shares most
    words with it.
    """
    supports = _supports(index, [r for r in records if _has_no_place(r)])
    return [
        Passage(
            text=record.text,
            chunk_id=record.id if record.kind == "chunk" else _chunk_of(record, supports),
            start_char=record.attributes.get("start_char"),
            end_char=record.attributes.get("end_char"),
            score=record.score,
            report_id=record.attributes.get("report_id"),
            title=record.title,
        )
        for record in records
        if record.kind in ("chunk", "finding")
    ]


def _numbers(citations: Iterable[Citation]) -> list[int]:
    return sorted({citation.number for citation in citations})


def _spans(index: Release, passages: Sequence[Passage]) -> list[dict[str, object]]:
    return index.rows(
        _SPANS,
        chunks=[p.chunk_id for p in passages],
        starts=[p.start_char for p in passages],
        ends=[p.end_char for p in passages],
    )


def _citation(passage: Passage, row: dict[str, object] | None) -> Citation:
    if row is None:
        return Citation(0, "", passage.title, "", "", 0, 0, passage.text, passage.report_id)
    return Citation(
        number=0,
        document_id=str(row["document_id"]),
        document_title=str(row["title"]),
        uri=str(row["uri"]),
        chunk_id=str(passage.chunk_id),
        start_char=int(str(row["start_char"])),
        end_char=int(str(row["end_char"])),
        text=str(row["text"]),
        report_id=passage.report_id,
    )


def _has_no_place(record: Record) -> bool:
    return record.kind == "finding" and not record.attributes["chunk_id"]


def _chunk_of(finding: Record, supports: dict[str, str]) -> str | None:
    return finding.attributes["chunk_id"] or supports.get(finding.id)


def _supports(index: Release, findings: Sequence[Record]) -> dict[str, str]:
    """Return the best supporting chunk of each finding that has any."""
    if not findings:
        return {}
    communities = sorted({f.attributes["community_id"] for f in findings})
    chunks: dict[str, list[tuple[str, set[str]]]] = {}
    for row in index.rows(_CHUNKS_OF_COMMUNITIES, ids=communities, limit=_CHUNKS_CONSIDERED):
        chunks.setdefault(row["community_id"], []).append((row["id"], set(terms(row["text"]))))
    return {
        finding.id: _closest(finding.text, candidates)
        for finding in findings
        if (candidates := chunks.get(finding.attributes["community_id"]))
    }


def _closest(text: str, candidates: Sequence[tuple[str, set[str]]]) -> str:
    said = set(terms(text))
    return max(candidates, key=lambda candidate: len(candidate[1] & said))[0]
