with recursive paths as (
    select
        community_id,
        [community_id] as path_ids,
        [title] as path_titles
    from {{ ref('stg_communities') }}
    where parent_id is null
    union all
    select
        communities.community_id,
        list_append(paths.path_ids, communities.community_id),
        list_append(paths.path_titles, communities.title)
    from {{ ref('stg_communities') }} as communities
    inner join paths on communities.parent_id = paths.community_id
),

children as (
    select
        parent_id as community_id,
        count(*) as n_children
    from {{ ref('stg_communities') }}
    where parent_id is not null
    group by parent_id
),

members as (
    select distinct community_id, entity_id from {{ ref('stg_community_members') }}
),

key_entities as (
    select
        members.community_id,
        list(entities.title order by entities.degree desc, entities.title)[:5] as key_entities
    from members
    inner join {{ ref('stg_entities') }} as entities using (entity_id)
    group by members.community_id
),

coverage as (
    select
        members.community_id,
        count(distinct chunks.document_id) as n_documents
    from members
    inner join {{ ref('stg_entity_chunks') }} as found using (entity_id)
    inner join {{ ref('stg_chunks') }} as chunks using (chunk_id)
    group by members.community_id
)

select
    communities.community_id,
    communities.human_readable_id,
    communities.level,
    communities.last_level,
    communities.title,
    communities.parent_id,
    parents.title as parent,
    array_to_string(paths.path_titles, ' > ') as path,
    paths.path_ids,
    communities.size,
    communities.n_relationships,
    coalesce(children.n_children, 0) as n_children,
    coalesce(coverage.n_documents, 0) as n_documents,
    coalesce(key_entities.key_entities, []) as key_entities,
    reports.report_id is not null as has_report,
    reports.title as report_title,
    reports.summary as report_summary,
    reports.rating,
    reports.n_findings,
    reports.outdated,
    reports.coverage,
    reports.writer
from {{ ref('stg_communities') }} as communities
left join paths using (community_id)
left join {{ ref('stg_communities') }} as parents on communities.parent_id = parents.community_id
left join children on communities.community_id = children.community_id
left join coverage on communities.community_id = coverage.community_id
left join key_entities on communities.community_id = key_entities.community_id
left join {{ ref('stg_community_reports') }} as reports
    on communities.community_id = reports.community_id
