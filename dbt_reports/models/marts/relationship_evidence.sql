-- An import may not say where in a chunk a relationship stands: then the whole chunk is quoted.
with evidence as (
    select
        found.relationship_id,
        found.chunk_id,
        found.n_mentions,
        found.start_char is not null and found.end_char is not null as is_exact,
        chunks.document_id,
        chunks.ordinal,
        chunks.text,
        chunks.start_char as chunk_start,
        if(is_exact, found.start_char, chunks.start_char) as start_char,
        if(is_exact, found.end_char, chunks.end_char) as end_char
    from {{ ref('stg_relationship_chunks') }} as found
    inner join {{ ref('stg_chunks') }} as chunks on found.chunk_id = chunks.chunk_id
)

select
    evidence.relationship_id,
    relationships.source,
    relationships.target,
    relationships.type,
    relationships.description,
    relationships.weight,
    relationships.pmi,
    evidence.chunk_id,
    evidence.ordinal as chunk_ordinal,
    evidence.n_mentions,
    documents.document_id,
    documents.uri,
    documents.title as document_title,
    evidence.start_char,
    evidence.end_char,
    evidence.is_exact,
    substr(
        evidence.text,
        evidence.start_char - evidence.chunk_start + 1,
        evidence.end_char - evidence.start_char
    ) as quote
from evidence
inner join {{ ref('stg_relationships') }} as relationships
    on evidence.relationship_id = relationships.relationship_id
inner join {{ ref('stg_documents') }} as documents
    on evidence.document_id = documents.document_id
