select
    id as release_id,
    created_at,
    n_documents,
    n_chunks,
    n_entities,
    n_relationships,
    n_communities,
    n_reports,
    modularity,
    embedder
from {{ source('published', 'releases') }}
