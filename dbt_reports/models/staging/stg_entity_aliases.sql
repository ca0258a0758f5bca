select
    entity_id as alias_id,
    canonical_id as entity_id,
    title as alias,
    canonical_title as title,
    type,
    method,
    rule,
    confidence,
    evidence
from {{ source('published', 'entity_aliases') }}
