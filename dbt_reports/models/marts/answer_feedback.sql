with cited as (
    select
        answer_id,
        said_by,
        unnest(document_ids) as document_id
    from {{ ref('stg_feedback') }}
),

documents as (
    select
        cited.answer_id,
        cited.said_by,
        list(documents.uri order by documents.uri) as documents
    from cited
    inner join {{ ref('stg_documents') }} as documents using (document_id)
    group by cited.answer_id, cited.said_by
),

shown as (
    select
        answer_id,
        said_by,
        unnest(community_ids) as community_id
    from {{ ref('stg_feedback') }}
),

communities as (
    select
        shown.answer_id,
        shown.said_by,
        list(communities.title order by communities.title) as communities
    from shown
    inner join {{ ref('stg_communities') }} as communities using (community_id)
    group by shown.answer_id, shown.said_by
)

select
    feedback.said_at,
    feedback.verdict,
    feedback.words,
    feedback.question,
    feedback.method,
    feedback.release_id,
    coalesce(documents.documents, []) as documents,
    coalesce(communities.communities, []) as communities,
    feedback.document_ids,
    feedback.community_ids,
    feedback.answer_id,
    feedback.said_by
from {{ ref('stg_feedback') }} as feedback
left join documents using (answer_id, said_by)
left join communities using (answer_id, said_by)
