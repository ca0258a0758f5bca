"""Rates are learnt: the client's own calls and retries, against servers in virtual time."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pytest
from virtual_time import run_virtually

from graphrag_pipeline.llm import LlmOptions, TerminalModelError, TransientModelError
from graphrag_pipeline.llm.answers import TokenUsage
from graphrag_pipeline.llm.budget import Budget
from graphrag_pipeline.llm.calls import CallerOfModels, Outgoing
from graphrag_pipeline.llm.pace import Pace
from graphrag_pipeline.llm.prices import load_prices

HONEST = -1.0
"""A server that asks for just the wait after which it has room."""
_endpoints = itertools.count()


class Gate(Protocol):
    """What lets calls through: says for each None, or the seconds until there is room."""

    def refuse(self, now: float) -> float | None: ...


@dataclass
class Bucket:
    """A bucket of tokens, as most gateways have it; nginx' own holds one."""

    rate: float
    size: float
    level: float = 0.0
    at: float | None = None

    def refuse(self, now: float) -> float | None:
        elapsed = float("inf") if self.at is None else now - self.at
        self.level, self.at = min(self.size, self.level + elapsed * self.rate), now
        if self.level < 1 - 1e-9:
            return (1 - self.level) / self.rate
        self.level -= 1
        return None


@dataclass
class Window:
    """So many calls in each second, or minute, of the clock."""

    rate: float
    seconds: float
    number: float = -1.0
    calls: int = 0

    def refuse(self, now: float) -> float | None:
        if now // self.seconds != self.number:
            self.number, self.calls = now // self.seconds, 0
        self.calls += 1
        if self.calls <= self.rate * self.seconds:
            return None
        return (self.number + 1) * self.seconds - now


class Simulated:
    """A server behind a gate, in place of the transport; a refusal comes at once, as they do."""

    def __init__(self, gate: Gate, retry_after: float | None, latency: float) -> None:
        self.gate, self.retry_after, self.latency = gate, retry_after, latency
        self.refusals = 0

    async def ready(self) -> None: ...

    async def post(self, path: str, content: bytes, model: str) -> Mapping[str, Any]:
        room = self.gate.refuse(asyncio.get_running_loop().time())
        await asyncio.sleep(self.latency if room is None else min(self.latency, 0.05))
        if room is None:
            return {}
        self.refusals += 1
        asked = room if self.retry_after == HONEST else self.retry_after
        raise TransientModelError("429", "rate_limit", retry_after=asked)


class Uneven(Simulated):
    """A server that calls reach sooner or later, as on a busy machine."""

    async def post(self, path: str, content: bytes, model: str) -> Mapping[str, Any]:
        await asyncio.sleep(random.uniform(0, 0.02))
        return await super().post(path, content, model)


class NoDatabase:
    def write_later(self, writes: object) -> None: ...


def caller_of(server: object, number: int | None = None) -> CallerOfModels:
    # An endpoint of its own: what was learnt of the last server holds for that one alone.
    number = next(_endpoints) if number is None else number
    options = LlmOptions(f"https://{number}.example.com/v1", "key")
    database: Any = NoDatabase()
    transport: Any = server
    return CallerOfModels(options, transport, database, load_prices(), Budget(None, None))


async def answer_all(caller: CallerOfModels, calls: int) -> float:
    """Return the seconds in which all of so many calls are answered."""
    began = asyncio.get_running_loop().time()
    outgoing = Outgoing("/chat/completions", "m", "s", None, {}, lambda: 1)
    waiting = iter(range(calls))

    async def work() -> None:
        for _ in waiting:
            await caller.send(outgoing, lambda raw: (None, TokenUsage(1, 1)))

    with caller.running():
        await asyncio.gather(*(work() for _ in range(32)))
    return asyncio.get_running_loop().time() - began


def seconds_of(server: Simulated, calls: int) -> float:
    """Return the virtual seconds in which a server answers so many calls of a new client."""

    async def run() -> float:
        return await answer_all(caller_of(server), calls)

    random.seed(7)
    return run_virtually(run())


GATES: dict[str, Callable[[float], Gate]] = {
    "a bucket of one": lambda rate: Bucket(rate, 1),
    "a bucket of a second": lambda rate: Bucket(rate, max(2, rate)),
    "windows of a second": lambda rate: Window(rate, 1),
    "windows of a minute": lambda rate: Window(rate, 60),
}
ASKED = {"none": None, "0 s": 0.0, "1 s": 1.0, "5 s": 5.0, "as long as it takes": HONEST}


