{{ config(meta={
    'description': 'Calls, tokens and dollars add up to those of all model calls.',
    'dagster': {'ref': {'name': 'llm_cost'}}
}) }}
select *
from (
    select
        coalesce(sum(n_calls), 0) as n_calls,
        coalesce(sum(prompt_tokens + completion_tokens + cached_tokens), 0) as tokens,
        coalesce(sum(cost), 0) as cost
    from {{ ref('llm_cost') }}
) as summed
cross join (
    select
        count(*) as n_calls,
        coalesce(sum(prompt_tokens + completion_tokens), 0) as tokens,
        coalesce(sum(cost), 0) as cost
    from {{ ref('stg_llm_calls') }}
) as called
where summed.n_calls <> called.n_calls
    or summed.tokens <> called.tokens
    or abs(summed.cost - called.cost) > 1e-6
