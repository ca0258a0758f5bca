with listed as (
    select
        experiment,
        condition,
        unnest(parts) as part
    from {{ ref('stg_answers') }}
),

parts as (
    select
        experiment,
        condition,
        part['kind'] as kind,
        part['records'] as records,
        part['tokens'] as tokens
    from listed
),

answered as (
    select
        experiment,
        condition,
        count(*) as n_answers
    from {{ ref('stg_answers') }}
    where parts is not null
    group by experiment, condition
)

select
    parts.experiment,
    parts.condition,
    parts.kind,
    answered.n_answers,
    count(*) as n_answers_with,
    sum(parts.records) / answered.n_answers as mean_records,
    sum(parts.tokens) / answered.n_answers as mean_tokens,
    sum(parts.tokens) / nullif(
        sum(sum(parts.tokens)) over (partition by parts.experiment, parts.condition), 0
    ) as token_share
from parts
inner join answered using (experiment, condition)
group by parts.experiment, parts.condition, parts.kind, answered.n_answers
