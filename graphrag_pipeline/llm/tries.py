"""Calls that are tried again, told to the user: a line for all that fail together."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from graphrag_pipeline.core.progress import remark
from graphrag_pipeline.core.text import counted
from graphrag_pipeline.llm.errors import ModelError

_GATHERED, _QUIET, _LONGEST_QUIET = 0.5, 5.0, 60.0

_FIRST_TOLD = {"rate_limit": 3}


@dataclass
class _Again:
    message: str
    number: int = 0
    calls: int = 0


class Tries:
    """Gathers tries that begin together and tells of them in one line.

    Where they go on and on, lines come ever more seldom, to one a minute. That a server limits the
    rate of calls is told of from the third try on: one refusal now and then is how it is learnt.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: dict[str, _Again] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._quiet_until = 0.0
        self._quiet = _QUIET

    def begin(self, error: ModelError, number: int) -> None:
        """Take note that a call is tried for the ``number``-th time, because of an error."""
        if number < _FIRST_TOLD.get(error.kind, 2):
            return
        again = self._waiting.setdefault(error.kind, _Again(str(error)))
        again.number = max(again.number, number)
        again.calls += 1
        if self._timer is None:
            loop = asyncio.get_running_loop()
            wait = max(_GATHERED, self._quiet_until - loop.time())
            self._timer = loop.call_later(wait, self.tell)

    def tell(self) -> None:
        """Tell of the tries that nobody was told of yet."""
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        now = asyncio.get_running_loop().time()
        is_going_on = now < self._quiet_until + self._quiet
        self._quiet = min(2 * self._quiet, _LONGEST_QUIET) if is_going_on else _QUIET
        self._quiet_until = now + self._quiet
        for again in self._waiting.values():
            calls = f" ({counted(again.calls, 'call')})" if again.calls > 1 else ""
            remark(f"try {again.number} of {self._most}{calls}: {again.message}")
        self._waiting.clear()
