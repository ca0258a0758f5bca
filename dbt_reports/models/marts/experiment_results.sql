with answers as (
    select
        experiment,
        condition,
        count(*) as n_answers,
        bool_or(model <> '') as is_written,
        median(context_tokens) as context_tokens,
        sum(prompt_tokens)::bigint as prompt_tokens,
        sum(completion_tokens)::bigint as completion_tokens,
        sum(n_model_calls)::bigint as n_model_calls,
        sum(cost) as cost,
        count(*) filter (where cost is null) as n_unpriced,
        median(retrieve_ms) as retrieve_ms,
        median(total_ms) as total_ms,
        sum(n_citations_resolved) / nullif(sum(n_citations), 0) as citation_validity
    from {{ ref('stg_answers') }}
    group by experiment, condition
),

means as (
    select
        experiment,
        condition,
        metric,
        avg(value) as mean
    from {{ ref('stg_scores') }}
    group by experiment, condition, metric
),

scores as (
    select
        experiment,
        condition,
        map_from_entries(list(row(metric, mean) order by metric)) as scores
    from means
    group by experiment, condition
)

select
    conditions.experiment,
    conditions.condition,
    conditions.position,
    conditions.method,
    conditions.parameters,
    conditions.release_id,
    conditions.question_set,
    conditions.started_at,
    conditions.finished_at,
    coalesce(answers.n_answers, 0) as n_answers,
    answers.is_written,
    scores.scores['recall@5'] as recall_at_5,
    scores.scores['all_gold@5'] as all_gold_at_5,
    scores.scores['answer_in_context'] as answer_in_context,
    scores.scores['accuracy'] as accuracy,
    scores.scores['f1'] as f1,
    scores.scores['exact_match'] as exact_match,
    scores.scores['claims'] as n_claims,
    scores.scores,
    answers.citation_validity,
    answers.context_tokens,
    coalesce(answers.prompt_tokens, 0) as prompt_tokens,
    coalesce(answers.completion_tokens, 0) as completion_tokens,
    coalesce(answers.n_model_calls, 0) as n_model_calls,
    coalesce(answers.cost, 0) as cost,
    coalesce(answers.n_unpriced, 0) as n_unpriced,
    answers.retrieve_ms,
    answers.total_ms
from {{ ref('stg_conditions') }} as conditions
left join answers using (experiment, condition)
left join scores using (experiment, condition)
