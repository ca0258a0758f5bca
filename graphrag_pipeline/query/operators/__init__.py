"""Shared operators: a retrieval method is a short composition of these.

Searches return rankings (ids with scores, best first), graph operators turn rankings into
rankings, ``*_records`` fetch what was ranked, and ``fill`` fits it to a budget.
"""

from graphrag_pipeline.query.operators.archrag import nearest_in_layers
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
from graphrag_pipeline.query.operators.hirag import (
    bridge_relationships,
    chunks_by_links,
    communities_of_layers,
    entities_of_layers,
    key_entities,
    lacks_of_layers,
    layered_entity_records,
    layered_relationship_records,
    layered_report_records,
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
from graphrag_pipeline.query.operators.summaries import best_of_tree, down_the_tree, tree_records
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
    "best_of_tree",
    "bridge",
    "bridge_relationships",
    "by_place",
    "by_terms",
    "child_communities",
    "chunk_lengths",
    "chunk_records",
    "chunks_by_links",
    "chunks_by_words",
    "chunks_of",
    "chunks_within",
    "claim_records",
    "claims_of",
    "communities_of",
    "communities_of_layers",
    "covering",
    "down_the_tree",
    "ends_of_facts",
    "entities_for",
    "entities_in",
    "entities_named_in",
    "entities_of_layers",
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
    "key_entities",
    "lacks_of_layers",
    "layered_entity_records",
    "layered_relationship_records",
    "layered_report_records",
    "likely",
    "link_entities",
    "mean_chunk_length",
    "measured",
    "most_similar",
    "n_candidates",
    "names_known",
    "nearest",
    "nearest_in_layers",
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
    "tree_records",
    "vector_search",
]
