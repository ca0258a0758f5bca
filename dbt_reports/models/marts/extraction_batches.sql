with answers as (
    select
        batch,
        count(*) as n_answers
    from {{ ref('stg_llm_calls') }}
    where stage = 'extractions' and error is null
    group by batch
),

batches as (
    select
        batch,
        extractor,
        version,
        count(*) as n_chunks,
        count(*) filter (where status = 'failed') as n_failed,
        count(*) filter (where status = 'ok' and n_entities = 0) as n_empty,
        sum(n_entities)::bigint as n_entities,
        sum(n_relationships)::bigint as n_relationships,
        sum(prompt_tokens)::bigint as prompt_tokens,
        sum(completion_tokens)::bigint as completion_tokens
    from {{ ref('stg_extractions') }}
    group by batch, extractor, version
)

select
    batches.*,
    batches.n_failed / batches.n_chunks as failed_share,
    batches.n_entities / nullif(batches.n_chunks - batches.n_failed, 0) as entities_per_chunk,
    batches.n_relationships / nullif(batches.n_chunks - batches.n_failed, 0)
        as relationships_per_chunk,
    answers.n_answers / batches.n_chunks as answers_per_chunk,
    batches.n_entities / nullif(answers.n_answers, 0) as entities_per_answer
from batches
left join answers on batches.batch = answers.batch and batches.extractor = 'llm'
