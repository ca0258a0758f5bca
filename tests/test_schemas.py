"""Every answer by a schema comes to its end: no text and no list in one is without a most."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_helpers import options_for, said, with_client
from model_server import Fault, ModelServer, Request, unsupported
from strict_server import Served, StrictServer

from graphrag_pipeline.llm import ChatRequest, LlmOptions, ModelClient
from graphrag_pipeline.llm.requests import Dialect, chat_body, chat_key
from graphrag_pipeline.llm.schemas import (
    NUMBER,
    closed,
    cut_back,
    fitted,
    listed,
    text,
    whole_text,
)
from graphrag_pipeline.reports.parsing import report_schema

ROOT = Path(__file__).parent.parent
OUR_CODE = [ROOT / "graphrag_pipeline", *ROOT.glob("packages/*/graphrag_*[!o]")]
SCHEMA = closed(title=text(100), points=listed(text(400), 10))
# As reports were asked for before any text in them had a most.
OLD_TEXT = {"type": "string"}
OLD_FINDING = {
    "type": "object",
    "properties": {"summary": OLD_TEXT, "explanation": OLD_TEXT},
    "required": ["summary", "explanation"],
    "additionalProperties": False,
}
OLD_REPORT = {
    "type": "object",
    "properties": {
        "title": OLD_TEXT,
        "summary": OLD_TEXT,
        "rating": {"type": "number"},
        "rating_explanation": OLD_TEXT,
        "findings": {"type": "array", "items": OLD_FINDING},
    },
    "required": ["title", "summary", "rating", "rating_explanation", "findings"],
    "additionalProperties": False,
}


def parts_of(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and all schemas in it."""
    yield schema
    for part in [schema.get("items"), *(schema.get("properties") or {}).values()]:
        if part:
            yield from parts_of(part)


def is_bounded(part: Mapping[str, Any]) -> bool:
    keyword = {"string": "maxLength", "array": "maxItems"}.get(str(part.get("type")))
    return keyword is None or "enum" in part or 0 < part.get(keyword, 0) < 2000


def longest(schema: Mapping[str, Any]) -> Any:
    """Return the longest answer by a schema."""
    if "enum" in schema:
        return max(schema["enum"], key=lambda value: len(str(value)))
    if schema["type"] == "object":
        return {name: longest(part) for name, part in schema["properties"].items()}
    if schema["type"] == "array":
        return [longest(schema["items"])] * schema["maxItems"]
    return "x" * schema["maxLength"] if schema["type"] == "string" else 0.5


def dictionaries(path: Path) -> Iterator[dict[str, Any]]:
    code = path.read_text()
    for node in ast.walk(ast.parse(code)) if '"type": "' in code else ():
        if isinstance(node, ast.Dict):
            keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
            values = [v.value if isinstance(v, ast.Constant) else None for v in node.values]
            yield dict(zip(map(str, keys), values, strict=False))


def test_no_schema_is_written_by_hand_in_which_a_text_or_list_has_no_most() -> None:
    files = [path for folder in OUR_CODE for path in folder.rglob("*.py")]
    assert len(files) > 300
    bare = [
        f"{path.relative_to(ROOT)}: {schema}"
        for path in files
        if path.name != "schemas.py" and "routes" not in path.parts
        for schema in dictionaries(path)
        if schema.get("type") in ("string", "array")
        and not schema.keys() & {"maxLength", "maxItems", "enum", "description"}
    ]
    assert bare == [], "make it of the parts of llm/schemas.py"


schemas = st.recursive(
    st.sampled_from([text(5), text(300), text(9000), NUMBER, {"type": "string"}]),
    lambda parts: st.one_of(
        st.builds(listed, parts, st.integers(1, 60)),
        st.builds(lambda items: {"type": "array", "items": items}, parts),
        st.dictionaries(st.sampled_from("abcd"), parts, min_size=1).map(lambda d: closed(**d)),
    ),
    max_leaves=6,
)


@given(schema=schemas, tokens=st.integers(1, 20_000))
def test_what_is_sent_has_a_most_everywhere_and_fits_into_the_tokens_of_the_call(schema, tokens):
    options = LlmOptions("http://127.0.0.1:1/v1", model="m", max_output_tokens=tokens)
    body = chat_body(ChatRequest(said("q"), "test", json_schema=schema), options)
    sent = body["response_format"]["json_schema"]["schema"]
    assert all(map(is_bounded, parts_of(sent)))
    length = len(json.dumps(longest(sent), separators=(",", ":")))
    smallest = fitted(schema, 1)
    assert length <= 3 * tokens or sent == smallest


def test_the_window_bounds_an_answer_where_no_most_is_set() -> None:
    request = ChatRequest(said("q"), "test", json_schema=report_schema(10))
    small, large = (
        chat_body(request, LlmOptions("http://127.0.0.1:1/v1", model="m", context_window=window))
        for window in (4096, 200_000)
    )
    of = [body["response_format"]["json_schema"]["schema"] for body in (small, large)]
    assert len(json.dumps(longest(of[0]))) <= 3 * 1024
    assert of[1] == report_schema(10)


