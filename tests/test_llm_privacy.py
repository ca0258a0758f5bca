from __future__ import annotations

import copy
import logging
import pickle
import traceback
from dataclasses import asdict
from pathlib import Path

import openai
import pytest
from llm_helpers import KEY, ask, options_for, said, with_client
from model_server import Fault, ModelServer, bad_request, half_body, hang, refusal, too_long

from graphrag_pipeline.llm import LlmOptions, ModelClient, ModelError, calls_since, run_calls
from graphrag_pipeline.llm.transport import Transport

DOCUMENT = "CONFIDENTIAL merger of Acme"
ANSWER = "PRIVATE conclusion about Acme"
ECHO = f"You sent: {DOCUMENT} with key {KEY}"


def echoing(status: int, code: str | None = None) -> Fault:
    return Fault(status=status, error={"message": ECHO, "code": code, "param": ECHO})


FAULTS = {
    **{str(status): echoing(status) for status in (400, 401, 402, 403, 404, 413, 422, 429, 500)},
    "filter": echoing(400, "content_filter"),
    "context": too_long(),
    "bad request": bad_request(ECHO),
    "raw": Fault(raw=ECHO.encode()),
    "error in 200": Fault(raw=f'{{"error": {{"message": "{ECHO}"}}}}'.encode()),
    "half": half_body(),
    "hang": hang(),
    "refusal": refusal(ANSWER),
}


def assert_private(text: str) -> None:
    for secret in (KEY, "CONFIDENTIAL", "PRIVATE", "Bearer"):
        assert secret not in text


@pytest.mark.parametrize("name", FAULTS)
def test_no_key_and_no_document_in_logs_errors_or_ledger(
    tmp_path: Path, caplog, capfd, name: str
) -> None:
    caplog.set_level(logging.DEBUG)
    with (
        ModelServer(faults=lambda request: FAULTS[name]) as server,
        pytest.raises(ModelError) as caught,
    ):
        ask(server, tmp_path, DOCUMENT, max_retries=1, timeout_seconds=0.2)
    assert_private("".join(traceback.format_exception(caught.value)))
    assert_private(repr(caught.value) + repr(vars(caught.value)))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert len(str(caught.value).splitlines()) == 1
    assert_private(caplog.text)
    assert_private("".join(capfd.readouterr()))
    assert_private("".join(error or "" for error in calls_since(tmp_path)["error"]))


def test_an_error_of_the_sdk_does_not_bring_the_servers_words_along() -> None:
    async def ask_sdk(client: openai.AsyncOpenAI) -> object:
        return await client.post("/chat/completions", body={"messages": []}, cast_to=object)

    async def run() -> ModelError:
        transport = Transport(options_for(server))
        try:
            with pytest.raises(ModelError) as caught:
                await transport.call(ask_sdk, "m", 5)
        finally:
            await transport.close()
        return caught.value

    with ModelServer(faults=lambda request: FAULTS["403"]) as server:
        error = run_calls(run)
    assert error.__context__ is None
    assert_private("".join(traceback.format_exception(error)))


def test_a_good_call_leaves_no_content_in_the_logs(tmp_path: Path, caplog) -> None:
    async def use(client: ModelClient) -> None:
        await client.complete(said(DOCUMENT), stage="test")
        async for _ in client.stream(said(DOCUMENT), stage="test"):
            pass
        await client.embed([DOCUMENT], stage="test")
        assert_private(repr(client))

    caplog.set_level(logging.DEBUG)
    with ModelServer(lambda messages: ANSWER) as server:
        with_client(server, tmp_path, use)
    assert_private(caplog.text)


def test_content_is_logged_only_when_asked_for(tmp_path: Path, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    with ModelServer(lambda messages: ANSWER) as server:
        ask(server, tmp_path, DOCUMENT, log_content=True)
    assert DOCUMENT in caplog.text
    assert ANSWER in caplog.text
    assert KEY not in caplog.text


def test_the_key_is_in_no_form_of_the_options() -> None:
    options = LlmOptions("http://user:pass@127.0.0.1:1/v1", KEY)
    shown = [repr(options), str(options), f"{asdict(options)}", repr(copy.deepcopy(options))]
    shown += [str(pickle.dumps(options)), options.endpoint, repr(options.api_key)]
    assert_private("".join(shown))
    assert "pass" not in options.endpoint + repr(options)
    assert LlmOptions(f"http://127.0.0.1:1/v1/?key={KEY}").endpoint == options.endpoint
    assert options.connection()[1] == KEY


def test_options_that_were_pickled_take_the_key_of_the_environment(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-environment")
    with ModelServer() as server:
        options = pickle.loads(pickle.dumps(options_for(server)))
    assert options.connection()[1] == "sk-from-environment"
