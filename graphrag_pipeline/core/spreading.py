"""Work that others may do: pieces of it, and who has them made, if anybody does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Piece(Generic[T]):
    """A piece of work: what is ordered, and how what is made of it is read.

    ``read`` raises ValueError or EOFError for what is damaged.
    """

    order: bytes
    read: Callable[[bytes], T]


class MakePieces(Protocol):
    """Has pieces made elsewhere, and yields what was made of each, in their order."""

    def __call__(self, pieces: Iterable[Piece[T]], /) -> Iterator[T]:
        """Yield what was made. Raises the errors of who has them made."""
        ...


_makers: ContextVar[Mapping[str, MakePieces] | None] = ContextVar("makers", default=None)


@contextlib.contextmanager
def spreading(makers: Mapping[str, MakePieces]) -> Iterator[None]:
    """Let work of these kinds be made elsewhere within this context."""
    token = _makers.set(makers)
    try:
        yield
    finally:
        _makers.reset(token)


def maker_of(kind: str) -> MakePieces | None:
    """Return who has pieces of a kind made elsewhere; None where the work is to be done here."""
    return (_makers.get() or {}).get(kind)
