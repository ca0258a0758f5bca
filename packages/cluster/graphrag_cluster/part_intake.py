"""Taking parts in: the coordinator has what a worker made as if it had made it itself."""

from __future__ import annotations

from graphrag_cluster.batch_parts import BatchPart, fetch_part, keep_only, put_part
from graphrag_cluster.objects import ObjectStore
from graphrag_cluster.orders import drop_order
from graphrag_pipeline.core.hardening.temporary import temporary_folder
from graphrag_pipeline.ingest.stages import STAGES
from graphrag_pipeline.store.workspace import Workspace

# A worker does not know how often a chunk was tried before.
_COUNT_ATTEMPTS = """
UPDATE staging.extractions s SET attempts = s.attempts + x.attempts FROM main.extractions x
WHERE s.batch = $key AND x.chunk_id = s.chunk_id AND x.tried_version = s.tried_version
      AND x.status <> 'ok'
"""


def take_part(workspace: Workspace, objects: ObjectStore, part: BatchPart) -> None:
    """Stage a part, in one transaction: the next refresh takes it into the graph.

    Then its order is forgotten, and what is left of other parts of the batch. Raises
    MissingObjectError where a file of it is gone or damaged; nothing is changed then.
    """
    with temporary_folder(workspace.home, "part") as folder:
        fetch_part(objects, part, STAGES, folder)
        with workspace.store.transaction() as con:
            put_part(con, part, STAGES, folder)
            con.execute(_COUNT_ATTEMPTS, {"key": part.key})
    keep_only(objects, part)
    drop_order(objects, part.key)
