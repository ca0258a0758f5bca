"""``max_cost`` and ``max_tokens``: a call is made only if what it may take is still there."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from graphrag_pipeline.llm.errors import BudgetExceededError


@dataclass(frozen=True, slots=True)
class BudgetAmount:
    """Tokens and US dollars."""

    tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Reservation:
    """The most that a call may take, set aside for it; ``id`` names it among all workers."""

    amount: BudgetAmount
    id: str = ""


class Budget:
    """The spending so far, what calls in flight may spend, and the limits on both together.

    A call reserves the most it may take. While calls are in flight the next one waits for them,
    because most take less than they reserved; with none in flight it is refused.
    """

    def __init__(
        self, max_tokens: int | None, max_cost: float | None, spent: BudgetAmount | None = None
    ) -> None:
        self._max_tokens = max_tokens
        self._max_cost = max_cost
        self.spent = spent or BudgetAmount()
        self._reserved = BudgetAmount()
        self._in_flight = 0
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit at all, so that estimates are needed."""
        return self._max_tokens is not None or self._max_cost is not None

    async def reserve(self, amount: BudgetAmount) -> Reservation:
        """Set the amount aside. Raises BudgetExceededError if it is not there."""
        while not self._fits(amount):
            if self._in_flight == 0:
                raise BudgetExceededError(self._refusal(), "budget")
            await self._change()
        self._in_flight += 1
        self._reserved = plus(self._reserved, amount)
        return Reservation(amount)

    def settle(self, reservation: Reservation, actual: BudgetAmount) -> None:
        """Replace a reservation by what the call took."""
        reserved = reservation.amount
        self._in_flight -= 1
        self._reserved = plus(self._reserved, BudgetAmount(-reserved.tokens, -reserved.cost))
        self.spent = plus(self.spent, actual)
        self._tell()

    async def _change(self) -> None:
        """Wait until a call is settled."""
        change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(change)
        await change

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for change in waiting:
            if not change.done():
                change.set_result(None)

    def _fits(self, amount: BudgetAmount) -> bool:
        total = plus(plus(self.spent, self._reserved), amount)
        return (self._max_tokens is None or total.tokens <= self._max_tokens) and (
            self._max_cost is None or total.cost <= self._max_cost + 1e-9
        )

    def _refusal(self) -> str:
        limits = []
        if self._max_cost is not None:
            limits.append(f"${self.spent.cost:.4f} of max_cost ${self._max_cost:.4f}")
        if self._max_tokens is not None:
            limits.append(f"{self.spent.tokens:,} of max_tokens {self._max_tokens:,}")
        return (
            f"budget reached: {' and '.join(limits)} spent and the next call might exceed it; "
            "what was bought is kept: raise the limit and run again"
        )


def plus(one: BudgetAmount, other: BudgetAmount) -> BudgetAmount:
    """Return the sum of two amounts."""
    return BudgetAmount(one.tokens + other.tokens, one.cost + other.cost)
