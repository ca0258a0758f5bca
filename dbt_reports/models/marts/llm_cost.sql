select
    day,
    stage,
    model,
    batch,
    count(*) as n_calls,
    count(*) filter (where is_cached) as n_cached,
    count(*) filter (where error is not null) as n_failed,
    count(*) filter (where cost is null and error is null) as n_unpriced,
    coalesce(sum(prompt_tokens) filter (where not is_cached), 0)::bigint as prompt_tokens,
    coalesce(sum(completion_tokens) filter (where not is_cached), 0)::bigint as completion_tokens,
    coalesce(sum(prompt_tokens + completion_tokens) filter (where is_cached), 0)::bigint
        as cached_tokens,
    coalesce(sum(cost), 0) as cost,
    sum(seconds) as seconds
from {{ ref('stg_llm_calls') }}
group by day, stage, model, batch
