select
    experiment,
    condition,
    metric,
    measured_at,
    release_id,
    mean,
    lag(release_id) over earlier as previous_release_id,
    lag(mean) over earlier as previous_mean,
    mean - lag(mean) over earlier as change,
    measured_at = max(measured_at) over (partition by experiment) as is_latest
from {{ ref('stg_metric_history') }}
window earlier as (partition by experiment, condition, metric order by measured_at)
