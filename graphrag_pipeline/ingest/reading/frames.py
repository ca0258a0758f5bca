"""Messages between two processes: each is its length, and then its bytes."""

from __future__ import annotations

from typing import BinaryIO

_LENGTH = 8


def write_frame(pipe: BinaryIO, *parts: bytes) -> None:
    """Send parts as one message. Raises OSError where nobody reads."""
    pipe.write(sum(map(len, parts)).to_bytes(_LENGTH))
    for part in parts:
        pipe.write(part)
    pipe.flush()


def read_frame(pipe: BinaryIO, most: int | None = None) -> bytes | None:
    """Return the next message; None at the end, or of one that has more than ``most`` bytes."""
    head = pipe.read(_LENGTH)
    length = int.from_bytes(head)
    if len(head) < _LENGTH or (most is not None and length > most):
        return None
    content = pipe.read(length)
    return content if len(content) == length else None
