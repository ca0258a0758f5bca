select
    id as entity_id,
    human_readable_id,
    title,
    type,
    description,
    frequency,
    degree
from {{ source('published', 'entities') }}
