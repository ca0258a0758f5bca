-- Documents, and after them the files and records that could not be made one.
with chunks as (
    select
        chunks.document_id,
        count(*) as n_chunks,
        sum(chunks.n_tokens)::bigint as n_tokens,
        count(*) filter (where extractions.status = 'failed') as n_failed_chunks,
        count(*) filter (where extractions.chunk_id is null) as n_untried_chunks,
        count(*) filter (where extractions.status = 'ok' and extractions.n_entities = 0)
            as n_empty_chunks,
        min(extractions.error) as an_error
    from {{ ref('stg_chunks') }} as chunks
    left join {{ ref('stg_extractions') }} as extractions using (chunk_id)
    group by chunks.document_id
),

entities as (
    select
        chunks.document_id,
        count(distinct found.entity_id) as n_entities
    from {{ ref('stg_entity_chunks') }} as found
    inner join {{ ref('stg_chunks') }} as chunks using (chunk_id)
    group by chunks.document_id
),

relationships as (
    select
        chunks.document_id,
        count(distinct found.relationship_id) as n_relationships
    from {{ ref('stg_relationship_chunks') }} as found
    inner join {{ ref('stg_chunks') }} as chunks using (chunk_id)
    group by chunks.document_id
)

select
    documents.uri,
    documents.source,
    documents.document_id,
    documents.title,
    case
        when coalesce(chunks.n_failed_chunks, 0) = 0 then 'ok'
        when chunks.n_failed_chunks < chunks.n_chunks then 'partial'
        else 'failed'
    end as status,
    chunks.an_error as reason,
    documents.batch,
    batches.created_at as added_at,
    documents.n_chars,
    coalesce(chunks.n_chunks, 0) as n_chunks,
    coalesce(chunks.n_tokens, 0) as n_tokens,
    coalesce(chunks.n_failed_chunks, 0) as n_failed_chunks,
    coalesce(chunks.n_untried_chunks, 0) as n_untried_chunks,
    coalesce(chunks.n_empty_chunks, 0) as n_empty_chunks,
    coalesce(entities.n_entities, 0) as n_entities,
    coalesce(relationships.n_relationships, 0) as n_relationships
from {{ ref('stg_documents') }} as documents
left join chunks using (document_id)
left join entities using (document_id)
left join relationships using (document_id)
left join {{ ref('stg_batches') }} as batches on documents.batch = batches.batch

union all

select
    quarantined.uri,
    quarantined.source,
    null as document_id,
    null as title,
    'quarantined' as status,
    quarantined.reason,
    quarantined.batch,
    batches.created_at as added_at,
    null as n_chars,
    0 as n_chunks,
    0 as n_tokens,
    0 as n_failed_chunks,
    0 as n_untried_chunks,
    0 as n_empty_chunks,
    0 as n_entities,
    0 as n_relationships
from {{ ref('stg_quarantine') }} as quarantined
left join {{ ref('stg_batches') }} as batches on quarantined.batch = batches.batch
