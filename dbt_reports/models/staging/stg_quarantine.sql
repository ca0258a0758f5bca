-- A later batch may have read the file after all: only what its newest batch says counts.
with newest as (
    select uri, max(batch) as batch
    from {{ source('published', 'batch_sources') }}
    where status <> 'superseded'
    group by uri
)

select
    quarantined.uri,
    newest.uri as source,
    quarantined.uri <> newest.uri as is_record,
    quarantined.reason,
    quarantined.batch
from {{ source('published', 'quarantine') }} as quarantined
inner join newest
    on newest.batch = quarantined.batch
    and (quarantined.uri = newest.uri or starts_with(quarantined.uri, newest.uri || '#'))
