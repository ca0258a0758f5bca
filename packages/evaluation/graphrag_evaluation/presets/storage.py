"""Size of an index on disk, by part, and the parts that each method needs.

rag_vs_graphrag, tables 26 and 27. A block of the database file that holds columns of several tables
is shared out by their segments; vectors are the folders of their tables, their words for BM25 with
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from graphrag_pipeline.query.release import VECTORS

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("documents", "chunks", "chunk_titles", "blocks"),
    "graph": (
        "entities", "relationships", "entity_chunks", "relationship_chunks", "entity_aliases",
        "chunk_names", "description_summaries", "entities_kept_apart",
    ),
    "communities": ("hierarchy_communities", "hierarchy_members", "hierarchy_reports"),
    "synonyms": ("synonym_edges",),
    "raptor": ("raptor_nodes", "raptor_edges"),
    "hirag": ("hirag_entities", "hirag_relationships", "hirag_layers"),
    "archrag": ("chnsw", "similarity_edges"),
}  # fmt: skip
REST: Final = "origins and the rest"
"""Where each record comes from, and what the pipeline needs to go on: no method reads it."""

VECTORS_OF: Final = "vectors of "
"""How the part begins that is a table of vectors."""

_CHUNKS, _ENTITIES = ("text", "vectors of chunks"), ("graph", "vectors of entities")
_BRIDGED = (*_CHUNKS, *_ENTITIES)
_LOCAL = (*_BRIDGED, "communities")
_NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "zero_shot": (),
    "cot": (),
    "basic": _CHUNKS,
    "bm25": _CHUNKS,
    "hybrid": _CHUNKS,
    "text_summary": ("text",),
    "kg_triplets": _ENTITIES,
    "kg_triplets_text": ("text", *_ENTITIES),
    "local": _LOCAL,
    "global": ("communities", "vectors of community_reports"),
    "drift": (*_LOCAL, "vectors of community_reports"),
    "selection": _LOCAL,
    "integration": _LOCAL,
    "hipporag": (*_BRIDGED, "synonyms"),
    "hipporag2": (*_BRIDGED, "synonyms", "vectors of relationships"),
    "ppr": (*_BRIDGED, "vectors of relationships"),
    "lightrag": (*_BRIDGED, "vectors of relationships"),
    "fast_graphrag": _BRIDGED,
    "kag": (*_CHUNKS, "graph", "vectors of relationships"),
    "raptor": (*_CHUNKS, "raptor", "vectors of raptor_nodes"),
    "hirag": (*_BRIDGED, "hirag", "communities", "vectors of hirag_entities"),
    "archrag": (*_BRIDGED, "archrag", "communities", "vectors of attributed_communities"),
}

_TABLES = """
SELECT table_name AS name FROM duckdb_tables()
WHERE database_name = 'published' AND schema_name = 'main'
"""
_SEGMENTS = """
SELECT block, count(*) AS segments FROM (
    SELECT unnest(list_distinct([block_id] || additional_block_ids)) AS block
    FROM pragma_storage_info('{table}') WHERE segment_type <> 'VALIDITY' OR block_id >= 0)
WHERE block >= 0 GROUP BY block
"""
_SIZE = """
SELECT block_size AS block, total_blocks * block_size AS total FROM pragma_database_size()
WHERE database_name = 'published'
"""


def parts_of(release: Release) -> dict[str, float]:
    """Return the bytes of each part of a release that has any, in order."""
    tables = _bytes_of_tables(release)
    parts = {
        part: sum(tables.get(table, 0.0) for table in members) for part, members in _PARTS.items()
    }
    (size,) = release.rows(_SIZE)
    rest = size["total"] - sum(parts.values())
    vectors = {
        f"{VECTORS_OF}{table}": float(_bytes_in(release.home / VECTORS / f"{table}.lance"))
        for table in sorted(release.facts.vector_versions)
    }
    return {part: size for part, size in {**parts, **vectors, REST: rest}.items() if size > 0}


def tables_of_part(part: str) -> tuple[str, ...]:
    """Return the tables of the database that are a part; none for a table of vectors."""
    return _PARTS.get(part, ())


def needs_of(method: str) -> Sequence[str] | None:
    """Return the parts that a method needs; None for one that is not known here."""
    return _NEEDS.get(method)


def needed_by(method: str, parts: Sequence[str]) -> list[str]:
    """Return the parts that a method needs; all but the rest for one that is not known here."""
    needs = needs_of(method)
    return [part for part in parts if part != REST and (needs is None or part in needs)]


def _bytes_of_tables(release: Release) -> dict[str, float]:
    tables = [row["name"] for row in release.rows(_TABLES)]
    segments = {
        table: {
            row["block"]: row["segments"] for row in release.rows(_SEGMENTS.format(table=table))
        }
        for table in tables
    }
    shared: dict[int, int] = {}
    for blocks in segments.values():
        for block, number in blocks.items():
            shared[block] = shared.get(block, 0) + number
    (size,) = release.rows(_SIZE)
    return {
        table: sum(size["block"] * number / shared[block] for block, number in blocks.items())
        for table, blocks in segments.items()
    }


def _bytes_in(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
