"""The keys of what assets are made from, by the names of tables."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from graphrag_pipeline.assets.communities import level_key
from graphrag_pipeline.assets.graph import ALIASES, ENTITIES, RELATIONSHIPS
from graphrag_pipeline.assets.ingestion import CHUNKS, DOCUMENTS, EXTRACTIONS
from graphrag_pipeline.assets.reports import report_key
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.structures.registry import vector_tables, wanted_structures
from graphrag_pipeline.structures.structure import Step


def embedding_key(table: str) -> dg.AssetKey:
    """Return the key of a vector table's asset."""
    return dg.AssetKey(["embeddings", f"{table}_vectors"])


def step_key(step: Step) -> dg.AssetKey:
    """Return the key of the asset of a structure's step."""
    return dg.AssetKey(list(step.key))


def input_keys(
    settings: Settings, tables: Sequence[str], vectors: Sequence[str] = ()
) -> list[dg.AssetKey]:
    """Return the keys of the assets that fill tables and vector tables.

    Raises ConfigError for a table that no asset fills.
    """
    by_table = _keys_by_table(settings)
    vector_names = {table.name for table in vector_tables(settings)}
    strangers = [*(set(tables) - by_table.keys()), *(set(vectors) - vector_names)]
    if strangers:
        raise ConfigError(f"a structure is made from {strangers[0]}, which no asset fills")
    keys = [key for table in tables for key in by_table[table]]
    return [*keys, *map(embedding_key, vectors)]


def _keys_by_table(settings: Settings) -> dict[str, list[dg.AssetKey]]:
    # A batch's rows wait for the graph: taking in the batch is what makes them current.
    levels = range(settings.communities.levels)
    steps = [step for structure in wanted_structures(settings) for step in structure.steps]
    return {
        "documents": [DOCUMENTS, ENTITIES],
        "chunks": [CHUNKS, ENTITIES],
        "extractions": [EXTRACTIONS, ENTITIES],
        "entity_aliases": [ALIASES],
        "entities": [ENTITIES],
        "relationships": [RELATIONSHIPS],
        "communities": [level_key(level) for level in levels],
        "community_reports": [report_key(level) for level in levels],
        **{step.table: [step_key(step)] for step in steps},
    }
