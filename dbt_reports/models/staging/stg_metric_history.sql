select
    experiment,
    condition,
    metric,
    measured_at,
    release as release_id,
    mean
from {{ source('evaluation', 'metric_history') }}
