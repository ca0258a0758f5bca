select
    id as document_id,
    human_readable_id,
    uri,
    source,
    title,
    n_chars,
    batch
from {{ source('published', 'documents') }}
