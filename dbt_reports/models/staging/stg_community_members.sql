select
    community_id,
    entity_id,
    level
from {{ source('published', 'community_members') }}
