"""Agreements of workers in Postgres before they pay: who asks, and what is left of the budget.

Each client is a holder, of a name of its own, that says every few seconds that it lives. What it
holds ends by itself once it has not been heard of for :data:`HOLD_SECONDS`: what a killed worker
asked is then asked by another. What its calls had reserved counts as spent from then on, since
nobody knows what was charged for them; a holder that was only slow puts in its place what the call
took. So a call counts once, whatever happens.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Sequence

from graphrag_pipeline.llm.budget import Budget, BudgetAmount, Reservation, plus
from graphrag_pipeline.llm.database import CallDatabase, Write
from graphrag_pipeline.llm.errors import BudgetExceededError

HOLD_SECONDS = 30.0
"""What a worker holds ends so long after it was last heard of."""
_LOOK_SECONDS = 0.25

_EXPIRES = "clock_timestamp() + make_interval(secs => ${})"
_STAYS = (
    f"UPDATE flights SET expires = {_EXPIRES.format(2)} WHERE holder = $1",
    f"UPDATE reservations SET expires = {_EXPIRES.format(2)} WHERE holder = $1 AND NOT is_spent",
)
_LEAVES = (
    "DELETE FROM flights WHERE holder = $1 OR expires < clock_timestamp() - interval '1 day'",
    # What a dead holder had reserved was counted long ago.
    "DELETE FROM reservations WHERE is_spent AND expires < clock_timestamp() - interval '1 day'",
)
_CLAIM = f"""
INSERT INTO flights AS f (key, holder, expires)
SELECT key, $2, {_EXPIRES.format(3)} FROM unnest($1::bytea[]) AS wanted (key)
ON CONFLICT (key) DO UPDATE SET holder = excluded.holder, expires = excluded.expires
WHERE f.expires <= clock_timestamp() OR f.holder = excluded.holder
RETURNING key
"""
_LET_GO = "DELETE FROM flights WHERE key = ANY($1::bytea[]) AND holder = $2"
_FLYING = "SELECT key FROM flights WHERE key = ANY($1::bytea[]) AND expires > clock_timestamp()"

_BEGIN = """
INSERT INTO budgets (since, spent_tokens, spent_cost)
SELECT $1::bigint, coalesce(sum(prompt_tokens + completion_tokens), 0), coalesce(sum(cost), 0)
FROM llm_calls WHERE position > $1 AND cached = 0 ON CONFLICT DO NOTHING
"""
_LAPSE = """
WITH lapsed AS (
    UPDATE reservations SET is_spent = true
    WHERE since = $1 AND NOT is_spent AND expires <= clock_timestamp() RETURNING tokens, cost
), total AS (SELECT sum(tokens) AS tokens, sum(cost) AS cost FROM lapsed HAVING count(*) > 0)
UPDATE budgets b SET
    spent_tokens = spent_tokens + t.tokens, spent_cost = spent_cost + t.cost,
    reserved_tokens = reserved_tokens - t.tokens, reserved_cost = reserved_cost - t.cost
FROM total t WHERE since = $1
"""
_RESERVE = f"""
WITH granted AS (
    UPDATE budgets SET
        reserved_tokens = reserved_tokens + $3::bigint, reserved_cost = reserved_cost + $4::float8
    WHERE since = $2 AND NOT EXISTS (SELECT FROM reservations WHERE id = $1)
        AND ($5::bigint IS NULL OR spent_tokens + reserved_tokens + $3 <= $5)
        AND ($6::float8 IS NULL OR spent_cost + reserved_cost + $4 <= $6 + 1e-9)
    RETURNING since
)
INSERT INTO reservations (id, since, holder, tokens, cost, expires)
SELECT $1, since, $7, $3, $4, {_EXPIRES.format(8)} FROM granted
"""
_STATE = """
SELECT EXISTS (SELECT FROM reservations WHERE id = $1), spent_tokens, spent_cost,
       EXISTS (SELECT FROM reservations r WHERE r.since = b.since AND NOT r.is_spent)
FROM budgets b WHERE since = $2
"""
_SETTLE = """
WITH gone AS (DELETE FROM reservations WHERE id = $1 RETURNING since, tokens, cost, is_spent)
UPDATE budgets b SET
    spent_tokens = spent_tokens + $2 - CASE WHEN g.is_spent THEN g.tokens ELSE 0 END,
    spent_cost = spent_cost + $3 - CASE WHEN g.is_spent THEN g.cost ELSE 0 END,
    reserved_tokens = reserved_tokens - CASE WHEN g.is_spent THEN 0 ELSE g.tokens END,
    reserved_cost = reserved_cost - CASE WHEN g.is_spent THEN 0 ELSE g.cost END
