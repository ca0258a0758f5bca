{{ config(meta={
    'description': 'Win rates and their intervals are from 0 to 1, and a winner is one of the two.',
    'dagster': {'ref': {'name': 'experiment_win_rates'}}
}) }}
select experiment, criterion, condition_a, condition_b
from {{ ref('experiment_win_rates') }}
where win_rate not between 0 and 1
    or win_rate_low not between 0 and 1
    or win_rate_high not between 0 and 1
    or winner not in (condition_a, condition_b)
