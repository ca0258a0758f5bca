select
    id as report_id,
    community_id,
    level,
    title,
    summary,
    rating,
    rating_explanation,
    len(findings) as n_findings,
    n_tokens,
    coverage,
    coalesce(outdated, 0) as outdated,
    writer
from {{ source('published', 'community_reports') }}
