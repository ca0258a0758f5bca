"""`/v1/status`: the state of an index, what it cost and who asked, for whoever runs it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from graphrag_server.accounts import keys_with_spending
from graphrag_server.callers import caller_of, needs
from graphrag_server.folders import Folders
from graphrag_server.inquiry import record_reading
from graphrag_server.keeping import conversations_of
from graphrag_server.paths import ServerFiles
from graphrag_server.problems import HttpProblem
from graphrag_server.routes.reading import CollectionName
from graphrag_server.state import holder_of, json_response, server_of

if TYPE_CHECKING:
    from graphrag_server.collections import VisibleCollection

router = APIRouter(
    prefix="/v1", tags=["operations"], dependencies=[needs("metrics"), needs("read")]
)

_MOST_SAID = 50
_FOLDERS = "SELECT DISTINCT root FROM batches WHERE root IS NOT NULL"
_TOLD = (
    "published", "documents", "chunks", "entities", "relationships", "pending_batches",
    "pending_because", "quarantined", "failed_chunks", "cut_chunks", "outdated_chunks",
    "failed_reports", "model_calls", "models", "quality", "removed_files", "purge_unfinished",
    "rolled_back_from",
)  # fmt: skip


@router.get("/status")
async def status(request: Request, collection: CollectionName = None) -> Response:
    """Return the state of an index: how fresh, what failed, what it cost, and who asked how much.

    ``feedback`` is what people said of answers last. It takes a key that sees all documents, for
    metrics and to read; ``keys`` are told to one that is for all collections.
    """
    holder, server = holder_of(request, collection), server_of(request)
    if await asyncio.to_thread(holder.is_limited):
        raise HttpProblem(403, "the state of an index tells of all documents: it takes such a key")
    state = await asyncio.to_thread(_state, holder)
    if server.keys_home is not None and caller_of(request).collections is None:
        files = ServerFiles(server.keys_home)
        state["keys"] = await asyncio.to_thread(keys_with_spending, files)
    record_reading(request, holder.name)
    return json_response(state)


def _state(holder: VisibleCollection) -> dict[str, Any]:
    from graphrag_pipeline.planning.status import summarise
    from graphrag_pipeline.store.workspace import Workspace

    workspace = Workspace(holder.settings)
    summary = summarise(workspace)
    indexed = [str(holder.settings.input_path)]
    if workspace.exists:
        with workspace.store.read() as con:
            indexed += [root for (root,) in con.execute(_FOLDERS).fetchall()]
    told = Folders.around(holder, indexed).without({name: summary[name] for name in _TOLD})
    said = conversations_of(holder).feedback()
    return {
        **told,
        "collection": holder.name,
        "keys": [],
        "feedback": {
            "good": sum(row["verdict"] == "good" for row in said),
            "bad": sum(row["verdict"] == "bad" for row in said),
            "last": said[: -_MOST_SAID - 1 : -1],
        },
    }
