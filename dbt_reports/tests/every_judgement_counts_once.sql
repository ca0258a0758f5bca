{{ config(meta={
    'description': 'Each judgement counts once for its method, and not at all for what it does not rest on.',
    'dagster': {'ref': {'name': 'feedback_sources'}}
}) }}
with judged as (
    select 'method' as kind, count(*) as n_judgements
    from {{ ref('answer_feedback') }}

    union all

    select 'document' as kind, coalesce(sum(len(document_ids)), 0) as n_judgements
    from {{ ref('answer_feedback') }}

    union all

    select 'community' as kind, coalesce(sum(len(community_ids)), 0) as n_judgements
    from {{ ref('answer_feedback') }}
),

counted as (
    select kind, sum(n_judgements) as n_judgements
    from {{ ref('feedback_sources') }}
    group by kind
)

select judged.kind
from judged
left join counted using (kind)
where judged.n_judgements <> coalesce(counted.n_judgements, 0)
