from __future__ import annotations

import email.utils
import time
from pathlib import Path

import pytest
from llm_helpers import ask, ask_many, paid
from model_server import (
    Fault,
    ModelServer,
    bad_request,
    content_filter,
    dropped,
    empty_answer,
    empty_choices,
    half_body,
    hang,
    invalid_json,
    prompt_filtered,
    rate_limited,
    refusal,
    server_error,
    too_long,
    truncated,
    without_usage,
)

from graphrag_pipeline.llm import (
    Completion,
    ModelError,
    TerminalModelError,
    TransientModelError,
)

TRANSIENT = {
    "429": rate_limited(),
    "429 with a time": rate_limited("0.05"),
    "500": server_error(500),
    "503": server_error(503),
    "dropped": dropped(),
    "half a body": half_body(),
    "invalid JSON": invalid_json(),
    "no object": Fault(raw=b"[1, 2]"),
    "a web page": Fault(raw=b"<html>Bad gateway</html>"),
    "empty choices": empty_choices(),
    "empty answer": empty_answer(),
    "no message": Fault(raw=b'{"choices": [{"message": "hello"}]}'),
    "error within 200": Fault(raw=b'{"error": {"message": "overloaded", "code": 503}}'),
}
TERMINAL = {
    "context_length": too_long(),
    "filter": prompt_filtered(),
    "request": bad_request(),
    "refusal": refusal(),
    "withheld": content_filter(),
    "no room": truncated(""),
}


@pytest.mark.parametrize("name", TRANSIENT)
def test_what_may_pass_is_tried_again(tmp_path: Path, name: str) -> None:
    with ModelServer(faults=[TRANSIENT[name]]) as server:
        assert ask(server, tmp_path).text.startswith("answer")
    assert len(server.requests) == 2
    errors = paid(tmp_path)["error"]
    assert errors[0]
    assert errors[1] is None


@pytest.mark.parametrize("name", TERMINAL)
def test_what_cannot_pass_is_asked_once(tmp_path: Path, name: str) -> None:
    with ModelServer(faults=lambda request: TERMINAL[name]) as server:
        with pytest.raises(TerminalModelError) as caught:
            ask(server, tmp_path)
        assert len(server.requests) == 1
        assert "\n" not in str(caught.value)
        server.misbehave(())
        assert ask(server, tmp_path).text.startswith("answer")


def test_one_failure_does_not_lose_the_others(tmp_path: Path) -> None:
    with ModelServer(faults=lambda r: too_long() if r.text == "q7" else None) as server:
        results = ask_many(server, tmp_path, [f"q{n}" for n in range(20)])
    failed = [n for n, result in enumerate(results) if not isinstance(result, Completion)]
    assert failed == [7]


def test_tries_end_and_say_so(tmp_path: Path) -> None:
    with (
        ModelServer(faults=lambda request: server_error()) as server,
        pytest.raises(TransientModelError, match=r"\(500\): run again later"),
    ):
        ask(server, tmp_path, max_retries=3)
    assert len(server.requests) == 4
    assert paid(tmp_path).height == 4


def test_an_answer_that_stays_empty_is_not_paid_for_over_and_over(tmp_path: Path) -> None:
    with (
        ModelServer(faults=lambda request: empty_answer()) as server,
        pytest.raises(TransientModelError, match="nothing"),
    ):
        ask(server, tmp_path)
    assert len(server.requests) == 2
    assert paid(tmp_path)["prompt_tokens"].sum() == server.prompt_tokens


def test_a_hanging_server_is_left_after_the_time_allowed(tmp_path: Path) -> None:
    with ModelServer(faults=[hang(), None]) as server:
        assert ask(server, tmp_path, timeout_seconds=0.3).text
    assert paid(tmp_path)["error"][0].startswith("no answer from http://127.0.0.1")


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    with ModelServer() as server:
        pass
    with pytest.raises(TerminalModelError, match=r"no connection to http://127.0.0.1:\d+/v1"):
        ask(server, tmp_path, max_retries=1)


