"""What the model calls of one question took."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphrag_pipeline.llm.client import Completion
    from graphrag_pipeline.llm.ledger import Call
    from graphrag_pipeline.query.release import Release


@dataclass
class Spent:
    """Counts of calls, tokens and dollars, from several threads; cached calls took nothing."""

    model_calls: int = 0
    cached_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0
    calls: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, step: str, call: Completion | Call) -> None:
        """Count one answered call."""
        with self._lock:
            self.calls[step] += 1
            if call.cached:
                self.cached_calls += 1
                return
            self.model_calls += 1
            self.prompt_tokens += call.prompt_tokens
            self.completion_tokens += call.completion_tokens
            known = self.cost is not None and call.cost is not None
            self.cost = self.cost + call.cost if known else None  # type: ignore[operator]

    def totals(self) -> dict[str, Any]:
        """Return what an answer says of it, by the names of its fields."""
        with self._lock:
            return {
                "model_calls": self.model_calls,
                "cached_calls": self.cached_calls,
                "prompt_tokens": self.prompt_tokens,
                "completion_tokens": self.completion_tokens,
                "cost": self.cost,
                "calls": dict(self.calls),
            }


@contextlib.contextmanager
def embeddings_counted(index: Release, spent: Spent) -> Iterator[None]:
    """Count the calls for embeddings that are made within, where a model embeds."""
    if index.settings.embeddings.embedder != "llm":
        yield
        return
    from graphrag_pipeline.llm.ledger import hearing

    def count(call: Call) -> None:
        if call.error is None:
            spent.add("embed", call)

    with hearing(count):
        yield
