"""The server as clients of OpenAI's API see it: openai-python against it, over HTTP."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from graphrag_server.keys import Keyring, add_key
from graphrag_server.paths import ServerFiles
from http_server import Served
from model_server import ModelServer, slow_stream, unauthorized
from query_fixture import DOCUMENTS, published, settings_for

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.query import QueryEngine

QUESTION = "Who worked as a clerk for Scrooge?"
WRITTEN = "Bob Cratchit did [Data: Sources (0)]. He was paid little."


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published(tmp_path_factory.mktemp("chatted") / "home")


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(lambda _: WRITTEN) as server:
        yield server


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    place = tmp_path_factory.mktemp("keys")

    def key(name: str, **allowed: Any) -> str:
        allowed = {"collections": {"*"}, "scopes": {"query"}, **allowed}
        return add_key(settings_for(place), name, **allowed)[1]

    return {
        "home": str(place),
        "all": key("all"),
        "book": key("book", collections={"book"}),
        "reader": key("reader", scopes={"read"}),
        "hasty": key("hasty", requests_per_minute=1),
        "poor": key("poor", budget_usd=0.0),
    }


@pytest.fixture(scope="module")
def served(home: Path, model: ModelServer, keys: dict[str, str]) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OPENAI_API_KEY", "sk-test")
        writing = Settings(
            home=str(home),
            query={"answers": "llm"},  # type: ignore[arg-type]
            llm={"base_url": model.base_url, "model": "gpt-4o-mini"},  # type: ignore[arg-type]
        )
        collections = {"default": home, "book": writing}
        with Served(collections, Keyring(ServerFiles(Path(keys["home"])).keys)) as server:
            yield server


def client_of(served: Served, key: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{served.url}/v1", api_key=key, max_retries=0)


@pytest.fixture
def client(served: Served, keys: dict[str, str]) -> Iterator[openai.OpenAI]:
    with client_of(served, keys["all"]) as client:
        yield client


def says(text: str = QUESTION) -> list[Any]:
    return [{"role": "user", "content": text}]


def test_models_are_the_methods_that_can_answer_in_each_collection(
    client: openai.OpenAI, served: Served, keys: dict[str, str]
) -> None:
    names = [model.id for model in client.models.list()]
    assert names[0] == "default/auto"
    assert {"default/bm25", "book/local", "book/drift"} <= set(names)
    assert "default/drift" not in names
    assert client.models.retrieve("book/local").owned_by == "graphrag-pipeline"
    with client_of(served, keys["book"]) as of_book:
        assert {model.id.split("/")[0] for model in of_book.models.list()} == {"book"}
        with pytest.raises(openai.NotFoundError):
            of_book.models.retrieve("default/bm25")


def test_an_answer_has_footnotes_citations_and_true_usage(
    client: openai.OpenAI, model: ModelServer
) -> None:
    model.forget()
    answer = client.chat.completions.create(
        model="book/basic", messages=says(), temperature=0.2, max_tokens=50, user="x"
    )
    (choice,) = answer.choices
    assert choice.finish_reason == "stop"
    content = choice.message.content or ""
    assert content.startswith(WRITTEN)
    citations: list[Any] = answer.citations  # type: ignore[attr-defined]
    first = citations[0]
    assert first["text"] in DOCUMENTS[first["document_title"]]
    span = f"characters {first['start_char']}–{first['end_char']}"
    (annotation, *_) = choice.message.annotations or []
    cites = annotation.url_citation
    assert f"\n1. [{first['document_title']}]({cites.url}) (Sources (0)), {span}" in content
    assert cites.title == first["document_title"]
    assert content[cites.start_index : cites.end_index] == "[Data: Sources (0)]"
    assert answer.usage is not None
    assert answer.usage.total_tokens == sum(
        (answer.usage.prompt_tokens, answer.usage.completion_tokens)
    )
    assert answer.usage.prompt_tokens > 100
    assert len(model.asked()) == 1


def test_a_stream_gives_the_text_the_footnotes_and_the_usage(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="book/basic",
            messages=says("Who was the clerk?"),
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    *pieces, last, usage = chunks
    assert len({chunk.id for chunk in chunks}) == 1
    text = "".join(chunk.choices[0].delta.content or "" for chunk in pieces)
    assert text.startswith(WRITTEN)
    assert "**Sources**" in text
    assert len([chunk for chunk in pieces if chunk.choices[0].delta.content]) > 3
    assert [chunk.choices[0].finish_reason for chunk in (*pieces, last)] == [
        *itertools.repeat(None, len(pieces)),
        "stop",
    ]
    assert last.citations[0]["chunk_id"]  # type: ignore[attr-defined]
    assert all(chunk.usage is None for chunk in (*pieces, last))
    assert usage.choices == []
    assert usage.usage is not None
    assert usage.usage.completion_tokens > 0


def test_a_stream_ends_as_openais_does(served: Served, keys: dict[str, str]) -> None:
    response = served.post(
        "/v1/chat/completions",
        keys["all"],
        model="default/bm25",
        messages=says(),
        stream=True,
    )
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = response.content.decode().strip().split("\n\n")
    assert all(line.startswith("data: {") for line in lines[:-1])
    assert lines[-1] == "data: [DONE]"
    assert '"usage"' not in response.text


def test_asynchronous_clients_are_answered_beside_each_other(
    served: Served, keys: dict[str, str]
) -> None:
    async def ask(client: openai.AsyncOpenAI, title: str) -> str:
        stream = await client.chat.completions.create(
            model="default/bm25",
            messages=says("Who was in London, Paris or Warsaw?"),
            stream=True,
            extra_body={"where": {"title": title}},
        )
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    async def all_at_once() -> list[str]:
        address = f"{served.url}/v1"
        async with openai.AsyncOpenAI(base_url=address, api_key=keys["all"]) as client:
            return await asyncio.gather(*(ask(client, title) for title in DOCUMENTS))

    texts = asyncio.run(all_at_once())
    cited = [{other for other in DOCUMENTS if f". [{other}](" in text} for text in texts]
    assert all(own <= {title} for title, own in zip(DOCUMENTS, cited, strict=True))
    assert sum(map(len, cited)) > 1


def test_without_a_model_the_text_is_that_of_query(client: openai.OpenAI, home: Path) -> None:
    got = client.chat.completions.create(
        model="default/bm25", messages=says(), extra_body={"parameters": {"top_k": 1}}
    )
    with QueryEngine(home, settings=settings_for(home)) as engine:
        expected = engine.answer(QUESTION, "bm25", top_k=1)
    content = got.choices[0].message.content or ""
    assert content.startswith(expected.text.rstrip())
    numbers = re.findall(r"^(\d+)\. \[", content, re.MULTILINE)
    assert numbers == [str(number + 1) for number in range(len(expected.citations))]
    asked, found, said = count_tokens([QUESTION, expected.retrieval.context, expected.text])
    assert got.usage is not None
    assert 0 <= asked + found - got.usage.prompt_tokens < 20
    assert got.usage.completion_tokens == said
    assert got.usage.cost == 0  # type: ignore[attr-defined]


def test_the_messages_before_are_the_history(client: openai.OpenAI, model: ModelServer) -> None:
    model.forget()
    before = [
        {"role": "system", "content": "You are a pirate."},
        {"role": "user", "content": [{"type": "text", "text": "Who was Marley?"}]},
        {"role": "assistant", "content": "A partner of the firm."},
    ]
    client.chat.completions.create(model="book/basic", messages=[*before, *says("And his clerk?")])
    (request,) = model.asked()
    assert "Who was Marley?" in request.text
    assert "A partner of the firm." in request.text
    assert "pirate" not in request.text


def error_of(caught: pytest.ExceptionInfo[openai.APIStatusError]) -> dict[str, Any]:
    body = caught.value.body
    assert isinstance(body, dict)
    assert set(body) == {"message", "type", "param", "code"}
    return body


@pytest.mark.parametrize(
    ("key", "asked", "kind", "expected"),
    [
        ("wrong", {}, openai.AuthenticationError, ("invalid_request_error", "invalid_api_key")),
        ("reader", {}, openai.PermissionDeniedError,
         ("invalid_request_error", "insufficient_permissions")),
        ("all", {"model": "no/local"}, openai.NotFoundError,
         ("invalid_request_error", "model_not_found")),
        ("all", {"model": "default/nonsense"}, openai.NotFoundError,
         ("invalid_request_error", "model_not_found")),
        ("book", {"model": "default/bm25"}, openai.NotFoundError,
         ("invalid_request_error", "model_not_found")),
        ("poor", {}, openai.RateLimitError, ("insufficient_quota", "insufficient_quota")),
        ("all", {"messages": says("x" * 8001)}, openai.BadRequestError,
         ("invalid_request_error", None)),
        ("all", {"messages": [{"role": "assistant", "content": "x"}]}, openai.BadRequestError,
         ("invalid_request_error", None)),
        ("all", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
         openai.BadRequestError, ("invalid_request_error", None)),
        ("all", {"n": 2}, openai.BadRequestError, ("invalid_request_error", None)),
        ("all", {"tool_choice": "required"}, openai.BadRequestError,
         ("invalid_request_error", None)),
        ("all", {"tool_choice": {"type": "function", "function": {"name": "f"}}},
         openai.BadRequestError, ("invalid_request_error", None)),
        ("all", {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required"}}},
         openai.BadRequestError, ("invalid_request_error", None)),
        ("all", {"function_call": {"name": "f"}}, openai.BadRequestError,
         ("invalid_request_error", None)),
        ("all", {"logprobs": True}, openai.BadRequestError, ("invalid_request_error", None)),
        ("all", {"modalities": ["text", "audio"]}, openai.BadRequestError,
         ("invalid_request_error", None)),
        ("all", {"response_format": {"type": "yaml"}}, openai.BadRequestError,
         ("invalid_request_error", None)),
        ("all", {"response_format": {"type": "json_object"}}, openai.BadRequestError,
         ("invalid_request_error", None)),
        ("all", {"model": "default/drift"}, openai.BadRequestError,
         ("invalid_request_error", None)),
        ("all", {"messages": says("x" * 300_000)}, openai.APIStatusError,
         ("invalid_request_error", "request_too_large")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("stream", [False, True])
def test_errors_are_in_openais_form(
    served: Served,
    keys: dict[str, str],
    key: str,
    asked: dict[str, Any],
    kind: type[openai.APIStatusError],
    expected: tuple[str, str | None],
    stream: bool,
) -> None:
    asked = {"model": "default/bm25", "messages": says(), **asked}
    with (
        client_of(served, keys.get(key, "sk-wrong")) as client,
        pytest.raises(kind) as caught,
    ):
        client.chat.completions.create(**asked, stream=stream)
    error = error_of(caught)
    assert (error["type"], error["code"]) == expected
    assert error["message"]


def test_what_is_not_supported_is_named(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="default/bm25", messages=says(), n=2)
    error = error_of(caught)
    assert (error["param"], error["message"]) == (
        "n",
        "n: there is one answer here: leave it out",
    )


def test_who_asks_too_often_is_told_when_to_come_again(
    served: Served, keys: dict[str, str]
) -> None:
    with client_of(served, keys["hasty"]) as client:
        client.models.list()
        with pytest.raises(openai.RateLimitError) as caught:
            client.models.list()
    assert error_of(caught)["code"] == "rate_limit_exceeded"
    assert int(caught.value.response.headers["retry-after"]) > 1


def test_an_error_of_the_model_ends_a_stream_as_an_error(
    client: openai.OpenAI, model: ModelServer
) -> None:
    model.misbehave(lambda _: unauthorized())
    try:
        with pytest.raises(openai.InternalServerError) as refused:
            client.chat.completions.create(model="book/basic", messages=says("Why?"))
        assert refused.value.status_code == 502
        assert model.base_url not in str(refused.value)
        stream = client.chat.completions.create(
            model="book/basic", messages=says("Why?"), stream=True
        )
        with pytest.raises(openai.APIError, match="the log of the server says why"):
            list(stream)
    finally:
        model.misbehave(())


def test_a_client_that_hangs_up_ends_the_model_call(
    client: openai.OpenAI, model: ModelServer, served: Served
) -> None:
    model.misbehave(lambda _: slow_stream(0.2))
    try:
        with client.chat.completions.create(
            model="book/basic", messages=says("Where?"), stream=True
        ) as stream:
            next(iter(stream))
        deadline = time.monotonic() + 60
        while model.in_flight or served.limits.inside:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        model.misbehave(())


def test_no_page_takes_a_name_of_a_document_for_a_link(tmp_path: Path) -> None:
    title = "![x](http://evil.example/?q=)<img src=x>"
    published(tmp_path, documents={title: "Orsolya Venn wrote of the Kestrel Bridge."})
    with Served({"default": tmp_path}) as server:
        body = {"model": "default/bm25", "messages": says("Who wrote of the bridge?")}
        got = server.post("/v1/chat/completions", **body).json()
    content = got["choices"][0]["message"]["content"]
    notes = content.split("**Sources**")[1]
    assert "![x](" not in notes
    assert "<img" not in notes.replace("\\<img", "")
