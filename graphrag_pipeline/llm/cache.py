"""Answers and vectors that were paid for, by what was asked."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.llm.database import CallDatabase, Write

Vector = npt.NDArray[np.float32]

_SQL_VARIABLES = 500
_PUT_RESPONSE = "INSERT OR IGNORE INTO responses VALUES (?, ?, ?, ?, ?, ?, ?)"
_PUT_EMBEDDING = "INSERT OR IGNORE INTO embeddings VALUES (?, ?, ?, ?)"


class CachedResponse(NamedTuple):
    """A chat answer as it was given, and the tokens it took then."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    finish_reason: str


def request_json(body: Mapping[str, Any]) -> bytes:
    """Return the request as JSON: what is sent and what is hashed.

    Keys keep their order, which :mod:`~graphrag_pipeline.llm.requests` fixes; a JSON schema's own
    order is part of what is asked. What is no Unicode text (lone surrogates) becomes ``?``.
    """
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def request_key(endpoint: str, content: bytes, variant: str | None = None) -> bytes:
    """Return the key of a request: another endpoint, parameter or message is another key."""
    digest = hashlib.sha256(f"{endpoint}\n{variant or ''}\n".encode("utf-8", "replace"))
    digest.update(content)
    return digest.digest()


def embedding_keys(
    endpoint: str, model: str, dimensions: int | None, texts: Iterable[str]
) -> list[bytes]:
    """Return the key of each text's vector."""
    head = hashlib.sha256(request_json({"at": endpoint, "model": model, "dimensions": dimensions}))
    keys = []
    for text in texts:
        digest = head.copy()
        digest.update(text.encode("utf-8", "replace"))
        keys.append(digest.digest())
    return keys


def put_response(key: bytes, model: str, response: CachedResponse) -> Write:
    """Return the write that keeps an answer."""
    return Write(_PUT_RESPONSE, [(key, model, *response, time.time())])


def put_embeddings(model: str, vectors: Mapping[bytes, Vector]) -> Write:
    """Return the write that keeps vectors."""
    now = time.time()
    rows = [(key, model, vector.tobytes(), now) for key, vector in vectors.items()]
    return Write(_PUT_EMBEDDING, rows)


def find_response(database: CallDatabase, key: bytes) -> CachedResponse | None:
    """Return the answer to a request, if there is one."""
    rows = database.read(
        "SELECT text, prompt_tokens, completion_tokens, finish_reason FROM responses WHERE key = ?",
        (key,),
    )
    return CachedResponse(*rows[0]) if rows else None


def find_embeddings(database: CallDatabase, keys: Sequence[bytes]) -> dict[bytes, Vector]:
    """Return the vectors that are there."""
    found: dict[bytes, Vector] = {}
    for start in range(0, len(keys), _SQL_VARIABLES):
        some = keys[start : start + _SQL_VARIABLES]
        places = ",".join("?" * len(some))
        rows = database.read(f"SELECT key, vector FROM embeddings WHERE key IN ({places})", some)
        found.update((key, np.frombuffer(blob, dtype=np.float32)) for key, blob in rows)
    return found
