"""The graph as RDF in N-Triples: SKOS concepts, SKOS collections, reified relationships."""

from __future__ import annotations

from graphrag_pipeline.core.addresses import PermanentLinks
from graphrag_pipeline.exchange.exporting.writing import Exporter, Writer

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_SKOS = "http://www.w3.org/2004/02/skos/core#"
_TERMS = "http://purl.org/dc/terms/"
_PAGE = "http://xmlns.com/foaf/0.1/page"
_OWN = "urn:graphrag:"

# Characters that XML cannot hold are left out, so that what reads this can write RDF/XML.
_MACROS = rf"""
CREATE TEMP MACRO iri(kind, id) AS '<{_OWN}' || kind || ':' || id || '>';
CREATE TEMP MACRO text(t) AS '"' || replace(replace(replace(replace(replace(
    regexp_replace(t, '[\x00-\x08\x0B\x0C\x0E-\x1F\x{{FFFE}}\x{{FFFF}}]', '', 'g'),
    '\', '\\'), '"', '\"'), chr(10), '\n'), chr(13), '\r'), chr(9), '\t') || '"';
CREATE TEMP MACRO number(n, kind) AS
    '"' || n || '"^^<http://www.w3.org/2001/XMLSchema#' || kind || '>';
CREATE TEMP MACRO triple(s, p, o) AS s || ' <' || p || '> ' || o || ' .' || chr(10);
"""
_ENTITIES = f"""
SELECT triple(s, '{_RDF}type', '<{_SKOS}Concept>')
       || triple(s, '{_SKOS}prefLabel', text(title))
       || triple(s, '{_SKOS}definition', text(description))
       || triple(s, '{_TERMS}type', text(type))
       || triple(s, '{_OWN}degree', number(degree, 'integer'))
       || triple(s, '{_OWN}frequency', number(frequency, 'integer')) AS line
FROM (SELECT *, iri('entity', id) AS s FROM entities ORDER BY human_readable_id)
"""
_RELATIONSHIPS = f"""
SELECT triple(one, '{_SKOS}related', two)
       || triple(s, '{_RDF}type', '<{_RDF}Statement>')
       || triple(s, '{_RDF}subject', one)
       || triple(s, '{_RDF}predicate', '<{_SKOS}related>')
       || triple(s, '{_RDF}object', two)
       || CASE WHEN type = '' THEN '' ELSE triple(s, '{_TERMS}type', text(type)) END
       || triple(s, '{_TERMS}description', text(description))
       || triple(s, '{_OWN}weight', number(weight, 'double'))
       || triple(s, '{_OWN}pmi', number(pmi, 'double')) AS line
FROM (SELECT *, iri('relationship', id) AS s, iri('entity', source_id) AS one,
             iri('entity', target_id) AS two FROM relationships ORDER BY human_readable_id)
"""
_DOCUMENTS = f"""
SELECT triple(s, '{_RDF}type', '<http://purl.org/dc/dcmitype/Text>')
       || triple(s, '{_TERMS}title', text(title))
       || triple(s, '{_TERMS}identifier', text(uri)) AS line
FROM (SELECT *, iri('document', id) AS s FROM documents ORDER BY human_readable_id)
"""
_SOURCES = f"""
SELECT triple(iri(kind, id), '{_TERMS}source', iri('document', document_id)) AS line FROM (
    SELECT DISTINCT 'entity' AS kind, entity_id AS id, document_id
    FROM entity_chunks JOIN chunks ON chunks.id = chunk_id
    UNION ALL
    SELECT DISTINCT 'relationship', relationship_id, document_id
    FROM relationship_chunks JOIN chunks ON chunks.id = chunk_id)
ORDER BY ALL
"""
_COMMUNITIES = f"""
SELECT triple(s, '{_RDF}type', '<{_SKOS}Collection>')
       || triple(s, '{_SKOS}prefLabel', text(coalesce(r.title, c.title)))
       || triple(s, '{_OWN}level', number(c.level, 'integer'))
       || coalesce(triple(s, '{_TERMS}abstract', text(r.summary)), '')
       || coalesce(triple(s, '{_TERMS}isPartOf', iri('community', c.parent_id)), '') AS line
FROM (SELECT *, iri('community', id) AS s FROM communities) c
LEFT JOIN community_reports r ON r.community_id = c.id ORDER BY c.human_readable_id
"""
_MEMBERS = f"""
SELECT triple(iri('community', community_id), '{_SKOS}member', iri('entity', entity_id)) AS line
FROM (SELECT DISTINCT community_id, entity_id FROM community_members ORDER BY ALL)
"""


def write_rdf(writer: Writer, name: str) -> None:
    """Write entities, relationships, communities and their source documents as N-Triples."""
    writer.con.execute(_MACROS)
    writer.text(
        name,
        [
            ("documents", _DOCUMENTS, ""),
            ("entities", _ENTITIES, ""),
            ("relationships", _RELATIONSHIPS, ""),
            ("sources", _SOURCES, ""),
            ("communities", _COMMUNITIES, ""),
            ("members", _MEMBERS, ""),
            *(("links", query, "") for query in _links(writer.links)),
        ],
    )


def _links(links: PermanentLinks | None) -> list[str]:
    """Return the queries for the pages of a server about each thing."""
    if links is None:
        return []
    shown = {"document": "documents", "entity": "entities", "community": "communities"}
    return [
        f"SELECT triple(iri('{kind}', id), '{_PAGE}', '<' || {links.sql(table, 'id')} || '>') "
        f"AS line FROM {table} ORDER BY human_readable_id"
        for kind, table in shown.items()
    ]


RDF = Exporter(
    "graph.nt",
    'rdflib.Graph().parse("{path}")',
    file=write_rdf,
    lost=("text, spans and findings: what is told of leads to its document", "claims"),
)
