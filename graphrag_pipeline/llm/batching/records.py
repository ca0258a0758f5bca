"""Notes of batches that are not accounted for yet, made before these can cost anything.

A batch has a row before its file is sent, and each of its requests one, which goes in the
transaction that writes its answer into cache and ledger. So a run that was killed anywhere knows
what it has asked for. No row holds what documents say.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from graphrag_pipeline.llm.database import CallDatabase, Write

_PUT_BATCH = "INSERT INTO sent_batches (token, endpoint, model, created_at) VALUES ($1, $2, $3, $4)"
_PUT_REQUEST = (
    "INSERT INTO sent_requests (id, token, content_key, key, stage, batch, made_for)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7)"
)
_BATCHES = (
    "SELECT token, model, created_at, file_id, batch_id FROM sent_batches WHERE endpoint = $1"
    " ORDER BY created_at"
)
_REQUESTS = (
    "SELECT id, token, content_key, key, stage, batch, made_for FROM sent_requests"
    " WHERE token = $1 ORDER BY id"
)


class SentBatch(NamedTuple):
    """A batch that was sent, or was about to be: then it has no id of the server's yet."""

    token: str
    model: str
    created_at: float
    file_id: str | None
    batch_id: str | None


class SentRequest(NamedTuple):
    """A request of it: the hash of what is asked, and what its answer is kept and counted as."""

    id: str
    token: str
    content_key: bytes
    key: bytes | None
    stage: str
    batch: str | None
    made_for: str | None


def content_key(content: bytes) -> bytes:
    """Return the hash of what is asked, however a server wants it put."""
    return hashlib.sha256(content).digest()


def put_batch(batch: SentBatch, endpoint: str, requests: Sequence[SentRequest]) -> list[Write]:
    """Return the writes that note a batch before it is sent."""
    row = (batch.token, endpoint, batch.model, batch.created_at)
    return [Write(_PUT_BATCH, [row]), Write(_PUT_REQUEST, requests)]


def put_file_id(token: str, file_id: str) -> Write:
    """Return the write that notes the file of a batch."""
    return Write("UPDATE sent_batches SET file_id = $1 WHERE token = $2", [(file_id, token)])


def put_batch_id(token: str, batch_id: str) -> Write:
    """Return the write that notes that a batch was begun."""
    return Write("UPDATE sent_batches SET batch_id = $1 WHERE token = $2", [(batch_id, token)])


def drop_request(request_id: str) -> Write:
    """Return the write that belongs to the one that accounts for a request."""
    return Write("DELETE FROM sent_requests WHERE id = $1", [(request_id,)])


def drop_batch(token: str) -> list[Write]:
    """Return the writes that forget a batch."""
    return [
        Write("DELETE FROM sent_requests WHERE token = $1", [(token,)]),
        Write("DELETE FROM sent_batches WHERE token = $1", [(token,)]),
    ]


def keep_no_answers() -> Write:
    """Return the write after which no answer is kept that nobody asks for again."""
    return Write("UPDATE sent_requests SET key = NULL, made_for = NULL", [()])


def batches_sent(database: CallDatabase, endpoint: str) -> list[SentBatch]:
    """Return the batches that an endpoint was sent and that are not accounted for, oldest first."""
    return [SentBatch(*row) for row in database.read(_BATCHES, (endpoint,))]


def requests_of(database: CallDatabase, token: str) -> list[SentRequest]:
    """Return the requests of a batch that are not accounted for."""
    return [SentRequest(*row) for row in database.read(_REQUESTS, (token,))]
