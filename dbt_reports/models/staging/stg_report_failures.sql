select distinct community_id
from {{ source('published', 'report_failures') }}
