"""Dispatch: which batch goes to a worker next, and what becomes of those that are out.

It decides, and knows neither Dagster nor a store nor the time of day: ``Runs`` launches, asks and
takes in what it is told to.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from graphrag_pipeline.core import progress
from graphrag_pipeline.core.errors import GraphRAGError, StorageError
from graphrag_pipeline.core.text import counted
from graphrag_pipeline.llm.errors import BudgetExceededError

log = logging.getLogger("graphrag_pipeline")

AT_ONCE = 256
"""Most runs that are out at a time."""
MOST_TRIES = 3
"""How often a batch is handed out at most."""
LATE_LEASES = 3
"""A run that has not been heard of for so many leases is looked for."""
PATIENCE_SECONDS = 120.0
"""How long a launcher that cannot be reached is asked again."""
NOBODY_SECONDS = 20.0
"""Where no worker has begun a run for so long, somebody may have forgotten to start one."""
_LAUNCH_AGAIN_SECONDS = 5.0
_MOST_NAMED = 3


class PartsFailedError(GraphRAGError):
    """Some batches could not be made by workers; what the others brought is kept.

    Its exit code is that of the failures, where all have one.
    """

    def __init__(self, message: str, exit_codes: Collection[int] = ()) -> None:
        super().__init__(message)
        if len({*exit_codes}) == 1:
            (self.exit_code,) = {*exit_codes}


class NotLaunchedError(StorageError):
    """A run could not be handed over: what carries it to a worker is away."""


@dataclass(frozen=True)
class Launched:
    """A run that was handed to a worker for a batch, under an order, and when."""

    run_id: str
    key: str
    order: str
    at: float


class RunFailure(NamedTuple):
    """A reason why a run brought nothing, in one line, and the exit code of its error."""

    why: str
    exit_code: int = GraphRAGError.exit_code


class Runs(Protocol):
    """A starter of runs, which knows what became of them, and takes in what they made."""

    def launch(self, key: str) -> tuple[str, str]:
        """Order a batch and start a run for it; return the ids of the run and of the order.

        Raises NotLaunchedError where no worker can be told of it now.
        """
        ...

    def ended(self, run_ids: Sequence[str]) -> Mapping[str, RunFailure | None]:
        """Return which of these runs have ended, and why they failed: None where they did not."""
        ...

    def take(self, run: Launched) -> str:
        """Take in the part of a run that ended well; return why that cannot be, or ""."""
        ...

    def ages(self, run_ids: Sequence[str]) -> Mapping[str, float]:
        """Return how many seconds ago each of these runs was heard of, those that ever were."""
        ...

    def lost(self, run_ids: Sequence[str]) -> Mapping[str, str]:
        """Return which of these runs, never heard of, no worker will ever begin, and why."""
        ...

    def give_up(self, run_id: str, why: str) -> bool:
        """Have a run count as failed; False where it has ended meanwhile."""
        ...


@dataclass
class Dispatch:
    """Batches that wait, runs that are out, and what came of them.

    Each batch is taken in once, or has failed ``MOST_TRIES`` times. What is tried again waits
    behind what was not tried yet. Where the budget is at its end no further batch is handed out:
    the next run goes on with what waits.
    """

    runs: Runs
    waiting: deque[str]
    lease_seconds: float
    clock: Callable[[], float] = time.monotonic
    unit: tuple[str, str] = ("batch", "batches")
    out: dict[str, Launched] = field(default_factory=dict)
    tries: Counter[str] = field(default_factory=Counter)
    failures: dict[str, RunFailure] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    run_ids: list[str] = field(default_factory=list)
    _launch_after: float = float("-inf")
    _away_since: float | None = None
    _look_after: float = float("-inf")
    _lost_since: dict[str, float] = field(default_factory=dict)
    _has_looked_for_workers: bool = False

    def __post_init__(self) -> None:
        self._tell()

    def goes_on(self) -> bool:
        """Whether a batch waits or is being made."""
        return bool(self.waiting or self.out)

    def turn(self) -> None:
        """Hand out what may be, take in what is there, and look for runs that say nothing.

        Raises StorageError where no run could be launched for ``PATIENCE_SECONDS``.
        """
        self._launch_some()
        self._settle_some()
        if self.clock() >= self._look_after:
            self._look_after = self.clock() + self.lease_seconds / 3
            self._give_up_silent()
            self._ask_for_workers()

    def check(self) -> None:
        """Raise PartsFailedError where a batch failed for good."""
        if self.failures:
            some = [f"{key}: {each.why}" for key, each in [*self.failures.items()][:_MOST_NAMED]]
            what = counted(len(self.failures), *self.unit)
            raise PartsFailedError(
                f"{what} failed on workers ({'; '.join(some)}); {len(self.done)} others are taken "
                "in: fix the cause and run again",
                [failure.exit_code for failure in self.failures.values()],
            )

    def _launch_some(self) -> None:
        while self.waiting and len(self.out) < AT_ONCE and self.clock() >= self._launch_after:
            key = self.waiting[0]
            try:
                run_id, order = self.runs.launch(key)
            except NotLaunchedError as error:
                self._launch_later(error)
                return
            self._away_since = None
            self.waiting.popleft()
            self.tries[key] += 1
            self.run_ids.append(run_id)
            self.out[run_id] = Launched(run_id, key, order, self.clock())

    def _launch_later(self, error: NotLaunchedError) -> None:
        now = self.clock()
        self._away_since = self._away_since or now
        if now - self._away_since > PATIENCE_SECONDS:
            raise error
        log.warning("%s; it is asked again", error)
        self._launch_after = now + _LAUNCH_AGAIN_SECONDS

    def _settle_some(self) -> None:
        for run_id, failure in self.runs.ended([*self.out]).items():
            run = self.out[run_id]
            why = "" if failure else self.runs.take(run)
            del self.out[run_id]
            if failure or why:
                self._fail(run.key, failure or RunFailure(why))
            else:
                self.done.append(run.key)
                self._tell()

    def _tell(self) -> None:
        rest = len(self.waiting) + len(self.out) + len(self.failures)
        progress.report(f"{self.unit[1]} by workers", len(self.done), len(self.done) + rest)

    def _ask_for_workers(self) -> None:
        """Say once where no worker has begun anything: the run would wait in silence."""
        first = min((run.at for run in self.out.values()), default=self.clock())
        if self._has_looked_for_workers or self.done or self.clock() - first < NOBODY_SECONDS:
            return
        self._has_looked_for_workers = True
        if not self.runs.ages([*self.out]):
            log.warning("no worker has begun a %s yet: see that workers run", self.unit[0])

    def _give_up_silent(self) -> None:
        for run_id, why in self._silent().items():
            if self.runs.give_up(run_id, why):
                self._fail(self.out.pop(run_id).key, RunFailure(why))

    def _silent(self) -> Mapping[str, str]:
        """Return the runs whose worker is gone, or that none will ever begin, and why."""
        now, late = self.clock(), LATE_LEASES * self.lease_seconds
        old = [run_id for run_id, run in self.out.items() if now - run.at > late]
        ages = self.runs.ages(old) if old else {}
        unheard = [run_id for run_id in old if run_id not in ages]
        lost = self.runs.lost(unheard) if unheard else {}
        # A worker that has just been given a run is still beginning it.
        self._lost_since = {run_id: self._lost_since.get(run_id, now) for run_id in lost}
        return {
            **{
                run_id: f"its worker was not heard of for {late:.0f} seconds"
                for run_id, age in ages.items()
                if age > late
            },
            **{id: why for id, why in lost.items() if now - self._lost_since[id] > late},
        }

    def _fail(self, key: str, failure: RunFailure) -> None:
        if failure.exit_code == BudgetExceededError.exit_code:
            self.waiting.clear()
            self.failures[key] = failure
        elif self.tries[key] < MOST_TRIES and not self._budget_is_spent():
            log.warning("%s %s is tried again: %s", self.unit[0], key, failure.why)
            self.waiting.append(key)
        else:
            self.failures[key] = failure

    def _budget_is_spent(self) -> bool:
        codes = {failure.exit_code for failure in self.failures.values()}
        return BudgetExceededError.exit_code in codes
