"""Content-addressed identities: a thing has the same id in every run and on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

ID_DIGITS = 32


def make_id(kind: str, *parts: str | int) -> str:
    """Return the id of a thing from what defines it (32 hexadecimal digits).

    Parts are length-prefixed, so that ("ab", "c") and ("a", "bc") differ.
    """
    digest = hashlib.sha256(kind.encode())
    for part in parts:
        data = str(part).encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()[:ID_DIGITS]


def content_hash(text: str) -> str:
    """Return the SHA-256 of a text (64 hexadecimal digits)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def json_hash(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of values that JSON can hold, by which a damaged file is known."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
