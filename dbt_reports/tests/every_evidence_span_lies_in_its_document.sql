{{ config(meta={
    'description': 'No span of evidence ends beyond its document or holds other than its quote.',
    'dagster': {'ref': {'name': 'relationship_evidence'}}
}) }}
select evidence.relationship_id, evidence.chunk_id
from {{ ref('relationship_evidence') }} as evidence
left join {{ ref('stg_documents') }} as documents using (document_id)
where documents.document_id is null
    or evidence.start_char < 0
    or evidence.end_char <= evidence.start_char
    or evidence.end_char > documents.n_chars
    or length(evidence.quote) <> evidence.end_char - evidence.start_char
