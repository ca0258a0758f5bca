{{ config(severity='warn', meta={
    'description': 'Warns of communities whose report a model could not write yet.',
    'dagster': {'ref': {'name': 'report_freshness'}}
}) }}
select level, n_missing
from {{ ref('report_freshness') }}
where n_missing > 0
