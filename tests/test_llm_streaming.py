from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from llm_helpers import ask, paid, said, with_client
from model_server import (
    ModelServer,
    content_filter,
    half_body,
    half_stream,
    rate_limited,
    server_error,
    slow_stream,
    truncated,
    unsupported,
    without_usage,
)

from graphrag_pipeline.llm import (
    Completion,
    ModelClient,
    ModelError,
    TerminalModelError,
    TransientModelError,
)

WORDS = "one two three four five six seven eight nine ten"


def answer(messages: object) -> str:
    return WORDS


def stream(
    server: ModelServer, home: Path, *, use_cache: bool = False, **given
) -> tuple[list[str], Completion]:
    async def use(client: ModelClient) -> tuple[list[str], Completion]:
        answer = client.stream(said("hello"), stage="answer", use_cache=use_cache)
        pieces = [piece async for piece in answer]
        assert answer.completion is not None
        return pieces, answer.completion

    return with_client(server, home, use, **given)


def test_pieces_come_as_they_are_made_and_usage_at_the_end(tmp_path: Path) -> None:
    async def use(client: ModelClient) -> list[float]:
        answer = client.stream(said("hello"), stage="answer")
        return [time.perf_counter() async for _ in answer]

    with ModelServer(answer, faults=[slow_stream(0.03)]) as server:
        times = with_client(server, tmp_path, use)
        pieces, whole = stream(server, tmp_path)
    assert len(times) == 10
    assert times[-1] - times[0] > 0.2
    assert "".join(pieces) == whole.text == WORDS
    assert (whole.prompt_tokens, whole.completion_tokens) == (2, 12)
    assert paid(tmp_path)["completion_tokens"].to_list() == [12, 12]


def test_a_streamed_answer_may_be_kept_and_serves_whole_calls(tmp_path: Path) -> None:
    with ModelServer(answer) as server:
        stream(server, tmp_path, use_cache=True)
        pieces, whole = stream(server, tmp_path, use_cache=True)
        assert ask(server, tmp_path, "hello").cached
    assert (pieces, whole.cached) == ([WORDS], True)
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", [rate_limited("0.05"), server_error()])
def test_a_stream_that_does_not_begin_is_tried_again(tmp_path: Path, fault) -> None:
    with ModelServer(answer, faults=[fault]) as server:
        assert "".join(stream(server, tmp_path)[0]) == WORDS


def test_a_stream_that_breaks_is_an_error_not_a_short_answer(tmp_path: Path) -> None:
    with (
        ModelServer(answer, faults=[half_body()]) as server,
        pytest.raises(TransientModelError, match="lost"),
    ):
        stream(server, tmp_path, use_cache=True)
    (row,) = paid(tmp_path).rows(named=True)
    assert row["completion_tokens"] == 5
    assert row["error"]


def test_a_stream_that_ends_too_soon_is_an_error_too(tmp_path: Path) -> None:
    with (
        ModelServer(answer, faults=[half_stream()]) as server,
        pytest.raises(TransientModelError, match="broke off"),
    ):
        stream(server, tmp_path, use_cache=True)
    assert paid(tmp_path)["completion_tokens"].to_list() == [6]


def test_a_stream_that_hangs_is_left(tmp_path: Path) -> None:
    with (
        ModelServer(answer, faults=[slow_stream(30)]) as server,
        pytest.raises(TransientModelError, match="no answer"),
    ):
        stream(server, tmp_path, timeout_seconds=0.3)


def test_a_slow_stream_may_take_longer_in_all_than_any_one_wait(tmp_path: Path) -> None:
    with ModelServer(answer, faults=[slow_stream(0.08)]) as server:
        assert stream(server, tmp_path, timeout_seconds=0.4)[1].text == WORDS


def test_a_reader_may_take_its_time(tmp_path: Path) -> None:
    async def use(client: ModelClient) -> int:
        n = 0
        async for _ in client.stream(said("hello"), stage="answer"):
            await asyncio.sleep(0.06)
            n += 1
        return n

    with ModelServer(answer) as server:
        assert with_client(server, tmp_path, use, timeout_seconds=0.3) == 10


def test_a_withheld_stream_is_an_error(tmp_path: Path) -> None:
    with (
        ModelServer(answer, faults=[content_filter()]) as server,
        pytest.raises(TerminalModelError, match="content filter"),
    ):
        stream(server, tmp_path)


def test_a_stream_cut_off_says_so(tmp_path: Path) -> None:
    with ModelServer(answer, faults=[truncated("one two")]) as server:
        assert stream(server, tmp_path)[1].finish_reason == "length"


def test_a_server_without_stream_options_is_counted_for(tmp_path: Path) -> None:
    def faults(request):
        if "stream_options" in request.body:
            return unsupported("stream_options")
        return without_usage()

    with ModelServer(answer, faults=faults) as server:
        whole = stream(server, tmp_path)[1]
    assert (whole.prompt_tokens, whole.completion_tokens) == (1, 10)


def test_a_stream_that_nobody_reads_to_its_end_is_accounted_for(tmp_path: Path) -> None:
    async def use(client: ModelClient) -> None:
        pieces = client.stream(said("hello"), stage="answer").__aiter__()
        await anext(pieces)
        await anext(pieces)
        await pieces.aclose()
        assert client.spent.tokens == 3
        assert (await client.complete(said("next"), stage="t")).text

    with ModelServer(answer, faults=[slow_stream(0.05)]) as server:
        with_client(server, tmp_path, use, concurrency=1)
    assert paid(tmp_path)["error"].to_list() == ["interrupted", None]


def test_a_stream_keeps_to_the_budget(tmp_path: Path) -> None:
    with ModelServer(answer) as server, pytest.raises(ModelError, match="budget"):
        stream(server, tmp_path, max_tokens=5)
    assert not server.requests
