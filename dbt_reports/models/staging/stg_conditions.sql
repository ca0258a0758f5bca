select
    conditions.experiment,
    conditions.condition,
    conditions.position,
    conditions.method,
    conditions.parameters,
    conditions.release as release_id,
    experiments.question_set,
    experiments.started_at,
    experiments.finished_at
from {{ source('evaluation', 'conditions') }} as conditions
inner join {{ source('evaluation', 'experiments') }} as experiments using (experiment)
