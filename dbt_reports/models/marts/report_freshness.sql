select
    communities.level,
    count(*) as n_communities,
    count(*) filter (where communities.size >= 2) as n_to_report,
    count(reports.report_id) as n_reports,
    count(*) filter (where communities.size >= 2) - count(reports.report_id) as n_missing,
    count(failures.community_id) as n_failed,
    count(*) filter (where reports.outdated > 0) as n_outdated,
    max(reports.outdated) as most_outdated,
    avg(reports.coverage) as mean_coverage,
    min(reports.coverage) as least_coverage,
    list(distinct reports.writer order by reports.writer)
        filter (where reports.writer is not null) as writers
from {{ ref('stg_communities') }} as communities
left join {{ ref('stg_community_reports') }} as reports
    on communities.community_id = reports.community_id
left join {{ ref('stg_report_failures') }} as failures
    on communities.community_id = failures.community_id
group by communities.level
