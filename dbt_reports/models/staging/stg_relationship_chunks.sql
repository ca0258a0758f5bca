select
    relationship_id,
    chunk_id,
    n_mentions,
    start_char,
    end_char
from {{ source('published', 'relationship_chunks') }}
