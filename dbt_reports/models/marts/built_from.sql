-- Which release these marts tell of. The pipeline compares it with what is published.
select
    releases.release_id,
    releases.created_at as released_at,
    current_timestamp as built_at,
    '{{ env_var("GRAPHRAG_MARTS_PROJECT", "") }}' as project_version
from {{ ref('stg_releases') }} as releases
order by releases.created_at desc, releases.release_id desc
limit 1