FROM gone g WHERE b.since = g.since
"""


class WorkerHolder:
    """One client among the workers of an index: what it holds stays its own while it lives."""

    def __init__(self, database: CallDatabase, seconds: float = HOLD_SECONDS) -> None:
        self.database = database
        self.name = uuid.uuid4().hex
        self.seconds = seconds
        self._life: asyncio.Task[None] | None = None

    def show_life(self) -> None:
        """Say from now on, every third of a hold, that this holder lives."""
        if self._life is None or self._life.done():
            self._life = asyncio.create_task(self._live())

    async def close(self) -> None:
        """Stop saying so, and let go of what is still held."""
        if self._life is not None:
            self._life.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._life
            held, lapsed = _LEAVES
            self.database.write_later([Write(held, [(self.name,)]), Write(lapsed, [()])])

    async def _live(self) -> None:
        while True:
            await asyncio.sleep(self.seconds / 3)
            self.database.write_later([Write(sql, [(self.name, self.seconds)]) for sql in _STAYS])

    async def claim(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return those of the keys that no other holder asks for; they are this one's now."""
        self.show_life()
        claim = Write(_CLAIM, [(list(keys), self.name, self.seconds)])
        mine = {key for (key,) in await self.database.write([claim])}
        return [key for key in keys if key in mine]

    def let_go(self, keys: Sequence[bytes]) -> None:
        """Let others ask for keys, with the next commit."""
        self.database.write_later([Write(_LET_GO, [(list(keys), self.name)])])

    async def landed(self, keys: Sequence[bytes]) -> None:
        """Wait until nobody asks for these keys any more."""
        while self.database.read(_FLYING, (list(keys),)):
            await asyncio.sleep(_LOOK_SECONDS)

    def budget(
        self, since: int, max_tokens: int | None, max_cost: float | None, elsewhere: BudgetAmount
    ) -> Budget:
        """Return the budget of all workers, for the calls after a position of the ledger."""
        return SharedBudget(self, since, max_tokens, max_cost, elsewhere)


class SharedBudget(Budget):
    """A budget of all workers of a run: that of the calls after a position of the ledger.

    What a call may take is set aside in Postgres before it is made, and what it took is noted there
    after it. ``elsewhere`` is what the run has spent in other homes.
    """

    def __init__(
        self,
        holder: WorkerHolder,
        since: int,
        max_tokens: int | None,
        max_cost: float | None,
        elsewhere: BudgetAmount,
    ) -> None:
        super().__init__(max_tokens, max_cost, elsewhere)
        self._holder = holder
        self._since = since
        self._has_begun = False
        self._elsewhere = elsewhere
        left = None if max_tokens is None else max_tokens - elsewhere.tokens
        self._limits = (left, None if max_cost is None else max_cost - elsewhere.cost)

    async def reserve(self, amount: BudgetAmount) -> Reservation:
        """Set the amount aside. Raises BudgetExceededError if it is not there."""
        reservation = Reservation(amount, uuid.uuid4().hex)
        self._holder.show_life()
        try:
            while not await self._is_granted(reservation):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._change(), _LOOK_SECONDS)
        except asyncio.CancelledError:
            # It may have been granted meanwhile, and nobody would ever settle it.
            self.settle(reservation, BudgetAmount())
            raise
        return reservation

    def settle(self, reservation: Reservation, actual: BudgetAmount) -> None:
        """Replace a reservation by what the call took."""
        self.spent = plus(self.spent, actual)
        values = (reservation.id, actual.tokens, actual.cost)
        self._holder.database.write_later([Write(_SETTLE, [values])])
        self._tell()

    async def _is_granted(self, reservation: Reservation) -> bool:
        amount, holder = reservation.amount, self._holder
        wanted = (reservation.id, self._since, amount.tokens, amount.cost, *self._limits)
        writes = [
            *([] if self._has_begun else [Write(_BEGIN, [(self._since,)])]),
            Write(_LAPSE, [(self._since,)]),
            Write(_RESERVE, [(*wanted, holder.name, holder.seconds)]),
            Write(_STATE, [(reservation.id, self._since)]),
        ]
        ((is_granted, tokens, cost, are_in_flight),) = await holder.database.write(writes)
        self._has_begun = True
        self.spent = plus(self._elsewhere, BudgetAmount(tokens, cost))
        if not (is_granted or are_in_flight):
            raise BudgetExceededError(self._refusal(), "budget")
        return is_granted
