"""Shared operators: a retrieval method is a short composition of these.

Searches return rankings (ids with scores, best first), graph operators turn rankings into
rankings, ``*_records`` fetch what was ranked, and ``fill`` fits it to a budget.
"""

from typing import Any

from graphrag_pipeline.core.moved import moved_name
from graphrag_pipeline.query.operators.attributed import (
    attributed_findings_at as attributed_findings_at,
    attributed_report_records as attributed_report_records,
    attributed_reports_at as attributed_reports_at,
)
from graphrag_pipeline.query.operators.budget import (
    fill as fill,
    groups as groups,
    in_proportion as in_proportion,
    measured as measured,
    summarised as summarised,
    tokens_of as tokens_of,
)
from graphrag_pipeline.query.operators.chunks import (
    chunk_lengths as chunk_lengths,
    first_mentions as first_mentions,
    chunk_records as chunk_records,
    chunks_having as chunks_having,
    chunks_of as chunks_of,
    chunks_of_documents as chunks_of_documents,
    chunks_within as chunks_within,
    entities_in as entities_in,
    every_chunk as every_chunk,
    mean_chunk_length as mean_chunk_length,
)
from graphrag_pipeline.query.operators.claims import (
    claim_records as claim_records,
    claims_of as claims_of,
)
from graphrag_pipeline.query.operators.communities import (
    about_communities as about_communities,
    child_communities as child_communities,
    communities_of as communities_of,
    findings_at as findings_at,
    findings_of as findings_of,
    report_records as report_records,
    reports_at as reports_at,
    reports_of as reports_of,
    root_communities as root_communities,
    themes_at as themes_at,
)
from graphrag_pipeline.query.operators.coverage import (
    by_terms as by_terms,
    covering as covering,
    rarity as rarity,
    share_of as share_of,
)
from graphrag_pipeline.query.operators.entities import (
    best_connected as best_connected,
    entities_for as entities_for,
    entities_named_in as entities_named_in,
    entities_titled as entities_titled,
    entity_records as entity_records,
    neighbours as neighbours,
)
from graphrag_pipeline.query.operators.facts import (
    best_facts as best_facts,
    ends_of_facts as ends_of_facts,
    link_entities as link_entities,
)
from graphrag_pipeline.query.operators.following import asked_after as asked_after
from graphrag_pipeline.query.operators.graph import (
    bridge as bridge,
    k_hop as k_hop,
    personalized_pagerank as personalized_pagerank,
    shortest_path as shortest_path,
)
from graphrag_pipeline.query.operators.ranking import (
    Ranking as Ranking,
    at_least as at_least,
    best as best,
    by_place as by_place,
    fulltext_search as fulltext_search,
    fuse as fuse,
    highest as highest,
    in_turn as in_turn,
    most_similar as most_similar,
    nearest as nearest,
    vector_search as vector_search,
)
from graphrag_pipeline.query.operators.relationships import (
    relationship_records as relationship_records,
    relationships_by_degree as relationships_by_degree,
    relationships_by_score as relationships_by_score,
    relationships_of as relationships_of,
    relationships_within as relationships_within,
)
from graphrag_pipeline.query.operators.reranking import (
    chunks_by_words as chunks_by_words,
    first_chunks as first_chunks,
    n_candidates as n_candidates,
    rerank as rerank,
)
from graphrag_pipeline.query.operators.scoring import relevance as relevance
from graphrag_pipeline.query.operators.seeds import (
    likely as likely,
    names_known as names_known,
    scaled_search as scaled_search,
)
from graphrag_pipeline.query.operators.titles import (
    telling as telling,
    titled_first as titled_first,
    titles_in as titles_in,
)

_MOVED = {
    name: f"graphrag_pipeline.systems.{system}.operators"
    for system, names in {
        "archrag": "nearest_in_layers",
        "hirag": "bridge_relationships chunks_by_links communities_of_layers entities_of_layers "
        "key_entities lacks_of_layers layered_entity_records layered_relationship_records "
        "layered_report_records",
        "raptor": "best_of_tree down_the_tree tree_records",
    }.items()
    for name in names.split()
}
"""Operators that only one system uses, and where they are now."""


def __getattr__(name: str) -> Any:
    return moved_name(__name__, _MOVED, name)
