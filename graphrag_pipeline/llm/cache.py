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
_PUT_EMBEDDING = "INSERT OR REPLACE INTO embeddings VALUES (?, ?, ?, ?)"


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


class VectorSource:
    """What gives vectors: an endpoint's model, asked for so many dimensions (None: its own)."""

    def __init__(self, endpoint: str, model: str, dimensions: int | None) -> None:
        self.model = model
        asked = {"at": endpoint, "model": model, "dimensions": dimensions}
        self._head = hashlib.sha256(request_json(asked))

    def keys(self, texts: Iterable[str]) -> list[bytes]:
        """Return the key of each text's vector."""
        keys = []
        for text in texts:
            digest = self._head.copy()
            digest.update(text.encode("utf-8", "replace"))
            keys.append(digest.digest())
        return keys

    def find_width(self, database: CallDatabase) -> int | None:
        """Return how long its vectors are, None if none has come yet."""
        sql = "SELECT dimensions FROM embedding_widths WHERE source = ?"
        rows = database.read(sql, (self._head.digest(),))
        return rows[0][0] if rows else None

    def put_width(self, dimensions: int) -> Write:
        """Return the write that keeps how long its vectors are."""
        sql = "INSERT OR REPLACE INTO embedding_widths VALUES (?, ?)"
        return Write(sql, [(self._head.digest(), dimensions)])


def put_response(key: bytes, model: str, response: CachedResponse) -> Write:
    """Return the write that keeps an answer."""
    return Write(_PUT_RESPONSE, [(key, model, *response, time.time())])


def put_embeddings(model: str, vectors: Mapping[bytes, Vector]) -> Write:
    """Return the write that keeps vectors."""
    now = time.time()
    rows = [(key, model, vector.tobytes(), now) for key, vector in vectors.items()]
    return Write(_PUT_EMBEDDING, rows)


def drop_embeddings(keys: Iterable[bytes]) -> Write:
    """Return the write that forgets vectors."""
    return Write("DELETE FROM embeddings WHERE key = ?", [(key,) for key in keys])


def drop_responses(keys: Iterable[bytes]) -> Write:
    """Return the write that forgets answers."""
    return Write("DELETE FROM responses WHERE key = ?", [(key,) for key in keys])


def find_response(database: CallDatabase, key: bytes) -> CachedResponse | None:
    """Return the answer to a request, if there is one."""
    rows = database.read(
        "SELECT text, prompt_tokens, completion_tokens, finish_reason FROM responses WHERE key = ?",
        (key,),
    )
    return CachedResponse(*rows[0]) if rows else None


def find_embeddings(database: CallDatabase, keys: Sequence[bytes]) -> dict[bytes, Vector]:
    """Return the vectors that are there; one that is no row of numbers is of length 0."""
    found: dict[bytes, Vector] = {}
    for start in range(0, len(keys), _SQL_VARIABLES):
        some = keys[start : start + _SQL_VARIABLES]
        places = ",".join("?" * len(some))
        rows = database.read(f"SELECT key, vector FROM embeddings WHERE key IN ({places})", some)
        found.update((key, _vector(blob)) for key, blob in rows)
    return found


def _vector(blob: object) -> Vector:
    whole = blob if isinstance(blob, bytes) and len(blob) % 4 == 0 else b""
    return np.frombuffer(whole, dtype=np.float32)
