"""Errors as servers mean them: what is final, what fills a window, and what a server said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from llm_helpers import KEY, ask, paid, said, with_client
from model_server import Fault, ModelServer

from graphrag_pipeline.llm import ModelClient, ModelError, TerminalModelError
from graphrag_pipeline.llm.server_words import words_of

NO_EMBEDDINGS = "This server does not support embeddings. Start it with `--embeddings`"


def refused(status: int, message: str, **more: object) -> Fault:
    return Fault(status, {"code": status, "message": message, "type": "not_supported", **more})


# As llama.cpp, vLLM (two versions) and OpenAI send it.
WINDOWS = {
    "llama.cpp": refused(
        400, "request (5051 tokens) exceeds the available context size (4096 tokens), try "
        "increasing it", type="exceed_context_size_error", n_prompt_tokens=5051, n_ctx=4096,
    ),
    "vllm": refused(
        400, "This model's maximum context length is 4096 tokens. However, you requested 5351 "
        "tokens (5051 in the messages, 300 in the completion). Please reduce the length.",
    ),
    "newer vllm": refused(
        400, "'max_tokens' or 'max_completion_tokens' is too large: 300. This model's maximum "
        "context length is 4096 tokens and your request has 5051 input tokens (300 > 4096 - 5051).",
    ),
    "openai": refused(
        400, "This model's maximum context length is 4096 tokens. However, your messages resulted "
        "in 5051 tokens.", code="context_length_exceeded",
    ),
}  # fmt: skip


def test_a_server_that_does_not_embed_is_asked_once_and_says_so_in_its_own_words(
    tmp_path: Path,
) -> None:
    with (
        ModelServer(faults=lambda request: refused(501, NO_EMBEDDINGS)) as server,
        pytest.raises(TerminalModelError) as caught,
    ):
        with_client(server, tmp_path, lambda c: c.embed(["a", "b"], stage="embeddings"))
    assert len(server.requests) == 1
    assert NO_EMBEDDINGS in str(caught.value)
    assert server.base_url in str(caught.value)
    assert caught.value.stops_everything
    assert caught.value.is_outage
    assert paid(tmp_path).height == 1


def test_a_server_that_lacks_a_parameter_is_asked_without_it(tmp_path: Path) -> None:
    def faults(request):
        return refused(501, "logit_bias is not supported") if "logit_bias" in request.body else None

    def use(client: ModelClient):
        return client.complete(said("hello"), stage="test", logit_bias={5: 1})

    with ModelServer(faults=faults) as server:
        assert with_client(server, tmp_path, use).text
    assert len(server.requests) == 2


@pytest.mark.parametrize("name", WINDOWS)
def test_an_error_of_the_window_says_its_size_what_fills_it_and_what_to_set(
    tmp_path: Path, name: str
) -> None:
    with (
        ModelServer(faults=lambda request: WINDOWS[name]) as server,
        pytest.raises(TerminalModelError) as caught,
    ):
        ask(server, tmp_path, max_output_tokens=300, section="models.small", model="m")
    text = str(caught.value)
    assert "the window of m has 4,096 tokens, and the prompt 5,051 and the answer up to 300" in text
    for setting in ("models.small.max_output_tokens", "chunks.size", "extraction.gleanings"):
        assert setting in text
    assert len(server.requests) == 1


def test_a_text_too_long_to_embed_names_the_setting_and_is_asked_once(tmp_path: Path) -> None:
    fault = refused(
        500, "input (1025 tokens) is too large to process. increase the physical batch size "
        "(current batch size: 512)",
    )  # fmt: skip
    with (
        ModelServer(faults=lambda request: fault) as server,
        pytest.raises(TerminalModelError, match=r"1,025.*llm\.embedding_max_tokens"),
    ):
        with_client(server, tmp_path, lambda c: c.embed(["a"], stage="embeddings"))
    assert len(server.requests) == 1


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "content"])
@pytest.mark.parametrize(("reason", "ended"), [("length", "ran out"), ("stop", "nothing")])
def test_thoughts_without_an_answer_are_told_as_such_and_not_bought_again(
    tmp_path: Path, field: str, reason: str, ended: str
) -> None:
    message = {"role": "assistant", "content": None, field: "<think>Let me see. The"}
    fault = Fault(change={"message": message, "finish_reason": reason})
    with (
        ModelServer(faults=lambda request: fault) as server,
        pytest.raises(TerminalModelError) as caught,
    ):
        ask(server, tmp_path)
    assert "the model thought" in str(caught.value)
    assert ended in str(caught.value)
    assert "max_output_tokens" in str(caught.value)
    assert "enable_thinking" in str(caught.value)
    assert len(server.requests) == 1


def test_the_key_that_is_refused_is_named_by_where_it_is_set(tmp_path: Path) -> None:
    fault = refused(401, "Invalid API key")
    with ModelServer(faults=lambda request: fault) as server:
        for name, cure in (
            ("THEIRS", "check THEIRS"),
            ("GRAPHRAG_NO_API_KEY", "set models.x.api"),
        ):
            with pytest.raises(ModelError, match=cure):
                ask(server, tmp_path, section="models.x", api_key_env=name)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (f"{NO_EMBEDDINGS}.", NO_EMBEDDINGS),
        ("Not for\nyou\x1b[31m", "Not for you[31m"),
        ("You sent: the secret merger", ""),
        ("Cannot embed 'Acme'", ""),
        (f"Bad key {KEY}", ""),
        ("Incorrect API key provided: sk-proj-abc***", ""),
        ("", ""),
    ],
)
def test_words_of_a_server_repeat_neither_documents_nor_keys(message: str, words: str) -> None:
    sent = json.dumps({"messages": [{"content": "On the SECRET\nmerger"}], "input": ["Acme"]})
    assert words_of({"message": message}, sent.encode(), KEY) == words
