"""Facts with vectors, and synonyms: what the methods of HippoRAG need, as structures."""

from __future__ import annotations

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.estimates import (
    ENTITIES,
    RELATIONSHIP_TOKENS,
    RELATIONSHIPS,
    TITLE_TOKENS,
    Embedded,
    Estimate,
    Growth,
)
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.structure import (
    Check,
    Outcome,
    Preview,
    Step,
    Structure,
    VectorTable,
)
from graphrag_pipeline.structures.synonyms.linking import (
    synonyms_current,
    synonyms_version,
    update_synonyms,
)

ENDS_EXIST = """
SELECT count(*) FROM synonym_edges
WHERE source_id NOT IN (SELECT id FROM entities) OR target_id NOT IN (SELECT id FROM entities)
"""
_SYNONYM_FACTS = """
SELECT count(*) AS "dagster/row_count", count(DISTINCT source_id) AS entities,
       max(similarity) AS highest FROM synonym_edges
"""
_PREVIEW = """
SELECT s.title AS entity, t.title AS synonym, similarity FROM synonym_edges
JOIN entities s ON s.id = source_id JOIN entities t ON t.id = target_id
WHERE source_id < target_id ORDER BY similarity DESC, 1, 2 LIMIT 8
"""


def _update(index: Workspace) -> Outcome:
    least = index.settings.embeddings.synonym_similarity
    return update_synonyms(index.store, index.vectors, least)


def _estimate_facts(settings: Settings, growth: Growth) -> Estimate:
    facts = growth.grown.full * RELATIONSHIPS
    return Estimate(texts=[Embedded(facts, facts * RELATIONSHIP_TOKENS)])


def _estimate_titles(settings: Settings, growth: Growth) -> Estimate:
    titles = growth.grown.full * ENTITIES
    return Estimate(texts=[Embedded(titles, titles * TITLE_TOKENS)])


FACT_VECTORS = VectorTable(
    "facts",
    "SELECT id, text, NULL::INTEGER AS level, NULL::VARCHAR AS batch FROM facts",
    made_from=("relationships",),
    about="Vectors and full text of what single texts say of two entities, in LanceDB.",
)
TITLE_VECTORS = VectorTable(
    "entity_titles",
    "SELECT id, title AS text, NULL::INTEGER AS level, NULL::VARCHAR AS batch FROM entities",
    made_from=("entities",),
    about="Vectors of the titles of entities, without their descriptions, in LanceDB.",
)
FACTS = Structure(
    "facts", setting="embeddings.facts", vectors=(FACT_VECTORS,), estimate=_estimate_facts
)
SYNONYMS = Structure(
    "synonyms",
    setting="embeddings.synonyms",
    steps=(
        Step(
            ("embeddings", "synonyms"),
            "Entities whose titles are alike by vector.",
            "synonym_edges",
            _update,
            synonyms_current,
            "synonyms",
            vectors=("entity_titles",),
            facts=_SYNONYM_FACTS,
            previews={"preview": Preview(_PREVIEW)},
            checks=(
                Check(
                    "synonyms_are_entities",
                    "Both ends are entities.",
                    ENDS_EXIST,
                    "synonyms are of no entity",
                ),
            ),
        ),
    ),
    vectors=(TITLE_VECTORS,),
    tables=("synonym_edges",),
    working=("staging.synonyms_searched",),
    meta=("synonyms",),
    version=synonyms_version,
    estimate=_estimate_titles,
)
