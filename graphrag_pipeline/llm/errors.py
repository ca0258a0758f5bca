"""Errors of models. The type says whether asking again can help.

No message holds anything a document said, and of a server only words that repeat nothing it was
sent (``server_words``): providers quote prompts and keys in theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphrag_pipeline.core.errors import GraphRAGError

if TYPE_CHECKING:
    from graphrag_pipeline.llm.completion import Completion

_STOPPING_KINDS = frozenset({"auth", "quota", "model", "unreachable", "unsupported", "cancelled"})


class ModelError(GraphRAGError):
    """A model call that gave no answer; ``kind`` says why in one word."""

    exit_code = 6

    def __init__(self, message: str, kind: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after

    @property
    def stops_everything(self) -> bool:
        """Whether every other call would meet this error too, so that none need be made."""
        return False

    @property
    def is_outage(self) -> bool:
        """Whether the model is out of reach, so that no document is at fault: wait, and go on."""
        return isinstance(self, TransientModelError) or self.kind in _STOPPING_KINDS


class TransientModelError(ModelError):
    """The same call may succeed later: rate limit, server error, timeout, lost connection."""


class TerminalModelError(ModelError):
    """The same call will fail again: key, model name, context length, content filter."""

    @property
    def stops_everything(self) -> bool:
        """True if key, quota or name is at fault, no server can answer, or a batch ended."""
        return self.kind in _STOPPING_KINDS


class BudgetExceededError(ModelError):
    """The next call might exceed ``max_cost`` or ``max_tokens``; it was not made."""

    exit_code = 7

    @property
    def stops_everything(self) -> bool:
        """True: what one call may not spend, the next may not either."""
        return True


class TooManyFailuresError(ModelError):
    """The model failed at so much that the index is not worth publishing."""


class GarbageError(ModelError):
    """An extraction by a model that says too little to be worth publishing."""


class ModelOutputError(ModelError):
    """An answer that cannot be used. ``position`` is a character of it.

    ``completion`` is the answer, where it was bought for this call: it has been paid for, and is
    in the ledger, but not in the cache.
    """

    completion: Completion | None = None

    def __init__(self, message: str, position: int = 0) -> None:
        super().__init__(message, "output")
        self.position = position
