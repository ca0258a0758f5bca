select
    id as chunk_id,
    document_id,
    ordinal,
    start_char,
    end_char,
    n_tokens,
    text,
    batch
from {{ source('published', 'chunks') }}
