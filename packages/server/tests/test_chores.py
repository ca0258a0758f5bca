"""Chores of chat programs: told by their form, done without a look at documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from graphrag_server.chores import chore_of, tags_of, title_of
from http_server import Served
from model_server import Fault, ModelServer, server_error
from query_fixture import published

from graphrag_pipeline.core.settings import Settings

QUESTION = "Who worked as a clerk for Scrooge?"
TALK = f"USER: {QUESTION}\nASSISTANT: Bob Cratchit did. Tiny Tim was his son."


def task(what: str, form: str, talk: str = TALK) -> str:
    """Return a prompt in the form of Open WebUI's."""
    return (
        f"### Task:\n{what}\n### Guidelines:\n- Be brief.\n### Output:\nJSON format: {form}\n"
        f"### Chat History:\n<chat_history>\n{talk}\n</chat_history>"
    )


TITLE = task("Generate a concise title.", '{ "title": "your concise title here" }')
TAGS = task("Generate 1-3 broad tags.", '{ "tags": ["tag1", "tag2"] }')
FOLLOW_UPS = task("Predict 3-5 messages.", '{ "follow_ups": ["one", "two"] }')
QUERIES = task("Analyze the chat history.", '{\n  "queries": ["query1", "query2"]\n}')
COMPLETION = (
    task("You are an autocompletion system.", '`{ "text": "<your_completion>" }`')
    + "\n<type>General</type>\n<text>Who was Tiny</text>\n#### Output:\n"
)
LIBRECHAT = (
    "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. "
    f"Only return the title itself.\n\nConversation:\nUser: {QUESTION}\nAI: Bob Cratchit."
)
LIBRECHAT_BY_SCHEMA = (
    "Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A "
    "concise title in the detected language (5 words or less, no punctuation or quotation)\n\n"
    f"User: {QUESTION}\nAI: Bob Cratchit."
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published(tmp_path_factory.mktemp("chores") / "home")


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(lambda _: '```json\n{"title": "A clerk"}\n```') as server:
        yield server


@pytest.fixture(scope="module")
def served(home: Path, model: ModelServer) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OPENAI_API_KEY", "sk-test")
        writing = Settings(
            home=str(home),
            query={"answers": "llm", "cache": False},  # type: ignore[arg-type]
            llm={  # type: ignore[arg-type]
                "base_url": model.base_url,
                "model": "gpt-4o-mini",
                "max_retries": 0,
            },
        )
        with Served({"default": home, "book": writing}) as server:
            yield server


def sent(prompt: str, name: str = "default/bm25", **more: Any) -> dict[str, Any]:
    return {"model": name, "messages": [{"role": "user", "content": prompt}], **more}


def content_of(served: Served, prompt: str, name: str = "default/bm25", **more: Any) -> str:
    got = served.post("/v1/chat/completions", **sent(prompt, name, **more))
    assert got.status_code == 200, got.text
    assert "citations" not in got.json()
    return got.json()["choices"][0]["message"]["content"]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (TITLE, {"title": "Who worked as a clerk for Scrooge"}),
        (TAGS, {"tags": ["Scrooge"]}),
        (QUERIES, {"queries": [QUESTION]}),
        (COMPLETION, {"text": ""}),
        (LIBRECHAT_BY_SCHEMA, {"language": "", "title": "Who worked as a clerk for Scrooge"}),
    ],
)
def test_without_a_model_chores_are_done_from_the_words_of_the_talk(
    served: Served, prompt: str, expected: dict[str, Any]
) -> None:
    assert json.loads(content_of(served, prompt)) == expected


def test_follow_ups_are_questions_on_names_in_the_answer(served: Served) -> None:
    (first, *_) = json.loads(content_of(served, FOLLOW_UPS))["follow_ups"]
    assert first == "How is Bob Cratchit connected with Scrooge?"


def test_a_title_that_is_wanted_as_text_is_text(served: Served) -> None:
    assert content_of(served, LIBRECHAT) == "Who worked as a clerk for Scrooge"


