{{ config(meta={
    'description': 'Each community is there, with its size and a path as long as its depth.',
    'dagster': {'ref': {'name': 'community_overview'}}
}) }}
with members as (
    select community_id, count(distinct entity_id) as size
    from {{ ref('stg_community_members') }}
    group by community_id
)

select communities.community_id
from {{ ref('stg_communities') }} as communities
left join {{ ref('community_overview') }} as overview using (community_id)
left join members using (community_id)
where overview.community_id is null
    or len(overview.path_ids) <> communities.level + 1
    or overview.size is distinct from members.size
