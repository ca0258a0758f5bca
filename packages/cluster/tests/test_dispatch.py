"""Ten thousand batches on workers that fail in every way, by a clock that only the test moves."""

from __future__ import annotations

import random
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from graphrag_cluster.dispatch import (
    AT_ONCE,
    LATE_LEASES,
    MOST_TRIES,
    PATIENCE_SECONDS,
    Dispatch,
    Launched,
    NotLaunchedError,
    PartsFailedError,
    RunFailure,
)

from graphrag_pipeline.core import progress

STEP = 5.0
LEASE_SECONDS = 30.0
LATE_SECONDS = LATE_LEASES * LEASE_SECONDS
WORKERS = 64
IT_BROKE = RunFailure("it broke")


@dataclass
class Run:
    key: str
    order: str
    fate: str
    launched: float
    begins: float = float("inf")
    ends: float = float("inf")
    beat: float | None = None
    status: str = "waits"


@dataclass
class Fleet:
    """Workers that make parts, and fail as ``fate`` says of the batch and the try."""

    fates: dict[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    starting: Mapping[str, float] = field(default_factory=dict)
    now: float = 0.0
    away: tuple[float, float] = (float("inf"), float("inf"))
    runs: dict[str, Run] = field(default_factory=dict)
    live: dict[str, Run] = field(default_factory=dict)
    queue: deque[Run] = field(default_factory=deque)
    orders: dict[str, str] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)
    taken: Counter[str] = field(default_factory=Counter)
    tries: Counter[str] = field(default_factory=Counter)
    launches: list[tuple[float, str]] = field(default_factory=list)
    n_over: int = 0
    most_out: int = 0
    failure: RunFailure = IT_BROKE

    def clock(self) -> float:
        return self.now

    def pass_time(self) -> None:
        """Let the workers go on for a while: heartbeats, ends, and the next in the queue."""
        self.now += STEP
        for run in [*self.live.values()]:
            if run.fate in ("dies", "stalls") and self.now > (run.begins + run.ends) / 2:
                self._fall_silent(run)
            elif self.now >= run.ends:
                self._end(run)
            elif self.now >= run.begins:
                run.beat = self.now
        while self.queue and len(self.live) < WORKERS:
            run = self.queue.popleft()
            if run.fate == "never":
                continue
            run.status, run.begins = "works", self.now + self.starting.get(run.key, 0.0)
            run.ends = run.begins + self.seconds.get(run.key, 60.0)
            self.live[run.order] = run

    def _fall_silent(self, run: Run) -> None:
        del self.live[run.order]
        if run.fate == "stalls":
            # Cut off from the coordinator, it still finishes, when another has its batch.
            self.parts[run.key] = run.order

    def _end(self, run: Run) -> None:
        del self.live[run.order]
        run.status = "failed" if run.fate == "fails" else "ended"
        if run.fate == "works":
            self.parts[run.key] = run.order

    # What dispatch asks for

    def launch(self, key: str) -> tuple[str, str]:
        if self.away[0] <= self.now < self.away[1]:
            raise NotLaunchedError("no broker")
        self.tries[key] += 1
        order = f"{key}/{self.tries[key]}"
        self.orders[key] = order
        run = Run(key, order, self._fate(key), self.now)
        self.runs[order] = run
        self.queue.append(run)
        self.launches.append((self.now, key))
        self.most_out = max(self.most_out, len(self.runs) - self.n_over)
        return order, order

    def _fate(self, key: str) -> str:
        how, _, until = self.fates.get(key, "works:0").partition(":")
        return how if self.tries[key] <= int(until) else "works"

    def ended(self, run_ids: Sequence[str]) -> Mapping[str, RunFailure | None]:
        over = [id for id in run_ids if self.runs[id].status in ("failed", "ended")]
        self.n_over += len(over)
        return {id: self.failure if self.runs[id].status == "failed" else None for id in over}

    def take(self, run: Launched) -> str:
        if self.parts.get(run.key) != run.order:
            return "no part"
        self.taken[run.key] += 1
        return ""

    def ages(self, run_ids: Sequence[str]) -> Mapping[str, float]:
        beats = {id: self.runs[id].beat for id in run_ids}
        return {id: self.now - beat for id, beat in beats.items() if beat is not None}

    def lost(self, run_ids: Sequence[str]) -> Mapping[str, str]:
        waiting = {run.order for run in self.queue}
        return {id: "in no queue" for id in run_ids if id not in waiting}

    def give_up(self, run_id: str, why: str) -> bool:
        if self.runs[run_id].status in ("failed", "ended"):
            return False
        self.runs[run_id].status = "given up"
        self.n_over += 1
        return True


