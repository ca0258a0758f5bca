select
    chunk_id,
    extractor,
    version,
    status,
    error,
    n_entities,
    n_relationships,
    prompt_tokens,
    completion_tokens,
    batch
from {{ source('published', 'extractions') }}
