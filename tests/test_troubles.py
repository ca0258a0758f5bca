"""Servers as they are: requests they refuse, answers they break, and what becomes of them."""

from __future__ import annotations

import base64
import contextlib
import importlib
import random
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
from llm_helpers import ask, ask_many, said, with_client
from model_server import Fault, ModelServer, Request, echo, embedding_of, refusal
from strict_server import Rates, Served, StrictServer
from troubles import CHAT, HARMLESS, VECTORS, Mixture, Trouble

from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.llm import Completion, ModelError, ModelOutputError, TerminalModelError
from graphrag_pipeline.reports.parsing import report_schema


def kept(home: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(Home(home).calls)) as con:
        return [text for (text,) in con.execute("SELECT text FROM responses")]


def at_first(table: Mapping[str, Trouble], name: str) -> Callable[[Request], Fault | None]:
    """The first request meets a trouble; a lasting one is met for ever."""

    def faults(request: Request) -> Fault | None:
        is_met = table[name].lasting or request.number == 1
        return table[name].make(random.Random(1)) if is_met else None

    return faults


def right_answer(text: str) -> None:
    if text.rstrip("\N{REPLACEMENT CHARACTER}?") != echo(said("hello")):
        raise ModelOutputError("that is no answer")


@pytest.mark.parametrize("name", CHAT)
def test_each_trouble_of_an_answer_ends_in_a_right_answer_or_one_clear_error(
    tmp_path: Path, name: str
) -> None:
    def asked(server: ModelServer) -> None:
        with_client(
            server, tmp_path, lambda c: c.complete(said("hello"), stage="t", check=right_answer)
        )

    with StrictServer(faults=at_first(CHAT, name)) as server:
        errors: list[str] = []
        try:
            asked(server)
        except ModelError as error:
            errors.append(str(error))
        assert not (errors and name in HARMLESS)
        assert not any("\n" in error or "sorry" in error for error in errors)
        assert len(kept(tmp_path)) == 1 - len(errors)
        assert len(server.requests) <= (1 if name in HARMLESS or CHAT[name].lasting else 2)
        server.misbehave(())
        asked(server)
        assert len(kept(tmp_path)) == 1


@pytest.mark.parametrize("name", VECTORS)
def test_each_trouble_of_vectors_ends_in_the_right_vectors(tmp_path: Path, name: str) -> None:
    texts = ["one", "two", "three"]
    with StrictServer() as server:
        with_client(server, tmp_path, lambda c: c.embed(["before"], stage="e"))
        server.forget()
        server.misbehave(at_first(VECTORS, name))
        vectors = with_client(server, tmp_path, lambda c: c.embed(texts, stage="e"))
        assert len(server.requests) == (1 if name in HARMLESS else 2)
    for vector, text in zip(vectors, texts, strict=True):
        right = embedding_of(text, 64)
        assert np.allclose(vector, right / np.linalg.norm(right), atol=1e-6)


def test_there_are_as_many_troubles_as_are_known() -> None:
    assert len(CHAT) >= 20
    assert len(VECTORS) >= 15
    assert {*CHAT, *VECTORS} >= HARMLESS


@pytest.fixture
def strict() -> Iterator[StrictServer]:
    with StrictServer(lambda messages: "one two three four five six seven eight") as server:
        yield server


def raw(server: ModelServer, **body: Any) -> Any:
    client = openai.OpenAI(base_url=server.base_url, api_key="k", max_retries=0)
    body = {"model": "gpt-4o-mini", "messages": said("hello")} | body
    return client.chat.completions.create(**body)


def test_an_answer_ends_at_its_limit_of_tokens(strict: StrictServer) -> None:
    answer = raw(strict, max_tokens=3)
    assert answer.choices[0].message.content == "one two three"
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 3
    pieces = list(raw(strict, max_tokens=3, stream=True, stream_options={"include_usage": True}))
    texts = [piece.choices[0].delta.content or "" for piece in pieces if piece.choices]
    assert "".join(texts) == "one two three"
    assert pieces[-1].usage.completion_tokens == 3


