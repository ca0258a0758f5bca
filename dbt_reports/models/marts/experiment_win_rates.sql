-- Comparisons of conditions that an experiment no longer has are left out.
select
    comparisons.experiment,
    comparisons.criterion,
    comparisons.condition_a,
    a.method as method_a,
    comparisons.condition_b,
    b.method as method_b,
    comparisons.n_questions,
    comparisons.n_verdicts,
    comparisons.win_rate,
    comparisons.win_rate_low,
    comparisons.win_rate_high,
    comparisons.tie_share,
    comparisons.first_chosen,
    comparisons.first_chosen_low,
    comparisons.first_chosen_high,
    comparisons.consistent_share,
    comparisons.p,
    comparisons.p_corrected,
    comparisons.winner,
    comparisons.verdict
from {{ ref('stg_comparisons') }} as comparisons
inner join {{ ref('stg_conditions') }} as a
    on comparisons.experiment = a.experiment and comparisons.condition_a = a.condition
inner join {{ ref('stg_conditions') }} as b
    on comparisons.experiment = b.experiment and comparisons.condition_b = b.condition
