-- Which release and which experiments these marts tell of. The pipeline compares them with what is
-- published, evaluated and said.
select
    releases.release_id,
    releases.created_at as released_at,
    (select max(finished_at) from {{ ref('stg_conditions') }}) as evaluated_at,
    (
        select coalesce(string_agg(table_name || '=' || version, ' ' order by table_name), '')
        from {{ source('offered', 'versions') }}
    ) as offered_version,
    current_timestamp as built_at,
    '{{ env_var("GRAPHRAG_MARTS_PROJECT", "") }}' as project_version
from {{ ref('stg_releases') }} as releases
order by releases.created_at desc, releases.release_id desc
limit 1