def simulate(fleet: Fleet, keys: Sequence[str]) -> Dispatch:
    dispatch = Dispatch(fleet, deque(keys), LEASE_SECONDS, fleet.clock)
    while dispatch.goes_on():
        dispatch.turn()
        fleet.pass_time()
        assert fleet.now < 1e6
    return dispatch


def troubled(n: int, seed: int = 7) -> tuple[Fleet, list[str]]:
    """Return a fleet on which a fifth of the batches goes wrong once, twice, or always."""
    rng, keys = random.Random(seed), [f"{number:06}" for number in range(n)]
    ways = ("fails", "dies", "stalls", "never", "makes nothing")
    fates = {
        key: f"{rng.choice(ways)}:{rng.choice((1, 1, 2, 2, 99))}"
        for key in keys
        if rng.random() < 0.2
    }
    return Fleet(fates, {key: rng.uniform(10, 200) for key in keys}), keys


def test_of_ten_thousand_batches_each_is_taken_once_or_has_failed_three_times() -> None:
    fleet, keys = troubled(10_000)
    dispatch = simulate(fleet, keys)
    hopeless = {key for key, fate in fleet.fates.items() if fate.endswith(":99")}
    assert len(hopeless) > 100
    assert set(dispatch.failures) == hopeless
    assert Counter(dispatch.done) == fleet.taken
    assert set(fleet.taken) == set(keys) - hopeless
    assert set(fleet.taken.values()) == {1}
    assert all(fleet.tries[key] == MOST_TRIES for key in hopeless)
    assert max(fleet.tries.values()) <= MOST_TRIES
    for key in set(keys) - hopeless:
        assert fleet.tries[key] == 1 + int(fleet.fates.get(key, "works:0").partition(":")[2])
    assert fleet.most_out <= AT_ONCE
    with pytest.raises(PartsFailedError, match=f"{len(hopeless)} batches failed on workers"):
        dispatch.check()


def test_the_end_of_the_budget_ends_the_run_with_its_own_exit_code_and_is_met_once() -> None:
    keys = [f"{number:03}" for number in range(AT_ONCE + WORKERS)]
    fleet = Fleet({"001": "fails:99"}, failure=RunFailure("max_cost is spent", 7))
    dispatch = simulate(fleet, keys)
    assert fleet.tries["001"] == 1
    assert [*dispatch.failures] == ["001"]
    # What was out is taken in, and what waited is not handed out.
    assert set(dispatch.done) == {*fleet.tries} - {"001"}
    assert len(fleet.tries) < len(keys)
    with pytest.raises(PartsFailedError, match="max_cost is spent") as told:
        dispatch.check()
    assert told.value.exit_code == 7


def test_failures_of_several_kinds_have_the_exit_code_of_none() -> None:
    failures = {"a": RunFailure("no key", 6), "b": RunFailure("disk full", 5)}
    dispatch = Dispatch(Fleet(), deque(), LEASE_SECONDS, failures=failures)
    with pytest.raises(PartsFailedError) as told:
        dispatch.check()
    assert told.value.exit_code == 1
    del dispatch.failures["b"]
    with pytest.raises(PartsFailedError) as told:
        dispatch.check()
    assert told.value.exit_code == 6


def test_nothing_starves() -> None:
    fleet, keys = troubled(3_000)
    simulate(fleet, keys)
    # What failed waits behind all that was not tried yet.
    assert [key for _, key in fleet.launches[: len(keys)]] == keys
    # Work for 64 workers: what fails is behind the others once, and looked for after three leases.
    work = sum(fleet.seconds[key] * fleet.tries[key] for key in keys) / WORKERS
    assert fleet.now < 1.2 * work + MOST_TRIES * (LATE_SECONDS + 200) * 4