CALLS = {
    (1, "windows of a minute"): 420,
    (10, "windows of a minute"): 900,
    **{(100, gate): 1000 for gate in GATES if gate != "windows of a minute"},
}
"""Where not 200. A hundred a second are over in two seconds, of which learning takes a half."""


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("rate", [1, 10, 100])
def test_all_calls_get_through_in_little_more_than_the_time_a_rate_allows(
    rate: int, gate: str, asked: str
) -> None:
    if rate == 100 and (asked in ("0 s", "1 s") or gate == "windows of a minute"):
        pytest.skip("as others, and many calls")
    calls = CALLS.get((rate, gate), 200)
    server = Simulated(GATES[gate](rate), ASKED[asked], latency=0.1)
    seconds = seconds_of(server, calls)
    assert seconds < 1.2 * calls / rate, server.refusals
    assert server.refusals <= 0.1 * calls, seconds


@pytest.mark.parametrize("asked", ["none", "5 s"])
@pytest.mark.parametrize("gate", ["a bucket of a second", "windows of a second"])
def test_calls_that_arrive_unevenly_get_through_all_the_same(gate: str, asked: str) -> None:
    server = Uneven(GATES[gate](10), ASKED[asked], latency=0.05)
    seconds = seconds_of(server, 200)
    assert seconds < 1.2 * 20, server.refusals
    assert server.refusals <= 20, seconds


def test_the_next_client_of_a_process_knows_what_the_last_one_learnt() -> None:
    server = Simulated(Bucket(10, 1), 5.0, latency=0.1)

    async def run() -> list[int]:
        refused = []
        for _ in range(3):
            before = server.refusals
            await answer_all(caller_of(server, 9999), 60)
            refused.append(server.refusals - before)
        return refused

    first, *later = run_virtually(run())
    assert max(later) <= 3 < first


def test_a_rate_that_is_raised_is_used_before_long() -> None:
    gate = Bucket(5, 1)
    server = Simulated(gate, None, latency=0.1)

    async def run() -> float:
        caller = caller_of(server)
        await answer_all(caller, 100)
        gate.rate = 20
        await answer_all(caller, 600)
        return await answer_all(caller, 200)

    assert run_virtually(run()) < 1.2 * 200 / 20


def test_calls_that_are_limited_by_their_number_at_once_keep_the_rate_as_it_is() -> None:
    server = Simulated(Bucket(10, 1), None, latency=4.0)
    seconds_of(server, 400)
    assert server.refusals < 0.1 * 400


def test_a_server_that_lets_nothing_through_ends_the_run_with_its_reason() -> None:
    server = Simulated(Bucket(0.0001, 1), None, latency=0.1)
    with pytest.raises(TerminalModelError, match=r"no call got through for 1[5-9]\d s") as caught:
        seconds_of(server, 40)
    assert caught.value.stops_everything
    assert server.refusals < 60


def test_a_wait_of_minutes_that_the_server_means_is_kept() -> None:
    server = Simulated(Window(2, 100), HONEST, latency=0.1)
    assert seconds_of(server, 1000) < 1.2 * 500
    assert server.refusals <= 0.05 * 1000


def test_half_of_a_wait_that_the_server_means_is_kept_once_a_call_may_have_got_through() -> None:
    pace = Pace(first_gap=0.5)
    pace.passed(pace.send(0.0))
    for now in (1.0, 30.0, 34.0):
        pace.refused(pace.send(now), now + 0.1, asked=60.0)
    assert pace.wait(34.1) == pytest.approx(60.0)
    _under_way, refused = pace.send(95.0), pace.send(95.0)
    pace.refused(refused, 95.1, asked=60.0)
    assert pace.wait(95.1) == pytest.approx(30.0)


@pytest.mark.parametrize(("idle", "is_forgotten"), [(61.0, True), (59.0, False)])
def test_what_was_learnt_is_forgotten_after_a_minute_in_which_nothing_was_asked(
    idle: float, is_forgotten: bool
) -> None:
    new, pace = Pace(), Pace()
    pace.refused(pace.send(0.0), 0.1)
    at = pace.wait(0.0) + idle
    for each in (new, pace):
        each.send(at)
    assert (pace.wait(at) == new.wait(at)) is is_forgotten
