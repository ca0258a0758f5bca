{{ config(meta={
    'description': 'No relationship is without a chunk that supports it.',
    'dagster': {'ref': {'name': 'relationship_evidence'}}
}) }}
select relationship_id
from {{ ref('stg_relationships') }}
where relationship_id not in (select relationship_id from {{ ref('relationship_evidence') }})
