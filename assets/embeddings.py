"""Embeddings: a LanceDB table with vectors and full text for each searchable table.

Facts, and titles with the synonyms among them, are there where the settings ask for them.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from graphrag_pipeline.assets.common import (
    INDEX_POOL,
    OWNERS,
    VECTORS_POOL,
    check,
    column_schema,
    facts,
    markdown_table,
    stage,
    storage,
)
from graphrag_pipeline.assets.graph import ENTITIES, RELATIONSHIPS
from graphrag_pipeline.assets.raptor import RAPTOR_TREE
from graphrag_pipeline.assets.reports import report_key
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.releases import invariants
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.structures.hipporag.synonyms import update_synonyms
from graphrag_pipeline.structures.vector_tables import (
    VECTORS_FOLDER,
    update_vectors,
    wanted_tables,
)

GROUP = "embeddings"
PRESENT = "every_row_has_a_vector"
FINITE = "vectors_are_numbers"
LINKED = "synonyms_are_entities"
SYNONYMS = dg.AssetKey([GROUP, "synonyms"])
HIRAG_ENTITIES = dg.AssetKey(["hierarchies", "hirag_entities"])
ATTRIBUTED = dg.AssetKey(["hierarchies", "attributed_communities"])
_DESCRIPTIONS = {
    "facts": "Vectors and full text of what single texts say of two entities, in LanceDB.",
    "entity_titles": "Vectors of the titles of entities, without their descriptions, in LanceDB.",
    "raptor_nodes": "Vectors and full text of the summaries of the RAPTOR tree, in LanceDB.",
    "hirag_entities": "Vectors and full text of entities that summarise clusters, in LanceDB.",
}
_SYNONYM_FACTS = """
SELECT count(*) AS "dagster/row_count", count(DISTINCT source_id) AS entities,
       max(similarity) AS highest FROM synonym_edges
"""
_SYNONYM_PREVIEW = """
SELECT s.title AS entity, t.title AS synonym, similarity FROM synonym_edges
JOIN entities s ON s.id = source_id JOIN entities t ON t.id = target_id
WHERE source_id < target_id ORDER BY similarity DESC, 1, 2 LIMIT 8
"""


def embedding_key(table: str) -> dg.AssetKey:
    """Return the key of a vector table's asset."""
    return dg.AssetKey(["embeddings", table])


def build_embeddings(settings: Settings) -> list[dg.AssetsDefinition]:
    """Return one asset per vector table that the settings ask for, and that of the synonyms."""
    # A chunk's vector waits for the graph: taking in a batch is what makes its chunks current.
    deps: dict[str, Sequence[dg.AssetKey]] = {
        "chunks": [dg.AssetKey("chunks"), ENTITIES],
        "entities": [ENTITIES],
        "relationships": [RELATIONSHIPS],
        "community_reports": [report_key(n) for n in range(settings.communities.levels)],
        "facts": [RELATIONSHIPS],
        "entity_titles": [ENTITIES],
        "raptor_nodes": [RAPTOR_TREE],
        "hirag_entities": [HIRAG_ENTITIES],
        "attributed_communities": [ATTRIBUTED],
    }
    tables = wanted_tables(settings)
    assets = [_embedding_asset(table, deps[table], tables) for table in tables]
    return [*assets, synonyms] if settings.embeddings.synonyms else assets


def embedding_keys(settings: Settings) -> list[dg.AssetKey]:
    """Return the keys of all assets of :func:`build_embeddings`."""
    keys = [embedding_key(table) for table in wanted_tables(settings)]
    return [*keys, SYNONYMS] if settings.embeddings.synonyms else keys


def _embedding_asset(
    table: str, deps: Sequence[dg.AssetKey], tables: Sequence[str]
) -> dg.AssetsDefinition:
    key = embedding_key(table)
    searchable = f"Vectors and full text of {table.replace('_', ' ')}, in LanceDB."

    @dg.asset(
        key=key,
        deps=deps,
        description=_DESCRIPTIONS.get(table, searchable),
        group_name=GROUP,
        kinds={"python", "lancedb"},
        owners=OWNERS,
        pool=VECTORS_POOL,
        metadata={"dagster/table_name": f"vectors.{table}", "dagster/storage_kind": "lancedb"},
        check_specs=[
            dg.AssetCheckSpec(PRESENT, asset=key, blocking=True, description="None is missing."),
            dg.AssetCheckSpec(FINITE, asset=key, blocking=True, description="No NaN, no infinity."),
        ],
    )
    def embeddings(index: IndexResource) -> dg.MaterializeResult:
        with (
            stage("embeddings", tables.index(table), len(tables)) as clock,
            index.spending() as spent,
        ):
            done = update_vectors(index.store, index.home, index.settings, table)
        with index.get_connection() as con:
            broken = invariants.vector_violations(con, index.home / VECTORS_FOLDER, table)
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": done.reused + done.embedded,
                "embedded": done.embedded,
                "reused": done.reused,
                "removed": done.removed,
                "embedder": configured_embedder(index.settings).name,
                "lancedb_version": done.version,
                "size_mb": _size_mb(index, table),
                "seconds": clock.seconds,
                **spent.metadata,
            },
            check_results=[
                check(key, PRESENT, broken["missing"], "rows have no vector"),
                check(key, FINITE, broken["not_finite"], "vectors hold what is no number"),
            ],
        )

    return embeddings


@dg.asset(
    key=SYNONYMS,
    deps=[embedding_key("entity_titles")],
    group_name=GROUP,
    kinds={"python", "duckdb"},
    owners=OWNERS,
    pool=INDEX_POOL,
    metadata=storage("synonym_edges"),
    check_specs=[
        dg.AssetCheckSpec(
            LINKED, asset=SYNONYMS, blocking=True, description="Both ends are entities."
        ),
    ],
)
def synonyms(index: IndexResource) -> dg.MaterializeResult:
    """Entities whose titles are alike by vector."""
    with stage("synonyms") as clock:
        done = update_synonyms(index.store, index.home, index.settings)
    with index.get_connection() as con:
        broken = invariants.violations(con, invariants.SYNONYMS_EXIST)
        told = {
            **facts(con, _SYNONYM_FACTS),
            **column_schema(con, "synonym_edges"),
            "preview": markdown_table(con, _SYNONYM_PREVIEW),
        }
    return dg.MaterializeResult(
        metadata={**told, "searched": done.searched, "seconds": clock.seconds},
        check_results=[check(SYNONYMS, LINKED, broken, "synonyms are of no entity")],
    )


def _size_mb(index: IndexResource, table: str) -> float:
    folder = index.home / VECTORS_FOLDER / f"{table}.lance"
    return round(sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e6, 3)