def test_an_answer_that_was_bought_before_schemas_had_mosts_is_not_bought_again(
    tmp_path: Path,
) -> None:
    asked = [OLD_REPORT, report_schema(10), report_schema(3)]
    with ModelServer(lambda _: "{}") as server:
        for schema in asked:
            with_client(
                server,
                tmp_path,
                lambda client, schema=schema: client.complete(
                    said("a context"), stage="test", json_schema=schema
                ),
            )
        assert len(server.requests) == 1
        options = options_for(server)
    keys = {chat_key(ChatRequest(said("q"), "t", json_schema=each), options) for each in asked}
    assert len(keys) == 1
    other = closed(**OLD_REPORT["properties"], language=text(5))
    assert chat_key(ChatRequest(said("q"), "t", json_schema=other), options) not in keys


def test_the_most_in_a_schema_of_the_users_own_is_part_of_the_question() -> None:
    options = LlmOptions("http://127.0.0.1:1/v1", model="m")
    formats = [
        {"type": "json_schema", "json_schema": {"name": "a", "schema": closed(a=text(most))}}
        for most in (5, 6)
    ]
    requests = [ChatRequest(said("q"), "t", response_format=form) for form in formats]
    assert len({chat_key(request, options) for request in requests}) == 2


@pytest.mark.parametrize(
    ("cut", "whole"),
    [
        ("Ada met Bob. Then they went to Par", "Ada met Bob."),
        ("Ada met Bob. Then they went.", "Ada met Bob. Then they went."),
        ("The harbour of Ferrow and its ma", "The harbour of Ferrow and its"),
        ("A. Then a very long sentence that has no end at a", "A. Then a very long sentence that "
         "has no end at"),
        ("Ada closed the bridge [Data: Sources (1, 2", "Ada closed the bridge"),
        ("She did so [Data: Sources (1)]. He", "She did so [Data: Sources (1)]."),
        ("橋は閉じた。彼は", "橋は閉じた。"),
        ("unbroken", "unbroken"),
    ],
)  # fmt: skip
def test_a_text_that_was_cut_ends_with_a_whole_sentence_or_word(cut: str, whole: str) -> None:
    assert whole_text(cut) == whole
    answer = json.dumps({"points": [cut, "a wh"]})
    schema = closed(points=listed(text(len(cut)), 5))
    assert json.loads(cut_back(answer, schema))["points"] == [whole, "a wh"]


def test_what_the_schema_cut_is_cut_back_before_it_is_kept(tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        assert request.schema is not None
        most = request.schema["properties"]["points"]["items"]["maxLength"]
        return json.dumps({"title": "Ada", "points": [("Ada met Bob. " * 100)[:most]]})

    async def use(client: ModelClient) -> list[str]:
        ask = [client.complete(said("q"), stage="t", json_schema=SCHEMA) for _ in range(2)]
        return [(await each).text for each in ask]

    with ModelServer(faults=lambda request: Fault(text=answer(request))) as server:
        first, again = with_client(server, tmp_path, use)
        assert len(server.requests) == 1
    assert first == again
    (point,) = json.loads(first)["points"]
    assert point.endswith("Ada met Bob.")
    assert len(point) > 380


def test_a_server_that_refuses_a_most_still_answers_by_schema(tmp_path: Path) -> None:
    refused = ["maxLength", "maxItems"]

    def faults(request: Request) -> Any:
        sent = json.dumps(request.schema)
        return next((unsupported(name) for name in refused if name in sent), None)

    async def use(client: ModelClient) -> None:
        for n in range(2):
            await client.complete(said(f"q{n}"), stage="t", json_schema=SCHEMA)

    with ModelServer(lambda _: "{}", faults=faults) as server:
        with_client(server, tmp_path, use)
        kinds = [
            [name for name in refused if name in json.dumps(r.schema)] for r in server.requests
        ]
    assert kinds == [refused, refused[1:], [], []]


def test_a_server_with_strict_mode_is_asked_by_lists_alone(tmp_path: Path) -> None:
    async def use(client: ModelClient) -> str:
        return (await client.complete(said("q"), stage="t", json_schema=SCHEMA)).text

    with StrictServer(lambda _: "{}", models={"hosted": Served(takes_lengths=False)}) as server:
        assert with_client(server, tmp_path, use, model="hosted") == "{}"
        first, second = (json.dumps(request.schema) for request in server.requests)
    assert ("maxLength" in first, "maxLength" in second) == (True, False)
    assert second.count("maxItems") == 1


def test_openai_is_sent_no_lengths_which_its_strict_mode_does_not_know() -> None:
    options = LlmOptions(model="gpt-4.1")
    body = chat_body(ChatRequest(said("q"), "t", json_schema=SCHEMA), options)
    wire = json.dumps(Dialect(options).translate(body))
    assert "maxLength" not in wire
    assert '"maxItems": 10' in wire
