select
    id as call_id,
    called_at,
    (called_at at time zone 'UTC')::date as day,
    stage,
    batch,
    model,
    prompt_tokens,
    completion_tokens,
    cost,
    seconds,
    cached as is_cached,
    error
from {{ source('published', 'llm_calls') }}
