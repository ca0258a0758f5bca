select
    asked.experiment,
    asked.condition,
    asked.question_id,
    answers.answer_id,
    answers.model,
    answers.citations as n_citations,
    answers.citations_resolved as n_citations_resolved,
    answers.context_tokens,
    answers.parts,
    answers.prompt_tokens,
    answers.completion_tokens,
    answers.model_calls as n_model_calls,
    answers.cost,
    answers.retrieve_ms,
    answers.total_ms
from {{ source('evaluation', 'experiment_answers') }} as asked
inner join {{ source('evaluation', 'answers') }} as answers using (answer_id)