def test_nothing_is_retrieved_for_a_chore(
    served: Served, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from graphrag_pipeline.query import engine

    def never(*_: object, **__: object) -> Any:
        raise AssertionError("a chore was retrieved for")

    for name in ("_retrieved", "_extracted"):
        monkeypatch.setattr(engine.QueryEngine, name, never)
    monkeypatch.setattr(engine, "write_answer", never)
    for prompt in (TITLE, TAGS, FOLLOW_UPS, QUERIES, COMPLETION, LIBRECHAT):
        for name in ("default/bm25", "book/local"):
            content_of(served, prompt, name)


def test_a_model_does_a_chore_in_one_call_with_the_prompt_as_it_is(
    served: Served, model: ModelServer
) -> None:
    model.forget()
    assert json.loads(content_of(served, TITLE, "book/local")) == {"title": "A clerk"}
    (request,) = model.asked()
    assert request.messages == [{"role": "user", "content": TITLE}]


@pytest.mark.parametrize("fault", [server_error(), Fault(text="I would rather not.")])
def test_a_chore_that_the_model_cannot_do_is_done_without_it(
    served: Served, model: ModelServer, fault: Fault
) -> None:
    model.misbehave(lambda _: fault)
    try:
        title = json.loads(content_of(served, TITLE, "book/local"))["title"]
    finally:
        model.misbehave(())
    assert title == "Who worked as a clerk for Scrooge"


def test_a_chore_streams_too(served: Served) -> None:
    got = served.post("/v1/chat/completions", **sent(TITLE, stream=True))
    assert got.headers["content-type"].startswith("text/event-stream")
    *events, end = got.text.strip().split("\n\n")
    assert end == "data: [DONE]"
    deltas = [json.loads(event[6:])["choices"][0]["delta"] for event in events]
    text = "".join(delta.get("content", "") for delta in deltas)
    assert json.loads(text) == {"title": "Who worked as a clerk for Scrooge"}


WITH_CONTEXT = (
    "### Task:\nRespond to the user query using the provided context.\n### Guidelines:\n- Cite.\n"
    '<context>\n<source id="1">How Open WebUI asks: JSON format: { "title": "x" }\n'
    f"<chat_history>\n{TALK}\n</chat_history>\n</source>\n</context>\n\n{QUESTION}"
)


@pytest.mark.parametrize(
    "question",
    [
        'Generate a concise title for A Christmas Carol, as JSON: { "title": "..." }',
        "What does ### Task: Generate tags ... <chat_history> mean?",
        "Which tags, titles and follow_ups does the handbook name?",
        "### Task:\nSummarise the report on Scrooge.",
        f"Please explain this prompt.\n{TITLE}",
        "Provide a concise, 5-word-or-less title for the conversation between Scrooge and Marley.",
        "Analyze this conversation and provide: who speaks?",
        WITH_CONTEXT,
        "",
    ],
)
def test_a_question_with_such_words_is_a_question(question: str) -> None:
    assert chore_of([{"role": "user", "content": question}]) is None


def test_a_prompt_within_a_conversation_is_the_users_own() -> None:
    turns = [("user", "Hello"), ("assistant", "Hello."), ("user", TITLE)]
    assert chore_of([{"role": role, "content": text} for role, text in turns]) is None
    assert chore_of([{"role": "user", "content": TITLE}]) is not None


def test_a_long_title_ends_after_a_clause_or_says_that_more_was_asked() -> None:
    assert title_of("Who led the foundry, and for how many years?") == "Who led the foundry"
    storm = "What happened to the middle arch of the bridge in the storm?"
    assert title_of(storm) == "What happened to the middle arch of the…"
    assert title_of("One, two three four five six seven eight?").endswith("seven eight")
    assert len(title_of("a" * 30 + " " + "b" * 29 + " c")) <= 60


def test_titles_and_tags_are_short_and_never_empty() -> None:
    assert title_of("") == "New chat"
    assert len(title_of("a" * 500)) <= 60
    assert len(title_of("Donaudampfschifffahrtsgesellschaft " * 9)) <= 60
    assert tags_of("what is it") == ["General"]
    assert tags_of("Who built the Orlen Dam in New York, and did Ada see it?") == [
        "Orlen Dam",
        "New York",
        "Ada",
    ]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_chore_may_come_after_instructions_and_after_nothing_else(role: str) -> None:
    asked = {"role": "user", "content": TITLE}
    chore = chore_of([{"role": role, "content": "You are brief."}, asked])
    assert chore is not None
    assert chore.kind == "title"
    assert chore_of([asked, {"role": "assistant", "content": "A clerk"}, asked]) is None
