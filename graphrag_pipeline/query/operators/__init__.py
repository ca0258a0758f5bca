"""Shared operators: a retrieval method is a short composition of these.

Searches return rankings (ids with scores, best first), graph operators turn rankings into
rankings, ``*_records`` fetch what was ranked, and ``fill`` fits it to a budget.
"""

from graphrag_pipeline.query.operators.budget import fill, summarised, tokens_of
from graphrag_pipeline.query.operators.chunks import chunk_records, chunks_of, chunks_within
from graphrag_pipeline.query.operators.communities import (
    communities_of,
    findings_at,
    report_records,
    reports_at,
    reports_of,
)
from graphrag_pipeline.query.operators.entities import (
    entities_for,
    entities_named_in,
    entity_records,
    neighbours,
)
from graphrag_pipeline.query.operators.ranking import (
    Ranking,
    best,
    by_place,
    fulltext_search,
    fuse,
    vector_search,
)
from graphrag_pipeline.query.operators.relationships import (
    relationship_records,
    relationships_of,
)
from graphrag_pipeline.query.operators.scoring import relevance

__all__ = [
    "Ranking",
    "best",
    "by_place",
    "chunk_records",
    "chunks_of",
    "chunks_within",
    "communities_of",
    "entities_for",
    "entities_named_in",
    "entity_records",
    "fill",
    "findings_at",
    "fulltext_search",
    "fuse",
    "neighbours",
    "relationship_records",
    "relationships_of",
    "relevance",
    "report_records",
    "reports_at",
    "reports_of",
    "summarised",
    "tokens_of",
    "vector_search",
]
