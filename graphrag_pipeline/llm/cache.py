"""Answers and vectors that were paid for, by what was asked."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.core.text import counted
from graphrag_pipeline.llm.database import DAY_SECONDS, USED_ON, CallDatabase, CallTables, Write

log = logging.getLogger("graphrag_pipeline")

Vector = npt.NDArray[np.float32]

_SQL_VARIABLES = 500
_PUT_RESPONSE = """
INSERT INTO responses (
    key, model, text, prompt_tokens, completion_tokens, finish_reason, made_for, created_at,
    used_on, stage, digest
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING
"""
_PUT_EMBEDDING = """
INSERT INTO embeddings (key, model, vector, created_at, used_on, stage, digest)
VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (key) DO UPDATE SET
    model = excluded.model, vector = excluded.vector, created_at = excluded.created_at,
    used_on = excluded.used_on, stage = excluded.stage, digest = excluded.digest
"""
_PUT_WIDTH = """
INSERT INTO embedding_widths (source, dimensions) VALUES ($1, $2)
ON CONFLICT (source) DO UPDATE SET dimensions = excluded.dimensions
"""
_DIGEST_BYTES = 16


class CachedResponse(NamedTuple):
    """A chat answer as it was given, and the tokens it took then.

    ``made_for`` is what the index made of it (:mod:`~graphrag_pipeline.llm.answer_purposes`).
    """

    text: str
    prompt_tokens: int
    completion_tokens: int
    finish_reason: str
    made_for: str | None = None


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
    """A source of vectors: an endpoint's model, asked for so many dimensions (None: its own)."""

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
        sql = "SELECT dimensions FROM embedding_widths WHERE source = $1"
        rows = database.read(sql, (self._head.digest(),))
        return rows[0][0] if rows else None

    def put_width(self, dimensions: int) -> Write:
        """Return the write that keeps how long its vectors are."""
        return Write(_PUT_WIDTH, [(self._head.digest(), dimensions)])


def put_response(key: bytes, model: str, response: CachedResponse, stage: str) -> Write:
    """Return the write that keeps an answer, and the stage that has bought it."""
    now = time.time()
    digest = digest_of(key, model, *response[:-1], now, stage)
    row = (key, model, *response, now, today(), stage, digest)
    return Write(_PUT_RESPONSE, [row])


def put_embeddings(model: str, vectors: Mapping[bytes, Vector], stage: str) -> Write:
    """Return the write that keeps vectors, and the stage that has bought them."""
    now, day = time.time(), today()
    blobs = {key: vector.tobytes() for key, vector in vectors.items()}
    rows = [
        (key, model, blob, now, day, stage, digest_of(key, model, blob, now, stage))
        for key, blob in blobs.items()
    ]
    return Write(_PUT_EMBEDDING, rows)


def digest_of(*values: object) -> bytes:
    """Return a hash of what was bought, by which a damaged entry is known.

    NUL counts as what Postgres keeps in its place.
    """
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for value in values:
        text = str(value).replace("\0", "\ufffd").encode("utf-8", "replace")
        data = value if isinstance(value, bytes) else text
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.digest()


def is_as_bought(digest: object, *values: object) -> bool:
    """Whether an entry is what was bought; so counts one of an older program, without a hash."""
    return digest is None or digest == digest_of(*values)


def put_purpose(key: bytes, made_for: str) -> Write:
    """Return the write that notes what a kept answer is used for now."""
    return Write("UPDATE responses SET made_for = $1 WHERE key = $2", [(made_for, key)])


def drop(table: str, keys: Iterable[bytes]) -> Write:
    """Return the write that forgets entries of a table: answers or vectors."""
    return Write(f"DELETE FROM {table} WHERE key = $1", [(key,) for key in keys])


def held_keys(tables: CallTables, table: str, keys: Sequence[bytes]) -> set[bytes]:
    """Return those of some keys under which a table has an entry."""
    sql = f"SELECT key FROM {table}"
    return {key for some in _in_parts(keys) for (key,) in tables.read(f"{sql}{_among(some)}", some)}


def _in_parts(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Yield as many keys at a time as SQLite takes values."""
    return (keys[start : start + _SQL_VARIABLES] for start in range(0, len(keys), _SQL_VARIABLES))


def _among(keys: Sequence[bytes]) -> str:
    """Return the SQL of a condition: an entry has one of so many keys."""
    return f" WHERE key IN ({', '.join(f'${number}' for number in range(1, len(keys) + 1))})"


def today() -> int:
    """Return the day it is, in days since 1970 (UTC)."""
    return day_of(time.time())


def day_of(seconds: float) -> int:
    """Return the day of a time in seconds since 1970, in days since then (UTC)."""
    return int(seconds // DAY_SECONDS)


def find_response(database: CallDatabase, key: bytes) -> CachedResponse | None:
    """Return the answer to a request, if there is one, and note that it was used today.

    One that is not what was bought is dropped, so that it is asked for again.
    """
    kept = _read_response(database, key)
    if kept is None:
        return None
    response, used_on, is_whole = kept
    if not is_whole:
        _tell_damaged(1)
        database.write_later([drop("responses", [key])])
        return None
    if used_on < (day := today()):
        database.write_later([_note_use("responses", [key], day)])
    return response


def look_up_response(database: CallDatabase, key: bytes) -> CachedResponse | None:
    """Return the answer to a request, if there is one; this is no use of it."""
    kept = _read_response(database, key)
    return kept[0] if kept and kept[2] else None


def find_embeddings(database: CallDatabase, keys: Sequence[bytes]) -> dict[bytes, Vector]:
    """Return the vectors that are there, and note that they were used today.

    One that is no row of numbers is of length 0; one that is not what was bought is dropped.
    """
    found: dict[bytes, Vector] = {}
    day = today()
    sql = f"SELECT key, vector, {USED_ON}, digest, model, created_at, stage FROM embeddings"
    for some in _in_parts(keys):
        rows = database.read(f"{sql}{_among(some)}", some)
        whole = [
            (key, blob, used_on)
            for key, blob, used_on, digest, model, *more in rows
            if is_as_bought(digest, key, model, blob, *more)
        ]
        found.update((key, _vector(blob)) for key, blob, _ in whole)
        if damaged := {row[0] for row in rows} - {row[0] for row in whole}:
            _tell_damaged(len(damaged))
            database.write_later([drop("embeddings", damaged)])
        if unused := [key for key, _, used_on in whole if used_on < day]:
            database.write_later([_note_use("embeddings", unused, day)])
    return found


def _read_response(database: CallDatabase, key: bytes) -> tuple[CachedResponse, int, bool] | None:
    """Return an answer, the day of its last use, and whether it is what was bought."""
    rows = database.read(
        "SELECT text, prompt_tokens, completion_tokens, finish_reason, made_for,"
        f" {USED_ON}, digest, model, created_at, stage FROM responses WHERE key = $1",
        (key,),
    )
    if not rows:
        return None
    *values, used_on, digest, model, created_at, stage = rows[0]
    is_whole = is_as_bought(digest, key, model, *values[:-1], created_at, stage)
    return CachedResponse(*values), used_on, is_whole


def _tell_damaged(number: int) -> None:
    log.warning(
        "%s in the cache are not what was bought (the disk has changed them): they are dropped, "
        "and asked for again; run graphrag-pipeline check",
        counted(number, "entry", "entries"),
    )


def _note_use(table: str, keys: Iterable[bytes], day: int) -> Write:
    """Return the write of a use; it changes nothing where one of that day came before it."""
    sql = f"UPDATE {table} SET used_on = $1 WHERE key = $2 AND {USED_ON} < $1"
    return Write(sql, [(day, key) for key in keys])


def _vector(blob: object) -> Vector:
    whole = blob if isinstance(blob, bytes) and len(blob) % 4 == 0 else b""
    return np.frombuffer(whole, dtype=np.float32)
