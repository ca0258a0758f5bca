select
    id as community_id,
    human_readable_id,
    level,
    last_level,
    parent_id,
    title,
    size,
    n_relationships
from {{ source('published', 'communities') }}
