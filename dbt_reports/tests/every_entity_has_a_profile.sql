{{ config(meta={
    'description': 'Each entity has a profile, with a community at every level.',
    'dagster': {'ref': {'name': 'entity_profile'}}
}) }}
with levels as (
    select count(distinct level) as n_levels from {{ ref('stg_community_members') }}
)

select entities.entity_id
from {{ ref('stg_entities') }} as entities
cross join levels
left join {{ ref('entity_profile') }} as profiles using (entity_id)
where profiles.entity_id is null or len(profiles.communities) <> levels.n_levels
