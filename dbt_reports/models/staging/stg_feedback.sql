select
    answer_id,
    said_by,
    said_at,
    verdict,
    words,
    question,
    method,
    release as release_id,
    documents as document_ids,
    communities as community_ids
from {{ source('offered', 'feedback') }}