def test_time_and_memory_follow_the_number_of_batches() -> None:
    def seconds(n: int) -> float:
        fleet, keys = troubled(n)
        begun = time.process_time()
        simulate(fleet, keys)
        return time.process_time() - begun

    few = min(seconds(2_500) for _ in range(2))
    many = seconds(10_000)
    assert many < 5
    assert many < 4 * 1.6 * few + 0.2


def test_a_worker_that_was_cut_off_and_comes_late_is_not_taken() -> None:
    fleet = Fleet({"a": "stalls:1"})
    dispatch = simulate(fleet, ["a"])
    assert dispatch.done == ["a"]
    assert fleet.parts["a"] == "a/2"
    assert fleet.taken == {"a": 1}


def test_a_run_that_waits_long_for_a_worker_is_not_given_up() -> None:
    keys = [f"{number:03}" for number in range(3 * WORKERS)]
    fleet = Fleet(seconds=dict.fromkeys(keys, 10 * LATE_SECONDS))
    assert sorted(simulate(fleet, keys).done) == keys
    assert set(fleet.tries.values()) == {1}


def test_a_worker_that_has_just_begun_is_given_time_to_say_so() -> None:
    keys = [f"{number:03}" for number in range(WORKERS + 1)]
    # The last one waits in the queue until it is late, and is then begun slowly.
    seconds = dict.fromkeys(keys[:-1], 1.1 * LATE_SECONDS)
    fleet = Fleet(seconds=seconds, starting={keys[-1]: 0.8 * LATE_SECONDS})
    assert sorted(simulate(fleet, keys).done) == keys
    assert fleet.tries[keys[-1]] == 1


def test_progress_is_told_when_a_batch_is_done_and_at_no_other_time() -> None:
    told = []
    with progress.listening(lambda stage, done, total: told.append((done, total))):
        simulate(Fleet({"b": "fails:99"}), ["a", "b", "c"])
    assert told == [(0, 3), (1, 3), (2, 3)]


def test_that_nobody_works_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    fleet = Fleet({"a": "never:1"})
    dispatch = simulate(fleet, ["a"])
    assert dispatch.done == ["a"]
    assert caplog.text.count("no worker has begun a batch yet") == 1
    caplog.clear()
    simulate(Fleet(seconds={"a": 500.0}), ["a"])
    assert "no worker has begun" not in caplog.text


def test_a_broker_that_is_away_for_a_minute_costs_no_try() -> None:
    fleet = Fleet(away=(0.0, 60.0))
    assert simulate(fleet, ["a", "b"]).done == ["a", "b"]
    assert set(fleet.tries.values()) == {1}
    assert fleet.launches[0][0] >= 60


def test_a_broker_that_stays_away_ends_the_run_in_one_line() -> None:
    fleet = Fleet(away=(0.0, 1e9))
    with pytest.raises(NotLaunchedError, match="no broker") as caught:
        simulate(fleet, ["a"])
    assert caught.value.exit_code == 5
    assert PATIENCE_SECONDS <= fleet.now <= PATIENCE_SECONDS + 20


def test_a_broker_that_was_away_before_is_asked_as_long_as_the_first_time() -> None:
    fleet = Fleet({"a": "fails:1"}, {"a": 2 * PATIENCE_SECONDS}, away=(0.0, 60.0))
    dispatch = Dispatch(fleet, deque(["a"]), LEASE_SECONDS, fleet.clock)
    while not fleet.launches:
        dispatch.turn()
        fleet.pass_time()
    fails = fleet.now + 2 * PATIENCE_SECONDS
    fleet.away = (fleet.now, fails + PATIENCE_SECONDS / 2)
    while dispatch.goes_on():
        dispatch.turn()
        fleet.pass_time()
    assert dispatch.done == ["a"]
    assert fleet.tries["a"] == 2
