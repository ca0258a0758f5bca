"""Places in documents: from chunks and findings to exact character spans."""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from graphrag_pipeline.core.text import asked_language, terms
from graphrag_pipeline.query.operators.chunks import chunk_records, document_texts
from graphrag_pipeline.query.results import Citation, Record

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_SPANS = """
WITH wanted AS (
    SELECT unnest($chunks::JSON::VARCHAR[]) AS id, unnest($starts::JSON::BIGINT[]) AS start_char,
           unnest($ends::JSON::BIGINT[]) AS end_char,
           generate_subscripts($chunks::JSON::VARCHAR[], 1) - 1 AS place),
placed AS (
    SELECT place, c.id AS chunk_id, c.document_id,
           coalesce(wanted.start_char, c.start_char) AS start_char,
           coalesce(wanted.end_char, c.end_char) AS end_char
    FROM wanted JOIN chunks c USING (id))
SELECT place, chunk_id, document_id, title AS document_title, uri, start_char, end_char,
       substr(text, start_char + 1, end_char - start_char) AS text
FROM placed JOIN documents d ON d.id = document_id
"""
_CHUNKS_OF_COMMUNITIES = """
SELECT community_id, c.id, c.text FROM (
    SELECT community_id, chunk_id, count(DISTINCT entity_id) AS n
    FROM community_members JOIN entity_chunks USING (entity_id)
    SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS community_id) wanted USING (community_id)
    GROUP BY community_id, chunk_id
    QUALIFY row_number() OVER (PARTITION BY community_id ORDER BY n DESC, chunk_id) <= $limit)
JOIN chunks c ON c.id = chunk_id ORDER BY community_id, n DESC, c.id
"""
# Of releases that older programs made, no document says where its pages begin.
_PAGES = """
SELECT id, page_starts FROM (
    FROM documents UNION ALL BY NAME SELECT NULL::BIGINT[] AS page_starts WHERE false)
WHERE page_starts IS NOT NULL
"""
_CHUNKS_CONSIDERED = 20
Place: TypeAlias = tuple[object, int, int, str]
_WORDS_REMEMBERED = 1024


def citations_of(index: Release, records: Sequence[Record]) -> list[Citation]:
    """Return one citation for each chunk, finding and summary among records, in their order.

    A chunk cites all of its text, or as much as is in the record. A summary cites the chunk below
    it that is nearest to the question. A finding cites its own span; one without cites the chunk of
    its community that shares most words with it; if there is no such chunk, the report. Citations
    of one place share a number, from 1 up.
    """
    findings = [record for record in records if record.kind == "finding"]
    summaries = [record for record in records if record.kind == "summary"]
    below = cite_summaries(index, summaries)
    placed = {
        "finding": iter(cite_findings(index, findings)),
        "summary": (below[summary.id][0] for summary in summaries),
    }
    return numbered(
        next(placed[record.kind]) if record.kind in placed else cite_chunk(record)
        for record in records
        if record.kind == "chunk" or record.kind in placed
    )


def numbered(citations: Iterable[Citation]) -> list[Citation]:
    """Return citations with numbers from 1 up, in order; those of one place share a number."""
    numbers: dict[Place, int] = {}
    return [
        replace(citation, number=numbers.setdefault(place_of(citation), len(numbers) + 1))
        for citation in citations
    ]


def distinct(index: Release, citations: Iterable[Citation]) -> tuple[Citation, ...]:
    """Return the first citation of each number, with the page that it begins on."""
    first: dict[int, Citation] = {}
    for citation in citations:
        first.setdefault(citation.number, citation)
    pages = Pages(index, (citation.document_id for citation in first.values()))
    return tuple(
        replace(citation, page=page)
        if (page := pages.page_of(citation.document_id, citation.start_char))
        else citation
        for citation in first.values()
    )


class Pages:
    """The pages of some documents, of those that have pages."""

    def __init__(self, index: Release, documents: Iterable[str]) -> None:
        self._rows = index.records(_PAGES, dict.fromkeys(documents))

    def page_of(self, document: str, character: int) -> int | None:
        """Return the page, from 1, that a character of a document is on; None if not known."""
        row = self._rows.get(document)
        return bisect_right(row["page_starts"], character) if row else None


def place_of(citation: Citation) -> Place:
    """Return what all citations of one place have in common, and no others."""
    of = citation.document_id or (citation.report_id, citation.document_title)
    return of, citation.start_char, citation.end_char, citation.text


def cite_chunk(record: Record) -> Citation:
    """Return the citation of a chunk's span, not numbered."""
    start, end = record.attributes["start_char"], record.attributes["end_char"]
    return Citation(
        number=0,
        document_id=record.attributes["document_id"],
        document_title=record.title,
        uri=record.attributes["uri"],
        chunk_id=record.id,
        start_char=start,
        end_char=end,
        text=record.text[: end - start],
    )


