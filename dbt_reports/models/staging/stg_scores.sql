select
    asked.experiment,
    asked.condition,
    asked.question_id,
    scores.metric,
    scores.value
from {{ source('evaluation', 'experiment_answers') }} as asked
inner join {{ source('evaluation', 'experiments') }} as experiments using (experiment)
inner join {{ source('evaluation', 'scores') }} as scores
    on asked.answer_id = scores.answer_id and experiments.question_set = scores.question_set
