"""Shared operators: a retrieval method is a short composition of these.

Searches return rankings (ids with scores, best first), graph operators turn rankings into
rankings, ``*_records`` fetch what was ranked, and ``fill`` fits it to a budget.
"""

from graphrag_pipeline.query.operators.budget import fill, groups, measured, summarised, tokens_of
from graphrag_pipeline.query.operators.chunks import (
    chunk_records,
    chunks_of,
    chunks_within,
    every_chunk,
)
from graphrag_pipeline.query.operators.claims import claim_records, claims_of
from graphrag_pipeline.query.operators.communities import (
    child_communities,
    communities_of,
    findings_at,
    findings_of,
    report_records,
    reports_at,
    reports_of,
    root_communities,
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
    "child_communities",
    "chunk_records",
    "chunks_of",
    "chunks_within",
    "claim_records",
    "claims_of",
    "communities_of",
    "entities_for",
    "entities_named_in",
    "entity_records",
    "every_chunk",
    "fill",
    "findings_at",
    "findings_of",
    "fulltext_search",
    "fuse",
    "groups",
    "measured",
    "neighbours",
    "relationship_records",
    "relationships_of",
    "relevance",
    "report_records",
    "reports_at",
    "reports_of",
    "root_communities",
    "summarised",
    "tokens_of",
    "vector_search",
]