def cite_quote(citation: Citation, quote: str) -> Citation:
    """Return the citation of a quote in a cited text; if the quote is not there, of all the text.

    Words must be the same, white space may differ.
    """
    words = map(re.escape, quote.split())
    match = re.search(r"\s+".join(words), citation.text)
    if match is None or not match[0]:
        return citation
    start = citation.start_char + match.start()
    return replace(citation, start_char=start, end_char=start + len(match[0]), text=match[0])


def cite_summaries(index: Release, summaries: Sequence[Record]) -> dict[str, list[Citation]]:
    """Return by a summary's id the citations of the best chunks below it, not numbered."""
    ids = {key: 1.0 for summary in summaries for key in summary.attributes["chunk_ids"]}
    citation_of = {chunk.id: cite_chunk(chunk) for chunk in chunk_records(index, ids)}
    return {
        summary.id: [citation_of[key] for key in summary.attributes["chunk_ids"]]
        for summary in summaries
    }


def cite_findings(index: Release, findings: Sequence[Record]) -> list[Citation]:
    """Return the citation of each finding, not numbered."""
    if not findings:
        return []
    supports = _supports(index, [f for f in findings if not f.attributes["chunk_id"]])
    chunk_ids = [f.attributes["chunk_id"] or supports.get(f.id) for f in findings]
    ids = dict.fromkeys((key for key in chunk_ids if key), 1.0)
    chunk_of = {chunk.id: chunk for chunk in chunk_records(index, ids)}
    documents = dict.fromkeys(chunk.attributes["document_id"] for chunk in chunk_of.values())
    texts = document_texts(index, documents)
    if texts is None:
        return _cite_stored(index, findings, chunk_ids)
    pairs = zip(findings, chunk_ids, strict=True)
    return [_cite_finding(finding, chunk_of.get(key or ""), texts) for finding, key in pairs]


def _cite_stored(
    index: Release, findings: Sequence[Record], chunk_ids: Sequence[str | None]
) -> list[Citation]:
    """Do as :func:`cite_findings` without the texts of documents in memory."""
    cited_rows = index.rows(
        _SPANS,
        chunks=list(chunk_ids),
        starts=[finding.attributes["start_char"] for finding in findings],
        ends=[finding.attributes["end_char"] for finding in findings],
    )
    rows = {row.pop("place"): row for row in cited_rows}
    return [
        Citation(number=0, report_id=finding.attributes["report_id"], **rows[place])
        if place in rows
        else cite_report(finding.attributes["report_id"], finding.title, finding.text)
        for place, finding in enumerate(findings)
    ]


def _cite_finding(finding: Record, chunk: Record | None, texts: Mapping[str, str]) -> Citation:
    if chunk is None:
        return cite_report(finding.attributes["report_id"], finding.title, finding.text)
    named = {name: finding.attributes[name] for name in ("start_char", "end_char")}
    span = {name: chunk.attributes[name] if at is None else at for name, at in named.items()}
    document = chunk.attributes["document_id"]
    return Citation(
        number=0,
        document_id=document,
        document_title=chunk.title,
        uri=chunk.attributes["uri"],
        chunk_id=chunk.id,
        text=texts[document][span["start_char"] : span["end_char"]],
        report_id=finding.attributes["report_id"],
        **span,
    )


def cite_report(report_id: str, title: str, text: str) -> Citation:
    """Return a report as the place of what it says, where no text of a document is known."""
    return Citation(
        number=0,
        document_id="",
        document_title=title,
        uri="",
        chunk_id="",
        start_char=0,
        end_char=0,
        text=text,
        report_id=report_id,
    )


def _supports(index: Release, findings: Sequence[Record]) -> dict[str, str]:
    """Return the best supporting chunk of each finding that has any."""
    if not findings:
        return {}
    communities = sorted({f.attributes["community_id"] for f in findings})
    chunks: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for row in index.rows(_CHUNKS_OF_COMMUNITIES, ids=communities, limit=_CHUNKS_CONSIDERED):
        chunks.setdefault(row["community_id"], []).append(
            (row["id"], _words_in(row["text"], asked_language()))
        )
    return {
        finding.id: _closest(finding.text, candidates)
        for finding in findings
        if (candidates := chunks.get(finding.attributes["community_id"]))
    }


@functools.lru_cache(_WORDS_REMEMBERED)
def _words_in(text: str, _: str | None) -> frozenset[str]:
    return frozenset(terms(text))


def _closest(text: str, candidates: Sequence[tuple[str, frozenset[str]]]) -> str:
    words = set(terms(text))
    return max(candidates, key=lambda candidate: len(candidate[1] & words))[0]
