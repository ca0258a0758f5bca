"""Servers of one's own: time counts between words, and an answer that goes round is stopped."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from llm_helpers import ask, ask_many, paid, said, with_client
from model_server import Fault, ModelServer, half_stream, server_error, slow_stream, unsupported
from test_llm_loops import OTHERS, RECORD, SENTENCE, SOUND
from virtual_time import run_virtually

from graphrag_pipeline.cli.progress import progress
from graphrag_pipeline.core.progress import reading_remarks
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm import (
    Completion,
    LlmOptions,
    ModelError,
    ModelOutputError,
    TransientModelError,
)
from graphrag_pipeline.llm.answers import LOOP
from graphrag_pipeline.llm.ledger import Call, put_calls
from graphrag_pipeline.llm.pricing import StagePlan
from graphrag_pipeline.llm.speed import foretell, speed_of, timed
from graphrag_pipeline.llm.transport import Transport
from graphrag_pipeline.llm.tries import Tries

WORDS = "one two three four five six seven eight nine ten"
ENDLESS = SOUND + SENTENCE * 2000


def test_an_answer_may_take_longer_in_all_than_the_time_allowed(tmp_path: Path) -> None:
    with ModelServer(lambda messages: WORDS, faults=[slow_stream(0.12)]) as server:
        answer = ask(server, tmp_path, timeout_seconds=1, max_retries=0)
    assert (answer.text, answer.finish_reason) == (WORDS, "stop")
    assert (answer.prompt_tokens, answer.completion_tokens) == (2, 12)
    assert server.requests[0].body["stream_options"] == {"include_usage": True}


def test_a_loop_is_stopped_while_it_comes_paid_for_and_told(tmp_path: Path) -> None:
    with ModelServer(lambda messages: ENDLESS, faults=lambda _: slow_stream(0.0005)) as server:
        with pytest.raises(ModelOutputError, match="repeated itself") as caught:
            ask(server, tmp_path)
        assert server.answered == 0
    whole = caught.value.completion
    assert whole is not None
    assert SOUND <= whole.text < SOUND + SENTENCE * 3
    (row,) = paid(tmp_path).rows(named=True)
    assert 50 < row["completion_tokens"] < 1000
    assert row["completion_tokens"] > len(whole.text) / 5
    assert row["prompt_tokens"] > 0


def test_a_loop_of_a_hosted_model_is_seen_when_it_has_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LlmOptions, "is_private", False)
    with (
        ModelServer(lambda messages: ENDLESS) as server,
        pytest.raises(ModelOutputError, match="repeated itself"),
    ):
        ask(server, tmp_path)
    assert "stream" not in server.requests[0].body
    assert paid(tmp_path)["completion_tokens"].to_list() == [-(-len(ENDLESS) // 4)]


def test_what_came_before_a_loop_is_kept_for_who_can_use_a_part(tmp_path: Path) -> None:
    async def use(client: Any) -> list[Any]:
        return [
            await client.complete(said("hello"), stage="s", keeps_sound_part=True) for _ in "12"
        ]

    with ModelServer(lambda messages: OTHERS + RECORD * 500) as server:
        first, again = with_client(server, tmp_path, use)
    assert first.text.startswith(OTHERS)
    assert first.text.count("JANE DOE") < 3
    assert (first.finish_reason, again.cached, again.text) == (LOOP, True, first.text)


def test_a_model_that_only_thinks_in_circles_is_told_of(tmp_path: Path) -> None:
    with (
        ModelServer(lambda messages: "<think>" + SENTENCE * 500) as server,
        pytest.raises(ModelError, match="repeated itself before its answer began"),
    ):
        ask(server, tmp_path)
    assert len(server.requests) == 1


def test_a_server_that_refuses_to_stream_is_asked_without(tmp_path: Path) -> None:
    def faults(request: Any) -> Fault | None:
        return unsupported("stream") if "stream" in request.body else None

    with ModelServer(lambda messages: WORDS, faults=faults) as server:
        assert [ask(server, tmp_path, text).text for text in ("one", "two")] == [WORDS] * 2
    assert ["stream" in request.body for request in server.requests] == [True, False, False]
    assert "stream_options" not in server.requests[-1].body


def test_a_server_that_answers_whole_all_the_same_is_understood(tmp_path: Path) -> None:
    with ModelServer(lambda _: WORDS, faults=lambda _: Fault(reply=lambda body: body)) as server:
        answer = ask(server, tmp_path)
    assert (answer.text, answer.completion_tokens) == (WORDS, 12)


def test_half_an_answer_is_asked_for_again_and_paid_for(tmp_path: Path) -> None:
    with ModelServer(lambda messages: WORDS, faults=[half_stream()]) as server:
        assert ask(server, tmp_path).text == WORDS
    assert paid(tmp_path)["completion_tokens"].to_list() == [5, 12]


class SlowTransport(Transport):
    """A server in virtual time that answers one after another, ten words each."""

    def __init__(self, reading: float, seconds_a_word: float) -> None:
        options = LlmOptions("http://slow.local/v1", "key", timeout_seconds=100, concurrency=8)
        super().__init__(options)
        self.reading, self.seconds_a_word = reading, seconds_a_word
        self.free = asyncio.Lock()

    async def _events(
        self, client: object, path: str, content: bytes
    ) -> AsyncGenerator[object, None]:
        async with self.free:
            await asyncio.sleep(self.reading)
            for word in WORDS.split():
                yield {"choices": [{"delta": {"content": word}}]}
                await asyncio.sleep(self.seconds_a_word)


async def words_of(transport: SlowTransport, reading: float = 0.0) -> list[str]:
    pieces = transport.stream("/chat/completions", b"{}", "m", reading=reading)
    return [piece["choices"][0]["delta"]["content"] async for piece in pieces]


def test_a_call_waits_for_those_before_it_as_long_as_these_get_something() -> None:
    async def run() -> float:
        transport, began = SlowTransport(50, 20), asyncio.get_running_loop().time()
        answers = await asyncio.gather(*(words_of(transport) for _ in range(6)))
        assert answers == [WORDS.split()] * 6
        return asyncio.get_running_loop().time() - began

    assert run_virtually(run()) == pytest.approx(6 * 250)


@pytest.mark.parametrize(("reading", "allowed"), [(99, 0), (399, 300)])
def test_the_first_word_may_take_as_long_as_the_prompt_is_read(
    reading: float, allowed: float
) -> None:
    async def run(more: float) -> list[str]:
        return await words_of(SlowTransport(reading + more, 1), allowed)

    assert run_virtually(run(0)) == WORDS.split()
    with pytest.raises(TransientModelError, match=f"in {100 + allowed:g} s"):
        run_virtually(run(2))


def test_a_server_that_falls_silent_is_left() -> None:
    async def run() -> None:
        await words_of(SlowTransport(1, 101))

    with pytest.raises(TransientModelError, match="in 100 s"):
        run_virtually(run())


def test_tries_that_begin_together_are_told_in_one_line_with_their_number(tmp_path: Path) -> None:
    lines: list[str] = []

    def faults(request: Any) -> Fault | None:
        return server_error() if request.attempt < 3 else None

    with ModelServer(faults=faults) as server, reading_remarks(lines.append):
        answers = ask_many(server, tmp_path, [f"q{n}" for n in range(12)], retry_seconds=0.01)
    assert all(isinstance(answer, Completion) for answer in answers)
    # On a busy machine the twenty-four tries do not all begin within half a second.
    assert 1 <= len(lines) <= 3
    assert re.match(r"try [23] of 7 \(\d+ calls\): http://127.0.0.1:", lines[0])
    assert lines[0].endswith("cannot answer now (500): run again later")


def test_tries_that_go_on_are_told_of_more_and_more_seldom() -> None:
    async def run() -> list[tuple[float, str]]:
        lines: list[tuple[float, str]] = []
        loop = asyncio.get_running_loop()
        began = loop.time()
        tries = Tries(7)
        with reading_remarks(lambda line: lines.append((loop.time() - began, line))):
            for number in range(600):
                tries.begin(TransientModelError("no answer", "timeout"), 2 + number % 3)
                await asyncio.sleep(1)
        return lines

    lines = run_virtually(run())
    assert lines[0] == (0.5, "try 2 of 7: no answer")
    assert lines[1][1].startswith("try 4 of 7 (")
    assert 8 < len(lines) < 16


def test_a_refusal_for_the_rate_is_told_of_when_it_comes_again_and_again() -> None:
    async def run(number: int) -> list[str]:
        lines: list[str] = []
        tries = Tries(7)
        with reading_remarks(lines.append):
            tries.begin(TransientModelError("too fast", "rate_limit"), number)
            tries.tell()
        return lines

    assert [run_virtually(run(number)) for number in (2, 3)] == [[], ["try 3 of 7: too fast"]]


def ledger(home: Path, *calls: Call) -> None:
    async def use(client: Any) -> None:
        client._database.write_later([put_calls(*calls)])

    with ModelServer() as server:
        with_client(server, home, use)


def test_the_time_of_a_plan_is_that_of_calls_made_before_so_many_at_once(tmp_path: Path) -> None:
    # Two at once, a pause, two at once: 20 seconds for 800 tokens written and 1,600 read.
    calls = [Call("s", "m", None, 400, 200, 0.0, 10.0, called_at=at) for at in (0, 0, 500, 500)]
    others = [
        Call("s", "m", None, 9, 9, 0.0, 99.0, called_at=2000, error="no answer"),
        Call("s", "m", None, 9, 9, 0.0, 99.0, cached=True, called_at=3000),
        Call("s", "other", None, 9, 9, 0.0, 99.0, called_at=4000),
    ]
    ledger(tmp_path, *calls, *others)
    plan = StagePlan(
        stage="s", model="m", calls=100, cached=0, prompt_tokens=40_000, completion_tokens=20_000,
        cost=None,
    )  # fmt: skip
    known, one, none, unknown = timed(
        [
            plan,
            replace(plan, calls=1, prompt_tokens=4, completion_tokens=2),
            replace(plan, calls=0),
            replace(plan, model="new"),
        ],
        tmp_path,
    )
    assert known.seconds == pytest.approx(100 / 4 * 20)
    assert (one.seconds, none.seconds, unknown.seconds) == (10.0, 0.0, None)


def test_the_time_of_a_prompt_is_measured_where_calls_differ_enough(tmp_path: Path) -> None:
    # A token read takes 10 ms, one written 100.
    shapes = [(100, 90), (900, 20), (300, 300), (1000, 150), (40, 200), (800, 60), (500, 500)]
    for n, (prompt, completion) in enumerate([*shapes, (600, 10)]):
        seconds = 0.01 * prompt + 0.1 * completion
        ledger(
            tmp_path, Call("s", "m", None, prompt, completion, 0.0, seconds, called_at=1000.0 * n)
        )
    speed = speed_of(tmp_path, "m")
    assert speed is not None
    assert speed.reading == pytest.approx(0.1)
    assert speed.seconds(50_000, 1000) == pytest.approx(600)


def test_a_stage_says_how_long_it_takes_before_its_first_part_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(home=str(tmp_path), llm={"model": "m"})
    with progress("start"):
        foretell(settings, "extraction", "s", "parts", 4, 8)
    assert "left" not in capsys.readouterr().err
    # Two at once, of 40 seconds each.
    ledger(tmp_path, *[Call("s", "m", None, 4, 2, 0.0, 40.0, called_at=5.0) for _ in range(2)])
    with progress("start"):
        foretell(settings, "extraction", "s", "parts", 4, 8)
    assert capsys.readouterr().err.strip() == "parts                  about 3 min left"


def test_where_no_call_was_made_the_time_is_not_known(tmp_path: Path) -> None:
    assert speed_of(tmp_path / "nothing", "m") is None
