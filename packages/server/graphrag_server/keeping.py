"""Answers are kept here, for callers with a key and for this machine's own page."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING

from graphrag_pipeline.core.errors import StorageError
from graphrag_server.callers import LOCAL
from graphrag_server.conversations import Conversations
from graphrag_server.paths import ServerFiles
from graphrag_server.state import json_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphrag_pipeline.query.results import Answer
    from graphrag_server.callers import Caller
    from graphrag_server.collections import VisibleCollection
    from graphrag_server.inquiry import Inquiry

log = logging.getLogger("graphrag_pipeline")


def conversations_of(holder: VisibleCollection) -> Conversations:
    """Return the conversations about a collection."""
    path = ServerFiles(holder.home).conversations
    return Conversations(path, holder.settings.server.conversation_days)


def keeps(caller: Caller, holder: VisibleCollection) -> bool:
    """Whether what a caller asks of a collection can be kept: not where its home is read-only."""
    is_known = bool(caller.key_id or caller is LOCAL)
    days = holder.settings.server.conversation_days
    return is_known and days > 0 and os.access(holder.home, os.W_OK)


async def keep(
    inquiry: Inquiry, conversation: str | None, answer: Answer, where: Mapping[str, object]
) -> dict[str, str] | None:
    """Keep an answer where its caller wants it, and return the ids of conversation and answer.

    None where it is not kept. One that cannot be kept is shown all the same. ``where`` is the
    filter of the question; its values are of documents, so that it goes with the answer.
    """
    caller, holder = inquiry.caller, inquiry.holder
    if conversation is None or not keeps(caller, holder):
        return None
    try:
        ids = await asyncio.to_thread(
            conversations_of(holder).keep,
            caller.key_id,
            conversation,
            answer.query,
            json_bytes({**answer.to_dict(), "where": where} if where else answer),
            method=answer.retrieval.method,
            release=answer.release,
            labels=caller.labels if holder.is_limited() else None,
            chunks=_chunks_below(answer),
        )
    except StorageError as error:
        log.error("%s", error)
        return None
    return dict(zip(("conversation", "answer"), ids, strict=True))


def _chunks_below(answer: Answer) -> list[str] | None:
    """Return the chunks that an answer rests on, None where other records are below it too."""
    if any(record.kind != "chunk" for record in answer.retrieval.records):
        return None
    cited = (citation.chunk_id for citation in answer.places)
    return list(dict.fromkeys([*cited, *(record.id for record in answer.retrieval.records)]))
