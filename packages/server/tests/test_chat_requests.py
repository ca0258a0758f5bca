"""Requests as clients of OpenAI's API send them: what is ignored, refused, and said otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import openai
import pytest
from graphrag_server.openai_errors import CHAT
from graphrag_server.problems import HttpProblem, response_of
from http_server import Served
from model_server import Fault, ModelServer
from openai.types.chat import completion_create_params
from query_fixture import DOCUMENTS, published

from graphrag_pipeline.core.settings import Settings

QUESTION = "Who worked as a clerk for Scrooge?"
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
BY_SCHEMA = {
    "type": "json_schema",
    "json_schema": {"name": "clerk", "schema": SCHEMA, "strict": True},
}
CITED = '{"name": "Bob Cratchit [Data: Sources (0)]"}'


def says(text: str = QUESTION) -> list[Any]:
    return [{"role": "user", "content": text}]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published(tmp_path_factory.mktemp("requests") / "home")


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(lambda _: f"Here it is:\n```json\n{CITED}\n```") as server:
        yield server


@pytest.fixture(scope="module")
def served(home: Path, model: ModelServer) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OPENAI_API_KEY", "sk-test")
        writing = Settings(
            home=str(home),
            query={"answers": "llm", "cache": False},  # type: ignore[arg-type]
            llm={"base_url": model.base_url, "model": "gpt-4o-mini"},  # type: ignore[arg-type]
        )
        with Served({"default": home, "book": writing}) as server:
            yield server


@pytest.fixture
def client(served: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def chat(served: Served, **body: Any) -> Any:
    body = {"model": "default/bm25", "messages": says(), **body}
    return served.post("/v1/chat/completions", **body)


# What is ignored


@pytest.mark.parametrize("stream", [False, True])
def test_fields_that_change_nothing_are_ignored_and_named_in_a_header(
    served: Served, *, stream: bool
) -> None:
    tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
    sent = {"top_k": 4, "min_p": 0.1, "think": False, "options": {"num_ctx": 1}, "tools": [tool]}
    got = chat(served, stream=stream, **sent, tool_choice="auto", stop=None, functions=[])
    assert got.status_code == 200
    assert got.headers["X-Ignored-Fields"] == "min_p, options, think, tools, top_k"
    assert "Bob Cratchit" in got.text
    assert "X-Ignored-Fields" not in chat(served, stream=stream).headers


def test_no_name_of_a_field_can_add_a_header_or_fill_one(served: Served) -> None:
    hostile = {"a\r\nSet-Cookie: x": 1, "é" * 9: 1, "x" * 5000: 1}
    got = chat(served, **hostile, **{f"f{n}": n for n in range(900)})
    assert got.status_code == 200
    assert "Set-Cookie" not in got.headers
    assert len(got.headers["X-Ignored-Fields"]) < 2000


def test_every_field_of_the_newest_client_passes(served: Served) -> None:
    known = completion_create_params.CompletionCreateParamsNonStreaming.__annotations__
    base = completion_create_params.CompletionCreateParamsBase.__annotations__
    kinds = {"parallel_tool_calls": True, "store": False, "metadata": {"a": "b"}}
    values = {name: kinds.get(name, "auto") for name in {**base, **known}}
    for name in ("messages", "model", "stream", "stream_options", "n", "logprobs", "audio"):
        values.pop(name, None)
    values |= {"modalities": ["text"], "response_format": {"type": "text"}}
    more = {"prompt_cache_retention": "24h", "prompt_cache_options": {}, "moderation": {}}
    got = chat(served, **{**values, **more}, n=1, logprobs=False, audio=None)
    assert got.status_code == 200, got.text
    assert len(values) > 25


@pytest.mark.parametrize(
    "after",
    [
        [],
        [{"role": "system", "content": "Be brief."}],
        [{"role": "assistant", "content": " \n"}],
        [
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function"}]},
            {"role": "tool", "tool_call_id": "1", "content": "42"},
        ],
    ],
)
def test_messages_of_agents_pass(served: Served, after: list[Any]) -> None:
    before = [
        {"role": "developer", "name": "x", "content": "You are a pirate."},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
        {"role": "assistant", "content": [{"type": "text", "text": "So?"}], "refusal": None},
        {"role": "function", "name": "f", "content": "1"},
    ]
    got = chat(served, messages=[*before, *says(), *after], tool_choice={"type": "auto"})
    assert got.status_code == 200, got.text
    assert "Bob Cratchit" in got.json()["choices"][0]["message"]["content"]


def test_a_conversation_goes_on_without_the_footnotes_of_its_answers(
    served: Served, model: ModelServer
) -> None:
    answer = chat(served, model="book/basic").json()["choices"][0]["message"]["content"]
    text, _, notes = answer.partition("\n\n**Sources**")
    assert notes
    model.forget()
    before = [*says(), {"role": "assistant", "content": answer}]
    chat(served, model="book/basic", messages=[*before, *says("And his son?")])
    (request,) = model.asked()
    assert {"role": "assistant", "content": text} in request.messages
    assert "**Sources**" not in request.text


# Where citations point at


def addresses(answer: dict[str, Any]) -> list[Any]:
    held = answer["choices"][0].get("message") or answer["choices"][0]["delta"]
    return [each["url_citation"] for each in held["annotations"]]


def test_annotations_stand_on_their_references_and_open_the_passage(served: Served) -> None:
    answer = chat(served).json()
    content = answer["choices"][0]["message"]["content"]
    for number, cites in enumerate(addresses(answer), start=1):
        assert content[cites["start_index"] : cites["end_index"]] == f"[{number}]"
        assert content.count(f"({cites['url']})") == 1
        parts = urlsplit(cites["url"])
        assert f"{parts.scheme}://{parts.netloc}" == served.url
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        assert (query["collection"], query["release"]) == ("default", "r1")
        text = served.get(
            f"/v1{parts.path}/text", params={"start": query["start"], "end": query["end"]}
        ).json()
        assert text["text"] in DOCUMENTS[cites["title"]]
        assert text["text"][:20] in content


def test_a_stream_ends_with_the_annotations_of_its_whole_text(served: Served) -> None:
    lines = chat(served, stream=True).content.decode().split("\n\n")
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    content = "".join(event["choices"][0]["delta"].get("content", "") for event in events)
    assert events[-1]["choices"][0]["finish_reason"] == "stop"
    cited = addresses(events[-1])
    assert cited
    for number, cites in enumerate(cited, start=1):
        assert content[cites["start_index"] : cites["end_index"]] == f"[{number}]"


def test_links_lead_where_clients_reach_the_server(home: Path, served: Served) -> None:
    def link(server: Served, **headers: str) -> str:
        body = {"model": "default/bm25", "messages": says()}
        url = f"{server.url}/v1/chat/completions"
        return addresses(server.http.post(url, json=body, headers=headers).json())[0]["url"]

    port = served.port
    assert link(served, Host=f"localhost:{port}").startswith(f"http://localhost:{port}/documents/")
    # uvicorn trusts what a proxy on this machine says of the scheme.
    proxied = link(served, **{"X-Forwarded-Proto": "https"})
    assert proxied.startswith(f"https://127.0.0.1:{port}/documents/")
    with Served({"default": home}, address="https://graph.example.com/kb/") as named:
        assert link(named).startswith("https://graph.example.com/kb/documents/")


# What is asked otherwise


@pytest.mark.parametrize("prompt", [QUESTION, [QUESTION], f"user: {QUESTION}\nassistant: "])
def test_the_older_form_of_completions_answers(client: openai.OpenAI, prompt: Any) -> None:
    answer = client.completions.create(model="default/bm25", prompt=prompt, max_tokens=9)
    assert answer.object == "text_completion"
    text = answer.choices[0].text
    assert "Bob Cratchit worked as a clerk for Scrooge" in text
    assert "**Sources**" in text
    assert answer.usage is not None
    assert answer.usage.prompt_tokens > 20
    stream = client.completions.create(
        model="default/bm25", prompt=prompt, stream=True, stream_options={"include_usage": True}
    )
    *pieces, usage = stream
    assert "".join(piece.choices[0].text for piece in pieces).startswith(text[:200])
    assert pieces[-1].choices[0].finish_reason == "stop"
    assert usage.usage == answer.usage


def test_a_prompt_that_is_a_conversation_is_read_as_one(
    client: openai.OpenAI, model: ModelServer
) -> None:
    model.forget()
    prompt = "user: Who was Marley?\nassistant: A partner.\nuser:\nAnd his clerk?\n\nassistant:\n"
    client.completions.create(model="book/basic", prompt=prompt)
    (request,) = model.asked()
    roles = [(each["role"], each["content"]) for each in request.messages[-3:]]
    assert roles[:2] == [("user", "Who was Marley?"), ("assistant", "A partner.")]
    assert "And his clerk?" in roles[2][1]
    assert "assistant:" not in roles[2][1]


@pytest.mark.parametrize("prompt", [[1, 2], ["a", "b"], [[1]], 7])
def test_prompts_that_are_no_one_text_are_refused(served: Served, prompt: Any) -> None:
    got = served.post("/v1/completions", model="default/bm25", prompt=prompt)
    assert got.status_code == 400
    assert got.json()["error"]["param"].startswith("prompt")


@pytest.mark.parametrize(
    ("path", "instead"),
    [
        ("embeddings", "/v1/retrieve"),
        ("responses", "/v1/chat/completions"),
        ("responses/resp_1", "/v1/chat/completions"),
        ("images/generations", "/v1/chat/completions"),
        ("files", "/v1/documents"),
        ("../chat/completions", "ends in /v1"),
    ],
)
def test_other_addresses_of_openais_say_which_to_use(
    served: Served, path: str, instead: str
) -> None:
    got = served.post(f"/v1/{path}".replace("/v1/..", ""), model="default/bm25", input="x")
    assert got.status_code == 404
    error = got.json()["error"]
    assert instead in error["message"]
    assert (error["code"], error["param"]) == ("unknown_url", None)


# JSON


@pytest.mark.parametrize("json_format", [{"type": "json_object"}, BY_SCHEMA])
@pytest.mark.parametrize("stream", [False, True])
def test_json_is_asked_of_the_model_and_given_alone(
    served: Served, model: ModelServer, json_format: dict[str, Any], *, stream: bool
) -> None:
    model.forget()
    got = chat(served, model="book/basic", response_format=json_format, stream=stream)
    assert got.status_code == 200, got.text
    (request,) = model.asked()
    assert request.body["response_format"] == json_format
    last = request.messages[-1]["content"]
    assert "one JSON object" in last
    assert (json.dumps(SCHEMA) in last) is (json_format is BY_SCHEMA)
    if stream:
        events = [json.loads(e[6:]) for e in got.text.split("\n\n") if e.startswith("data: {")]
        content = "".join(e["choices"][0]["delta"].get("content", "") for e in events)
        cited = addresses(events[-1])
    else:
        content = got.json()["choices"][0]["message"]["content"]
        cited = addresses(got.json())
    assert json.loads(content) == json.loads(CITED)
    assert [content[c["start_index"] : c["end_index"]] for c in cited] == ["[Data: Sources (0)]"]


def test_json_that_the_model_does_not_give_is_an_error(served: Served, model: ModelServer) -> None:
    model.misbehave(lambda _: Fault(text="I will not."))
    try:
        got = chat(served, model="book/basic", response_format={"type": "json_object"})
    finally:
        model.misbehave(())
    assert got.status_code == 502
    assert "JSON" in got.json()["error"]["message"]


@pytest.mark.parametrize("json_format", [{"type": "json_object"}, BY_SCHEMA])
def test_json_is_refused_where_no_model_writes(served: Served, json_format: dict[str, Any]) -> None:
    got = chat(served, response_format=json_format)
    assert got.status_code == 400
    assert "no model writes the answers here" in got.json()["error"]["message"]


@pytest.mark.parametrize(
    ("headers", "kind", "code"),
    [
        ({"Retry-After": "2"}, "requests", "rate_limit_exceeded"),
        ({"X-Should-Retry": "false"}, "insufficient_quota", "insufficient_quota"),
    ],
)
def test_clients_are_told_whether_to_come_again(
    headers: dict[str, str], kind: str, code: str
) -> None:
    response = response_of(HttpProblem(429, "not now", headers=headers), CHAT)
    error = json.loads(bytes(response.body))["error"]
    assert (error["type"], error["code"]) == (kind, code)
    assert {name: response.headers[name] for name in headers} == headers
