select
    aliases.alias_id,
    aliases.alias,
    aliases.entity_id,
    aliases.title,
    aliases.type,
    aliases.method,
    aliases.rule,
    aliases.confidence,
    aliases.evidence,
    entities.degree,
    entities.frequency as n_chunks
from {{ ref('stg_entity_aliases') }} as aliases
left join {{ ref('stg_entities') }} as entities on aliases.entity_id = entities.entity_id
