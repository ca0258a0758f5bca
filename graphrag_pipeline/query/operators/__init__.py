"""Shared operators: a retrieval method is a short composition of these.

Searches return rankings (ids with scores, best first), graph operators turn rankings into
rankings, ``*_records`` fetch what was ranked, and ``fill`` fits it to a budget.
"""

from typing import Any

from graphrag_pipeline.core.moved import moved_name
from graphrag_pipeline.query.operators.attributed import (
    attributed_findings_at,
    attributed_report_records,
    attributed_reports_at,
)
from graphrag_pipeline.query.operators.budget import (
    fill,
    groups,
    in_proportion,
    measured,
    summarised,
    tokens_of,
)
from graphrag_pipeline.query.operators.chunks import (
    chunk_lengths,
    chunk_records,
    chunks_of,
    chunks_within,
    entities_in,
    every_chunk,
    mean_chunk_length,
)
from graphrag_pipeline.query.operators.claims import claim_records, claims_of
from graphrag_pipeline.query.operators.communities import (
    about_communities,
    child_communities,
    communities_of,
    findings_at,
    findings_of,
    report_records,
    reports_at,
    reports_of,
    root_communities,
    themes_at,
)
from graphrag_pipeline.query.operators.coverage import by_terms, covering, rarity, share_of
from graphrag_pipeline.query.operators.entities import (
    entities_for,
    entities_named_in,
    entities_titled,
    entity_records,
    neighbours,
)
from graphrag_pipeline.query.operators.facts import best_facts, ends_of_facts, link_entities
from graphrag_pipeline.query.operators.following import asked_after
from graphrag_pipeline.query.operators.graph import (
    bridge,
    k_hop,
    personalized_pagerank,
    shortest_path,
)
from graphrag_pipeline.query.operators.ranking import (
    Ranking,
    at_least,
    best,
    by_place,
    fulltext_search,
    fuse,
    highest,
    in_turn,
    most_similar,
    nearest,
    vector_search,
)
from graphrag_pipeline.query.operators.relationships import (
    relationship_records,
    relationships_by_degree,
    relationships_by_score,
    relationships_of,
    relationships_within,
)
from graphrag_pipeline.query.operators.reranking import (
    chunks_by_words,
    first_chunks,
    n_candidates,
    rerank,
)
from graphrag_pipeline.query.operators.scoring import relevance
from graphrag_pipeline.query.operators.seeds import likely, names_known, scaled_search
from graphrag_pipeline.query.operators.titles import telling, titled_first, titles_in

__all__ = [
    "Ranking",
    "about_communities",
    "asked_after",
    "at_least",
    "attributed_findings_at",
    "attributed_report_records",
    "attributed_reports_at",
    "best",
    "best_facts",
    "bridge",
    "by_place",
    "by_terms",
    "child_communities",
    "chunk_lengths",
    "chunk_records",
    "chunks_by_words",
    "chunks_of",
    "chunks_within",
    "claim_records",
    "claims_of",
    "communities_of",
    "covering",
    "ends_of_facts",
    "entities_for",
    "entities_in",
    "entities_named_in",
    "entities_titled",
    "entity_records",
    "every_chunk",
    "fill",
    "findings_at",
    "findings_of",
    "first_chunks",
    "fulltext_search",
    "fuse",
    "groups",
    "highest",
    "in_proportion",
    "in_turn",
    "k_hop",
    "likely",
    "link_entities",
    "mean_chunk_length",
    "measured",
    "most_similar",
    "n_candidates",
    "names_known",
    "nearest",
    "neighbours",
    "personalized_pagerank",
    "rarity",
    "relationship_records",
    "relationships_by_degree",
    "relationships_by_score",
    "relationships_of",
    "relationships_within",
    "relevance",
    "report_records",
    "reports_at",
    "reports_of",
    "rerank",
    "root_communities",
    "scaled_search",
    "share_of",
    "shortest_path",
    "summarised",
    "telling",
    "themes_at",
    "titled_first",
    "titles_in",
    "tokens_of",
    "vector_search",
]

_MOVED = {
    "nearest_in_layers": "graphrag_pipeline.systems.archrag.operators",
    "bridge_relationships": "graphrag_pipeline.systems.hirag.operators",
    "chunks_by_links": "graphrag_pipeline.systems.hirag.operators",
    "communities_of_layers": "graphrag_pipeline.systems.hirag.operators",
    "entities_of_layers": "graphrag_pipeline.systems.hirag.operators",
    "key_entities": "graphrag_pipeline.systems.hirag.operators",
    "lacks_of_layers": "graphrag_pipeline.systems.hirag.operators",
    "layered_entity_records": "graphrag_pipeline.systems.hirag.operators",
    "layered_relationship_records": "graphrag_pipeline.systems.hirag.operators",
    "layered_report_records": "graphrag_pipeline.systems.hirag.operators",
    "best_of_tree": "graphrag_pipeline.systems.raptor.operators",
    "down_the_tree": "graphrag_pipeline.systems.raptor.operators",
    "tree_records": "graphrag_pipeline.systems.raptor.operators",
}
"""Operators that only one system uses, and where they are now."""


def __getattr__(name: str) -> Any:
    return moved_name(__name__, _MOVED, name)
