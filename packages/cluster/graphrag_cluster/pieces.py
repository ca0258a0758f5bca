"""Pieces of a stage's work: what is ordered, and how what was made of it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
