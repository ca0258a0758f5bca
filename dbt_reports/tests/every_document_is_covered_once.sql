{{ config(meta={
    'description': 'Chunks and documents of the coverage add up to those of the index.',
    'dagster': {'ref': {'name': 'document_coverage'}}
}) }}
select *
from (
    select count(document_id) as documents, coalesce(sum(n_chunks), 0) as chunks
    from {{ ref('document_coverage') }}
) as covered
cross join (select count(*) as documents from {{ ref('stg_documents') }}) as documents
cross join (select count(*) as chunks from {{ ref('stg_chunks') }}) as chunks
where covered.documents <> documents.documents or covered.chunks <> chunks.chunks
