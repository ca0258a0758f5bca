"""Time, tokens and price of an answer, whenever it was bought.

A query says what was paid for it. An experiment compares what methods take: a call that an earlier
run has bought, or another condition, counts for an answer as if the answer had bought it. Only an
answer of a model that could not be read, and was asked for again, is known to the run that paid it
alone.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

from graphrag_pipeline.llm.ledger import Call, hearing
from graphrag_pipeline.llm.prices import Prices


class AnswerSpending:
    """The calls made for an answer, and what they took."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._calls: list[Call] = []

    def count(self, call: Call) -> None:
        """Count a call, from any thread; one without an answer took nothing."""
        if call.error is None:
            self._calls.append(call)

    def columns(self, *, is_written: bool = False) -> dict[str, Any]:
        """Return calls, tokens and dollars by the columns of ``answers``.

        The cost is None where a call's price is not known. The last call is no part of the search
        where the answer ``is_written``, nor are those that embed (HiRAG, table 5).
        """
        chats = [call for call in self._calls if call.completion_tokens]
        searching = chats[:-1] if is_written else chats
        costs = [self._cost(call) for call in self._calls]
        priced = [cost for cost in costs if cost is not None]
        return {
            "model_calls": len(self._calls),
            "prompt_tokens": sum(call.prompt_tokens for call in self._calls),
            "completion_tokens": sum(call.completion_tokens for call in self._calls),
            "search_tokens": sum(c.prompt_tokens + c.completion_tokens for c in searching),
            # Exact, for calls come in any order.
            "cost": math.fsum(priced) if len(priced) == len(costs) else None,
        }

    def _cost(self, call: Call) -> float | None:
        if not call.cached or not (call.prompt_tokens or call.completion_tokens):
            return call.cost
        return self._prices.cost(call.model, call.prompt_tokens, call.completion_tokens)


@contextlib.contextmanager
def counting(prices: Prices) -> Iterator[AnswerSpending]:
    """Yield what counts the model calls made within."""
    taken = AnswerSpending(prices)
    with hearing(taken.count, role="taken"):
        yield taken
