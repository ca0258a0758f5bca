select
    id as relationship_id,
    human_readable_id,
    source_id,
    target_id,
    source,
    target,
    type,
    description,
    weight,
    pmi,
    combined_degree
from {{ source('published', 'relationships') }}
