"""The whole index as CSV for Neo4j's bulk import."""

from __future__ import annotations

from graphrag_pipeline.core.addresses import PermanentLinks
from graphrag_pipeline.exchange.exporting.writing import Exporter, Writer

_CSV = "FORMAT csv, HEADER"
_NODES = {
    "documents": """
        SELECT id AS "id:ID(Document)", title, uri, human_readable_id AS "human_readable_id:long",
               n_chars AS "n_chars:long", 'Document' AS ":LABEL"
        FROM documents ORDER BY human_readable_id""",
    "chunks": """
        SELECT id AS "id:ID(Chunk)", text, human_readable_id AS "human_readable_id:long",
               ordinal AS "ordinal:long", start_char AS "start_char:long",
               end_char AS "end_char:long", n_tokens AS "n_tokens:long", 'Chunk' AS ":LABEL"
        FROM chunks ORDER BY human_readable_id""",
    "entities": """
        SELECT id AS "id:ID(Entity)", title, type, description,
               human_readable_id AS "human_readable_id:long", degree AS "degree:long",
               frequency AS "frequency:long", 'Entity' AS ":LABEL"
        FROM entities ORDER BY human_readable_id""",
    "communities": """
        SELECT id AS "id:ID(Community)", title, human_readable_id AS "human_readable_id:long",
               level AS "level:int", last_level AS "last_level:int", size AS "size:long",
               n_relationships AS "n_relationships:long", 'Community' AS ":LABEL"
        FROM communities ORDER BY human_readable_id""",
    "reports": """
        SELECT id AS "id:ID(Report)", title, summary, full_content, rating AS "rating:double",
               rating_explanation, level AS "level:int", writer, coverage AS "coverage:double",
               'Report' AS ":LABEL"
        FROM community_reports ORDER BY level, id""",
}
_RELATIONSHIPS = {
    "part_of": """
        SELECT id AS ":START_ID(Chunk)", document_id AS ":END_ID(Document)", 'PART_OF' AS ":TYPE"
        FROM chunks ORDER BY human_readable_id""",
    "mentions": """
        SELECT chunk_id AS ":START_ID(Chunk)", entity_id AS ":END_ID(Entity)",
               n_mentions AS "n_mentions:long", start_char AS "start_char:long",
               end_char AS "end_char:long", 'MENTIONS' AS ":TYPE"
        FROM entity_chunks ORDER BY chunk_id, entity_id""",
    "related": """
        SELECT source_id AS ":START_ID(Entity)", target_id AS ":END_ID(Entity)", r.id AS id,
               human_readable_id AS "human_readable_id:long", weight AS "weight:double",
               pmi AS "pmi:double", type, description, chunk_ids AS "chunk_ids:string[]",
               'RELATED' AS ":TYPE"
        FROM relationships r
        LEFT JOIN (SELECT relationship_id, string_agg(chunk_id, ';' ORDER BY chunk_id) AS chunk_ids
                   FROM relationship_chunks GROUP BY relationship_id) ON relationship_id = r.id
        ORDER BY human_readable_id""",
    "in_community": """
        SELECT entity_id AS ":START_ID(Entity)", community_id AS ":END_ID(Community)",
               min(level) AS "first_level:int", max(level) AS "last_level:int",
               'IN_COMMUNITY' AS ":TYPE"
        FROM community_members GROUP BY entity_id, community_id ORDER BY ALL""",
    "parent": """
        SELECT id AS ":START_ID(Community)", parent_id AS ":END_ID(Community)", 'PARENT' AS ":TYPE"
        FROM communities WHERE parent_id IS NOT NULL ORDER BY human_readable_id""",
    "describes": """
        SELECT id AS ":START_ID(Report)", community_id AS ":END_ID(Community)",
               'DESCRIBES' AS ":TYPE"
        FROM community_reports ORDER BY level, id""",
}
_SCRIPT = """#!/bin/sh
# Fills a Neo4j database (5 or later; default: neo4j) from the files beside this script.
# The server must not be running. Add --overwrite-destination to replace what the database holds.
set -e
cd "$(dirname "$0")"
neo4j-admin database import full "${{1:-neo4j}}" --multiline-fields=true \\
{files}
"""


def write_neo4j(writer: Writer) -> None:
    """Write nodes and relationships with Neo4j's headers, and ``import.sh``, which loads them."""
    for name, query in {**_NODES, **_RELATIONSHIPS}.items():
        writer.copy(f"{name}.csv", _linked(query, name, writer.links), _CSV)
    files = [f"    --nodes={name}.csv" for name in _NODES]
    files += [f"    --relationships={name}.csv" for name in _RELATIONSHIPS]
    writer.note("import.sh", _SCRIPT.format(files=" \\\n".join(files)))


def _linked(query: str, name: str, links: PermanentLinks | None) -> str:
    """Return the query of a file with a permanent link in each row that there is one to."""
    if links is None or name not in _NODES:
        return query
    link = (
        links.sql("documents", "document_id", ("start_char", "end_char"))
        if name == "chunks"
        else links.sql(name, "id")
    )
    return query.replace("        FROM ", f"             , {link} AS link\n        FROM ", 1)


NEO4J = Exporter(
    "neo4j-import",
    "sh {path}/import.sh, where neo4j-admin is installed",
    folder=write_neo4j,
    lost=("findings as a list of their own (a report's text holds them)", "claims", "vectors"),
)
