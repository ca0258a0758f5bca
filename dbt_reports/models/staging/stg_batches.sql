select
    batch,
    created_at,
    status,
    n_added,
    n_changed,
    n_removed,
    n_quarantined
from {{ source('published', 'batches') }}
