{{ config(meta={
    'description': 'Each condition of each experiment is there once, with all its answers and scores.',
    'dagster': {'ref': {'name': 'experiment_results'}}
}) }}
with answers as (
    select experiment, condition, count(*) as n_answers
    from {{ ref('stg_answers') }}
    group by experiment, condition
),

metrics as (
    select experiment, condition, count(distinct metric) as n_metrics
    from {{ ref('stg_scores') }}
    group by experiment, condition
)

select conditions.experiment, conditions.condition
from {{ ref('stg_conditions') }} as conditions
left join {{ ref('experiment_results') }} as results using (experiment, condition)
left join answers using (experiment, condition)
left join metrics using (experiment, condition)
where results.n_answers is distinct from coalesce(answers.n_answers, 0)
    or coalesce(cardinality(results.scores), 0) <> coalesce(metrics.n_metrics, 0)
