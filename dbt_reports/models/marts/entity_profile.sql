with places as (
    select
        found.entity_id,
        count(*) as n_chunks,
        count(distinct chunks.document_id) as n_documents,
        sum(found.n_mentions)::bigint as n_mentions,
        min(batches.created_at) as first_seen,
        max(batches.created_at) as last_seen
    from {{ ref('stg_entity_chunks') }} as found
    inner join {{ ref('stg_chunks') }} as chunks using (chunk_id)
    left join {{ ref('stg_batches') }} as batches on chunks.batch = batches.batch
    group by found.entity_id
),

per_document as (
    select
        found.entity_id,
        documents.uri,
        sum(found.n_mentions) as n_mentions
    from {{ ref('stg_entity_chunks') }} as found
    inner join {{ ref('stg_chunks') }} as chunks using (chunk_id)
    inner join {{ ref('stg_documents') }} as documents using (document_id)
    group by found.entity_id, documents.uri
),

documents as (
    select
        entity_id,
        list(uri order by n_mentions desc, uri) as documents
    from per_document
    group by entity_id
),

memberships as (
    select
        members.entity_id,
        list(
            {
                'level': members.level,
                'community_id': communities.community_id,
                'title': communities.title
            }
            order by members.level
        ) as communities
    from {{ ref('stg_community_members') }} as members
    inner join {{ ref('stg_communities') }} as communities using (community_id)
    group by members.entity_id
),

aliases as (
    select
        entity_id,
        list(alias order by alias) as aliases
    from {{ ref('stg_entity_aliases') }}
    group by entity_id
)

select
    entities.entity_id,
    entities.human_readable_id,
    entities.title,
    entities.type,
    entities.description,
    entities.degree,
    coalesce(places.n_chunks, 0) as n_chunks,
    coalesce(places.n_documents, 0) as n_documents,
    coalesce(places.n_mentions, 0) as n_mentions,
    coalesce(documents.documents, []) as documents,
    places.first_seen,
    places.last_seen,
    memberships.communities[1].community_id as root_community_id,
    memberships.communities[1].title as root_community,
    memberships.communities[-1].community_id as deepest_community_id,
    memberships.communities[-1].title as deepest_community,
    coalesce(memberships.communities, []) as communities,
    coalesce(aliases.aliases, []) as aliases
from {{ ref('stg_entities') }} as entities
left join places using (entity_id)
left join documents using (entity_id)
left join memberships using (entity_id)
left join aliases using (entity_id)
