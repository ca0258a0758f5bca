with released as (
    select
        *,
        lag(release_id) over oldest_first as previous_release_id,
        lag(created_at) over oldest_first as previous_created_at,
        n_documents - lag(n_documents, 1, 0) over oldest_first as new_documents,
        n_chunks - lag(n_chunks, 1, 0) over oldest_first as new_chunks,
        n_entities - lag(n_entities, 1, 0) over oldest_first as new_entities,
        n_relationships - lag(n_relationships, 1, 0) over oldest_first as new_relationships,
        n_communities - lag(n_communities, 1, 0) over oldest_first as new_communities,
        n_reports - lag(n_reports, 1, 0) over oldest_first as new_reports
    from {{ ref('stg_releases') }}
    window oldest_first as (order by created_at, release_id)
)

select
    release_id,
    created_at,
    previous_release_id,
    date_diff('second', previous_created_at, created_at) / 3600 as hours_since_previous,
    n_documents,
    new_documents,
    n_chunks,
    new_chunks,
    n_entities,
    new_entities,
    n_relationships,
    new_relationships,
    n_communities,
    new_communities,
    n_reports,
    new_reports,
    n_entities / nullif(n_documents, 0) as entities_per_document,
    modularity,
    embedder
from released
