"""What real programs send, as it was recorded from them, and what they get from the server.

Each file of ``data/clients`` is a request: which program sent it, its address, headers and body.
``tests/live/test_programs.py`` runs the programs themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from client_server import ANSWER, OBJECT, QUESTION, WRITTEN, served_to_programs
from http_server import Served
from model_server import ModelServer

RECORDED = {
    file.stem: json.loads(file.read_text(encoding="utf-8"))
    for file in sorted((Path(__file__).parent / "data" / "clients").glob("*.json"))
}
CHATS = (
    "langchain-agent",
    "langchain-bind-tools",
    "langchain-invoke",
    "litellm-chat",
    "litellm-tools",
    "llamaindex-function-agent",
    "llamaindex-react-agent",
    "llm-functions",
    "llm-stream",
    "open-webui-chat",
    "open-webui-chat-with-a-file",
    "openai-node-stream",
    "openai-node-tools",
    "openai-python-newest-fields",
    "openai-python-stream-other-fields",
    "openai-python-tools",
    "vercel-stream",
    "vercel-text",
    "vercel-tools",
    "vercel-tools-stream",
)
FOLLOWING = ("llm-continue", "open-webui-chat-again")
COMPLETIONS = tuple(name for name in RECORDED if "completion" in name)
AS_JSON = (
    "langchain-structured-json",
    "langchain-structured-schema",
    "litellm-structured",
    "llm-schema",
    "openai-node-parse",
    "openai-python-parse",
    "vercel-object",
    "vercel-object-schema",
)
BY_A_TOOL = ("langchain-structured-function", "llamaindex-structured")
CHORES: dict[str, str | None] = {
    "open-webui-autocomplete": "text",
    "open-webui-emoji": None,
    "open-webui-follow-ups": "follow_ups",
    "open-webui-follow-ups-again": "follow_ups",
    "open-webui-image": "prompt",
    "open-webui-merge": None,
    "open-webui-queries": "queries",
    "open-webui-queries-with-a-file": "queries",
    "open-webui-tags": "tags",
    "open-webui-title": "title",
}
"""Chores, and the key of the JSON object that each is to be answered with."""
ELSEWHERE = tuple(name for name in RECORDED if name.endswith(("responses", "embeddings")))

NEXT_ANSWER = "Tiny Tim was the son of Bob Cratchit, and he walked with a crutch."


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, ModelServer]]:
    with served_to_programs(tmp_path_factory.mktemp("clients")) as both:
        yield both


@pytest.fixture
def served(servers: tuple[Served, ModelServer]) -> Served:
    return servers[0]


@pytest.fixture
def model(servers: tuple[Served, ModelServer]) -> ModelServer:
    return servers[1]


@dataclass(frozen=True)
class Reply:
    """What a program reads of an answer, whether it came whole or in pieces."""

    raw: requests.Response
    text: str
    annotations: list[dict[str, Any]]
    usage: dict[str, Any] | None

    @property
    def citations(self) -> list[dict[str, Any]]:
        assert {each["type"] for each in self.annotations} <= {"url_citation"}
        return [each["url_citation"] for each in self.annotations]


def sent(served: Served, name: str, model: str | None = None) -> requests.Response:
    """Send a recorded request, to another model if one is named."""
    recorded = RECORDED[name]
    body = recorded["body"] | ({"model": model} if model else {})
    return served.http.post(
        served.url + recorded["path"], json=body, headers=recorded["headers"], timeout=60
    )


def reply_to(served: Served, name: str, model: str | None = None) -> Reply:
    got = sent(served, name, model)
    assert got.status_code == 200, got.text
    if not RECORDED[name]["body"].get("stream"):
        body = got.json()
        (choice,) = body["choices"]
        message = choice.get("message") or {"content": choice["text"]}
        return Reply(got, message["content"], message.get("annotations") or [], body["usage"])
    *events, end = [line[6:] for line in got.content.decode().split("\n\n") if line]
    assert end == "[DONE]"
    bodies = [json.loads(event) for event in events]
    choices = [choice for body in bodies for choice in body["choices"]]
    assert choices[-1]["finish_reason"] == "stop"
    deltas = [choice.get("delta") or {"content": choice.get("text")} for choice in choices]
    return Reply(
        got,
        "".join(delta.get("content") or "" for delta in deltas),
        deltas[-1].get("annotations") or [],
        bodies[-1].get("usage"),
    )


def n_asked(served: Served) -> tuple[float, float]:
    """Return for how many questions the server has retrieved, and how many chores it has done."""
    lines = served.get("/metrics").text.splitlines()
    counts = [line for line in lines if line.startswith("graphrag_question_seconds_count")]
    chores = [line for line in counts if 'method="chore"' in line]
    n_all, n_chores = (
        sum(float(each.rpartition(" ")[2]) for each in of) for of in (counts, chores)
    )
    return n_all - n_chores, n_chores


def test_each_recorded_request_is_asked_of_the_server_here() -> None:
    known = (*CHATS, *FOLLOWING, *COMPLETIONS, *AS_JSON, *BY_A_TOOL, *CHORES, *ELSEWHERE)
    assert sorted(known) == sorted(RECORDED)


def cited_text(served: Served, url: str) -> str:
    """Open a citation as a reader does: return the characters that its page marks."""
    assert url.startswith(f"{served.url}/documents/")
    page = served.http.get(url, timeout=60)
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    parts = urlsplit(url)
    values = {name: value for name, (value,) in parse_qs(parts.query).items()}
    text = served.get(f"/v1{parts.path}/text", params=values)
    assert text.status_code == 200, text.text
    return text.json()["text"]


def assert_rests_on_passages(served: Served, reply: Reply) -> None:
    """Each citation marks its number in the answer, and leads to the words that the answer has."""
    assert reply.citations
    for number, citation in enumerate(reply.citations, start=1):
        place = reply.text[citation["start_index"] : citation["end_index"]]
        assert f"[{number}]" in place
        assert citation["title"]
        assert cited_text(served, citation["url"]) in reply.text


@pytest.mark.parametrize("name", CHATS)
def test_a_chat_is_answered_with_passages_that_the_page_opens(served: Served, name: str) -> None:
    questions, chores = n_asked(served)
    reply = reply_to(served, name)
    assert n_asked(served) == (questions + 1, chores)
    assert ANSWER in reply.text
    assert_rests_on_passages(served, reply)
    assert str(served.holders["default"].settings.home) not in reply.raw.text
    streamed = RECORDED[name]["body"].get("stream")
    if not streamed or RECORDED[name]["body"].get("stream_options"):
        assert reply.usage is not None
        assert reply.usage["prompt_tokens"] > 20


@pytest.mark.parametrize("name", CHATS)
def test_the_fields_that_change_nothing_are_named_in_a_header(served: Served, name: str) -> None:
    body = RECORDED[name]["body"]
    ignored = set(sent(served, name).headers.get("X-Ignored-Fields", "").split(", ")) - {""}
    assert ignored <= set(body) - {"model", "messages", "stream", "stream_options"}
    expected = {"tools", "temperature", "top_k", "session_id", "moderation", "keep_alive"}
    assert ignored >= expected & set(body)


def test_the_question_is_what_the_user_says_and_not_what_is_attached(served: Served) -> None:
    plain, with_a_file = (
        reply_to(served, f"open-webui-{name}").text for name in ("chat", "chat-with-a-file")
    )
    assert with_a_file == plain


@pytest.mark.parametrize("name", FOLLOWING)
def test_a_question_that_follows_is_answered_out_of_the_conversation(
    served: Served, name: str
) -> None:
    reply = reply_to(served, name)
    assert NEXT_ANSWER in reply.text
    assert_rests_on_passages(served, reply)


@pytest.mark.parametrize("name", COMPLETIONS)
def test_a_prompt_to_be_completed_is_answered_as_the_question_in_it(
    served: Served, name: str
) -> None:
    reply = reply_to(served, name)
    assert ANSWER in reply.text
    assert "**Sources**" in reply.text


@pytest.mark.parametrize(("name", "key"), CHORES.items())
def test_a_chore_is_answered_in_its_form_without_a_look_at_the_documents(
    served: Served, name: str, key: str | None
) -> None:
    questions, chores = n_asked(served)
    reply = reply_to(served, name)
    assert n_asked(served) == (questions, chores + 1)
    assert reply.annotations == []
    assert "**Sources**" not in reply.text
    if key is not None:
        assert list(json.loads(reply.text)) == [key]


@pytest.mark.parametrize(("name", "key"), CHORES.items())
def test_a_chore_takes_one_call_of_the_model_and_no_retrieval(
    served: Served, model: ModelServer, name: str, key: str | None
) -> None:
    questions, chores = n_asked(served)
    model.forget()
    reply = reply_to(served, name, "book/local")
    assert n_asked(served) == (questions, chores + 1)
    (request,) = model.asked()
    assert "Who worked as a" in request.text
    assert ("dismal" in request.text) == ("dismal" in str(RECORDED[name]))
    if key is not None:
        assert json.loads(reply.text)[key] == OBJECT[key]


def test_what_chores_say_without_a_model_is_of_the_conversation(served: Served) -> None:
    def said(name: str, key: str) -> Any:
        return json.loads(reply_to(served, f"open-webui-{name}").text)[key]

    assert said("title", "title") == "Who worked as a clerk for Scrooge"
    assert "Scrooge" in said("tags", "tags")
    assert "And who was his son?" in said("queries", "queries")
    assert said("queries-with-a-file", "queries") == [QUESTION]
    follow_ups = said("follow-ups", "follow_ups")
    assert 0 < len(follow_ups) == len({*follow_ups})
    assert all("Cratchit" in each or "Scrooge" in each for each in follow_ups[:1])


@pytest.mark.parametrize("name", AS_JSON)
def test_json_is_written_by_a_model_and_refused_in_one_sentence_without(
    served: Served, name: str
) -> None:
    reply = reply_to(served, name, "book/local")
    assert json.loads(reply.text) == OBJECT
    refused = sent(served, name)
    assert refused.status_code == 400
    assert "response_format" in refused.json()["error"]["message"]


@pytest.mark.parametrize("name", BY_A_TOOL)
def test_a_tool_that_must_be_called_is_refused_with_what_to_do(served: Served, name: str) -> None:
    refused = sent(served, name)
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert error["param"] == "tool_choice"
    assert "response_format" in error["message"]


@pytest.mark.parametrize("name", ELSEWHERE)
def test_an_address_of_openai_that_is_none_here_names_the_one_to_use(
    served: Served, name: str
) -> None:
    refused = sent(served, name)
    assert refused.status_code == 404
    assert "/v1/chat/completions" in refused.json()["error"]["message"]


@pytest.mark.parametrize("name", ["open-webui-chat", "vercel-tools", "litellm-tools"])
def test_an_answer_of_a_model_has_citations_and_the_tokens_that_were_paid_for(
    served: Served, model: ModelServer, name: str
) -> None:
    model.forget()
    reply = reply_to(served, name, "book/basic")
    assert reply.text.startswith(WRITTEN)
    first = reply.citations[0]
    assert reply.text[first["start_index"] : first["end_index"]] == "[Data: Sources (0)]"
    assert cited_text(served, first["url"])
    (request,) = model.asked()
    assert "get_" not in request.text