def test_a_bias_of_a_hundred_leaves_nothing_else_to_say(strict: StrictServer) -> None:
    forced = raw(strict, max_tokens=5, logit_bias={"14331": 100, "9173": 100}).choices[0]
    assert forced.message.content == "iatiatiatiatiat"
    forced = raw(strict, max_tokens=5, logit_bias={"31958": 100, "14695": 100}).choices[0]
    assert forced.message.content in ("YES" * 5, "NO" * 5)
    assert forced.finish_reason == "length"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"extra_body": {"top_k": 3}}, "Unrecognized request argument supplied: top_k"),
        ({"temperature": "hot"}, "temperature"),
        ({"messages": []}, "too short"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "Invalid value for"),
        ({"logit_bias": {"500000": 100}}, "logit_bias"),
        ({"messages": said("word " * 200_000)}, "maximum context length"),
    ],
)
def test_a_request_that_the_api_refuses_is_refused(
    strict: StrictServer, body: dict[str, Any], message: str
) -> None:
    with pytest.raises(openai.BadRequestError, match=re.escape(message)):
        raw(strict, **body)


@pytest.mark.parametrize("is_strict", [True, False])
def test_a_schema_that_strict_mode_does_not_take_is_refused(
    strict: StrictServer, is_strict: bool
) -> None:
    loose = {"type": "object", "properties": {"a": {"type": "string"}}}
    form = {"name": "answer", "schema": report_schema(5) if is_strict else loose, "strict": True}
    body = {"response_format": {"type": "json_schema", "json_schema": form}}
    if is_strict:
        assert raw(strict, **body).choices
    else:
        with pytest.raises(openai.BadRequestError, match="Invalid schema"):
            raw(strict, **body)


def test_a_model_that_thinks_is_asked_in_its_own_terms(tmp_path: Path) -> None:
    with StrictServer(models={"o4-mini": Served(thinks=True)}) as server:
        answer = ask(server, tmp_path, model="o4-mini", max_output_tokens=500)
        last = sorted(server.requests[-1].asked)
    assert answer.text == echo(said("hello"))
    assert last == ["max_completion_tokens", "messages", "model"]


