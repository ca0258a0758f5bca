{{ config(meta={
    'description': 'The newest release of the growth holds what the index holds.',
    'dagster': {'ref': {'name': 'index_growth'}}
}) }}
select growth.release_id
from {{ ref('index_growth') }} as growth
inner join {{ ref('built_from') }} as built using (release_id)
where growth.n_entities <> (select count(*) from {{ ref('stg_entities') }})
    or growth.n_documents <> (select count(*) from {{ ref('stg_documents') }})