def test_calls_to_a_server_that_is_not_there_end_with_the_first_that_gives_up(
    tmp_path: Path,
) -> None:
    with ModelServer() as server:
        pass
    results = ask_many(server, tmp_path, [f"q{n}" for n in range(50)], concurrency=4, max_retries=2)
    assert {result.kind for result in results if isinstance(result, ModelError)} == {"unreachable"}
    assert len(results) == 50
    assert paid(tmp_path).height <= 8 * 3


def test_a_server_that_answers_nothing_is_given_up_before_all_calls_are_tried(
    tmp_path: Path,
) -> None:
    with ModelServer(faults=lambda request: server_error()) as server:
        results = ask_many(server, tmp_path, [f"q{n}" for n in range(100)], max_retries=0)
    last = results[-1]
    assert isinstance(last, ModelError)
    assert last.stops_everything
    assert "calls in a row had no answer" in str(last)
    assert len(server.requests) < 40


def test_calls_that_fail_between_answers_do_not_end_the_others(tmp_path: Path) -> None:
    def faults(request):
        return server_error() if int(request.text[1:]) % 3 else None

    with ModelServer(faults=faults) as server:
        results = ask_many(
            server, tmp_path, [f"q{n}" for n in range(90)], max_retries=0, concurrency=2
        )
    assert sum(isinstance(result, Completion) for result in results) == 30


@pytest.mark.parametrize("form", ["seconds", "date", "milliseconds"])
def test_the_time_a_server_asks_for_is_waited_by_all(tmp_path: Path, form: str) -> None:
    def faults(request):
        if request.number > 1:
            return None
        header = {
            "seconds": {"retry-after": "1"},
            "date": {"retry-after": email.utils.formatdate(time.time() + 2, usegmt=True)},
            "milliseconds": {"retry-after-ms": "1000"},
        }[form]
        return Fault(429, rate_limited().error, header)

    with ModelServer(faults=faults) as server:
        results = ask_many(server, tmp_path, [f"q{n}" for n in range(6)], concurrency=1)
    assert all(isinstance(result, Completion) for result in results)
    assert server.requests[1].arrived - server.requests[0].arrived > 0.9


def test_a_storm_of_rate_limits_is_weathered(tmp_path: Path) -> None:
    begun = time.monotonic()
    storm = 0.6

    def faults(request):
        return rate_limited("0.2") if time.monotonic() - begun < storm else None

    with ModelServer(faults=faults) as server:
        results = ask_many(server, tmp_path, [f"q{n}" for n in range(40)])
    assert all(isinstance(result, Completion) for result in results)
    assert len(server.requests) < 40 + 5 * 16


def test_a_wait_beyond_patience_is_an_error_at_once(tmp_path: Path) -> None:
    with (
        ModelServer(faults=lambda request: rate_limited("86400")) as server,
        pytest.raises(TransientModelError, match="requests_per_minute"),
    ):
        ask(server, tmp_path)
    assert len(server.requests) == 1


def test_an_answer_cut_off_is_given_as_such(tmp_path: Path) -> None:
    with ModelServer(faults=[truncated("half a sen")]) as server:
        answer = ask(server, tmp_path)
        again = ask(server, tmp_path)
    assert (answer.text, answer.finish_reason) == ("half a sen", "length")
    assert (again.finish_reason, again.cached) == ("length", True)


def test_an_answer_is_not_lost_over_a_count_that_is_no_number(tmp_path: Path) -> None:
    usage = '{"prompt_tokens": 3, "completion_tokens": "2", "prompt_tokens_details": "none"}'
    raw = f'{{"choices": [{{"message": {{"content": "hello"}}}}], "usage": {usage}}}'
    with ModelServer(faults=[Fault(raw=raw.encode())]) as server:
        answer = ask(server, tmp_path)
    assert (answer.text, answer.prompt_tokens, answer.completion_tokens) == ("hello", 3, 0)


def test_tokens_are_counted_here_if_the_server_does_not(tmp_path: Path) -> None:
    with ModelServer(lambda messages: "one two three", faults=[without_usage()]) as server:
        answer = ask(server, tmp_path, "one two three four")
    assert (answer.prompt_tokens, answer.completion_tokens) == (4, 3)