class Clock:
    """A clock that moves when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def spoken(server: ModelServer, text: str = "hello", **body: Any) -> Mapping[str, str]:
    """The headers of an answer."""
    client = openai.OpenAI(base_url=server.base_url, api_key="k", max_retries=0)
    given: dict[str, Any] = {"model": "gpt-4o-mini", "messages": said(text)} | body
    return client.chat.completions.with_raw_response.create(**given).headers


def test_requests_and_tokens_are_counted_by_the_minute() -> None:
    clock = Clock()
    with StrictServer(rates=Rates(requests=3, tokens=600), clock=clock) as server:
        headers = [spoken(server, max_tokens=100) for _ in range(3)]
        assert [h["x-ratelimit-remaining-requests"] for h in headers] == ["2", "1", "0"]
        assert [h["x-ratelimit-remaining-tokens"] for h in headers] == ["500", "400", "300"]
        assert headers[0]["x-ratelimit-limit-tokens"] == "600"
        assert headers[0]["x-ratelimit-reset-requests"] == "20s"
        assert headers[2]["x-ratelimit-reset-requests"] == "1m0s"
        with pytest.raises(openai.RateLimitError) as refused:
            spoken(server)
        assert refused.value.response.headers["retry-after"] == "20"
        assert refused.value.response.headers["retry-after-ms"] == "20000"
        spoken(server, model="gpt-4o")
        clock.now = 21.0
        assert spoken(server)["x-ratelimit-remaining-requests"] == "0"
        clock.now = 100.0
        spoken(server, "word " * 300)
        with pytest.raises(openai.RateLimitError, match="tokens per min"):
            spoken(server, "word " * 300)
        with pytest.raises(openai.RateLimitError, match="too large"):
            spoken(server, "word " * 3000)


def test_vectors_and_streams_are_counted_by_the_minute_too() -> None:
    clock = Clock()
    with StrictServer(rates=Rates(requests=1), clock=clock) as server:
        client = openai.OpenAI(base_url=server.base_url, api_key="k", max_retries=0)
        assert list(raw(server, stream=True))
        with pytest.raises(openai.RateLimitError):
            raw(server, stream=True)
        client.embeddings.create(model="m", input=["a"])
        with pytest.raises(openai.RateLimitError):
            client.embeddings.create(model="m", input=["a"])


def test_a_rate_limit_is_waited_out_and_nothing_is_paid_twice(tmp_path: Path) -> None:
    texts = [f"question {n}" for n in range(20)]
    with StrictServer(rates=Rates(requests=10), pace=60) as server:
        answers = ask_many(server, tmp_path, texts, max_retries=100, retry_seconds=0.001)
        assert server.paid_again() == 0
        assert len(server.requests) > len(texts)
    assert all(isinstance(answer, Completion) for answer in answers)


def test_a_request_beyond_a_whole_minute_is_not_tried_again(tmp_path: Path) -> None:
    with StrictServer(rates=Rates(tokens=100)) as server:
        with pytest.raises(TerminalModelError, match="tokens a minute"):
            ask(server, tmp_path, "word " * 300)
        assert len(server.requests) == 1


def test_a_model_is_served_with_the_window_it_is_known_for(strict: StrictServer) -> None:
    long = said("word " * 10_000)
    with pytest.raises(openai.BadRequestError, match="8192 tokens"):
        raw(strict, model="gpt-4-0613", messages=long)
    assert raw(strict, model="gpt-4.1-mini", messages=long).choices
    assert raw(strict, model="llama3.1", messages=long).usage.prompt_tokens == 4096
    with pytest.raises(openai.BadRequestError, match="at most 16384 completion tokens"):
        raw(strict, max_tokens=20_000)


def test_a_refusal_is_streamed_as_a_refusal(strict: StrictServer) -> None:
    strict.misbehave([refusal("I can't help with that.")])
    pieces = list(raw(strict, stream=True))
    assert pieces[0].choices[0].delta.refusal == "I can't help with that."
    assert not any(piece.choices[0].delta.content for piece in pieces)


def test_vectors_come_as_they_are_asked_for(strict: StrictServer) -> None:
    client = openai.OpenAI(base_url=strict.base_url, api_key="k", max_retries=0)

    def vectors(encoding_format: Any) -> list[Any]:
        answer = client.embeddings.create(
            model="text-embedding-3-small",
            input=["a", "b"],
            dimensions=16,
            encoding_format=encoding_format,
        )
        return [row.embedding for row in answer.data]

    numbers, coded = vectors("float"), vectors("base64")
    assert len(numbers[1]) == 16
    assert np.allclose(np.frombuffer(base64.b64decode(coded[1]), "<f4"), numbers[1])
    with pytest.raises(openai.BadRequestError):
        client.embeddings.create(model="m", input=["a", ""])


def test_tokens_are_counted_as_the_model_counts(strict: StrictServer, tmp_path: Path) -> None:
    answer = ask(strict, tmp_path, "Grüße")
    assert answer.prompt_tokens == count_tokens(["Grüße"], "o200k_base")[0] + 4


def test_a_mixture_is_the_same_for_the_same_seed() -> None:
    mixtures = [Mixture(0.5, seed=3), Mixture(0.5, seed=3)]
    for mixture in mixtures:
        with StrictServer(faults=mixture) as server:
            for n in range(40):
                with contextlib.suppress(openai.OpenAIError, ValueError):
                    raw(server, messages=said(f"question {n}"))
    assert mixtures[0].met == mixtures[1].met
    assert 10 <= sum(mixtures[0].met.values()) <= 30


@pytest.mark.usefixtures("plain_stores")
def test_what_is_built_through_trouble_is_what_an_undisturbed_build_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(__file__).parents[1]
    monkeypatch.syspath_prepend(root)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    trials = importlib.import_module("benchmarks.troubles")
    folder = tmp_path / "docs"
    folder.mkdir()
    for file in sorted((root / "examples" / "corpus" / "press").iterdir())[:5]:
        shutil.copy(file, folder)
    runs, different = trials.build_through_trouble(folder, tmp_path, (0.6, 0.4, 0.0))
    assert sum(sum(run.met.values()) for run in runs) > 20
    assert all("\n" not in run.ending for run in runs)
    assert runs[-1].ending == "published"
    assert runs[-1].failed_chunks == 0
    assert different == []
