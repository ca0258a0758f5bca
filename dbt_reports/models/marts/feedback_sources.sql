-- What stands under answers that people judged, by its kind.
with sources as (
    select
        'document' as kind,
        unnest(document_ids) as source_id,
        verdict,
        question,
        said_at
    from {{ ref('stg_feedback') }}

    union all

    select
        'community' as kind,
        unnest(community_ids) as source_id,
        verdict,
        question,
        said_at
    from {{ ref('stg_feedback') }}

    union all

    select
        'method' as kind,
        method as source_id,
        verdict,
        question,
        said_at
    from {{ ref('stg_feedback') }}
),

names as (
    select
        'document' as kind,
        document_id as source_id,
        uri as name
    from {{ ref('stg_documents') }}

    union all

    select
        'community' as kind,
        community_id as source_id,
        title as name
    from {{ ref('stg_communities') }}
)

select
    sources.kind,
    sources.source_id,
    case when sources.kind = 'method' then sources.source_id else any_value(names.name) end as name,
    count(*) as n_judgements,
    count(*) filter (where sources.verdict = 'good') as n_good,
    count(*) filter (where sources.verdict = 'bad') as n_bad,
    count(*) filter (where sources.verdict = 'bad') / count(*) as bad_share,
    coalesce(
        list(distinct sources.question order by sources.question)
            filter (where sources.verdict = 'bad'),
        []
    ) as bad_questions,
    max(sources.said_at) as last_said_at
from sources
left join names using (kind, source_id)
group by sources.kind, sources.source_id
