"""Findings of reports and relationships as evidence, where a retrieval brings no text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from graphrag_pipeline.core.prose import readable
from graphrag_pipeline.extraction.rules.sentences import sentence_spans
from graphrag_pipeline.query.citations import citations_of, cite_chunk
from graphrag_pipeline.query.evidence.themes import is_name
from graphrag_pipeline.query.evidence.widening import RankedPassage
from graphrag_pipeline.query.operators.chunks import chunk_records
from graphrag_pipeline.query.operators.communities import about_communities
from graphrag_pipeline.query.operators.scoring import relevance
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.reports.references import check_references

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_NAMES_SHOWN, _LONGEST_THEME = 5, 400
_SUPPORT = """
SELECT relationship_id AS id, first(chunk_id ORDER BY n_mentions DESC, chunk_id) AS chunk_id
FROM relationship_chunks
SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS relationship_id) USING (relationship_id)
GROUP BY relationship_id
"""


def found_findings(index: Release, findings: Sequence[Record]) -> list[RankedPassage]:
    """Return findings of reports as they are ranked."""
    citations = citations_of(index, findings)
    return [
        RankedPassage(
            finding.text,
            finding.score,
            citation,
            finding.title,
            finding.attributes["community_id"] if finding.attributes.get("is_theme") else "",
        )
        for finding, citation in zip(findings, citations, strict=True)
    ]


def with_themes(index: Release, passages: Sequence[RankedPassage]) -> list[RankedPassage]:
    """Say of themes how large they are, in how many documents, and which names are key to them."""
    bare = [check_references(passage.text, {}).text for passage in passages]
    plain = readable(bare)
    passages = [replace(p, text=text) for p, text in zip(passages, plain, strict=True)]
    about = about_communities(index, [p.theme for p in passages if p.theme], _NAMES_SHOWN)
    n_documents = index.facts.counts["n_documents"]
    widened = []
    for passage in passages:
        if theme := about.get(passage.theme):
            facts = f"{theme.size} names"
            if n_documents > 1:
                facts += f" in {theme.n_documents} of {n_documents} documents"
            names = ", ".join(
                name for _, name in theme.names if name not in passage.heading and is_name(name)
            )
            heading = f"{passage.heading} ({facts}{f'; also {names}' if names else ''})"
            text = _beginning(passage.text)
            passage = replace(passage, heading=heading, text=text)
        widened.append(passage)
    return widened


def _beginning(text: str) -> str:
    """Return the first sentences of a text, as many as are short enough to be read in a list."""
    ends = [end for _, end in sentence_spans(text)]
    return text[: max((end for end in ends if end <= _LONGEST_THEME), default=min(ends, default=0))]


def found_relationships(
    index: Release, question: str, edges: Sequence[Record]
) -> list[RankedPassage]:
    """Return what relationships say, best first, each citing the chunk that supports it most."""
    rows = {row["id"]: row["chunk_id"] for row in index.rows(_SUPPORT, ids=[e.id for e in edges])}
    chunks = chunk_records(index, dict.fromkeys(rows.values(), 1.0))
    citation_of = {chunk.id: cite_chunk(chunk) for chunk in chunks}
    edges_with_chunks = [edge for edge in edges if rows.get(edge.id) in citation_of]
    scores = relevance(
        index, question, [f"{edge.title}: {edge.text}" for edge in edges_with_chunks]
    )
    passages = [
        RankedPassage(" ".join(edge.text.split()), score, citation_of[rows[edge.id]], edge.title)
        for edge, score in zip(edges_with_chunks, scores, strict=True)
    ]
    return sorted(passages, key=lambda passage: -passage.score)
