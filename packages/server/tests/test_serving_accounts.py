"""What a key may take of the server, and what the audit tells of it."""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from graphrag_server import audit as audit_module
from graphrag_server.accounts import Accounts, OverLimitError, spent_by
from graphrag_server.audit import Audit, AuditError
from graphrag_server.inquiry import Inquiry
from graphrag_server.keys import Key, Keyring, add_key
from graphrag_server.paths import ServerFiles
from http_server import Served
from model_server import ModelServer, unauthorized
from query_fixture import published, settings_for

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.ledger import Call, put_calls
from graphrag_pipeline.query.trace import Spending

QUESTION = "Who worked as a clerk for Scrooge?"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published(tmp_path_factory.mktemp("counted") / "home")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with ModelServer(lambda _: "Bob Cratchit did. [Data: Sources (0)]") as server:
        yield server


def key_in(home: Path, **limits: Any) -> str:
    return add_key(
        settings_for(home), "anna", collections={"default"}, scopes={"query", "read"}, **limits
    )[1]


def key_with(**limits: Any) -> Key:
    return Key(
        id="0" * 8, name="anna", sha256="0" * 64, collections=frozenset({"default"}),
        scopes=frozenset({"query"}), created=datetime.now(UTC), **limits,
    )  # fmt: skip


def written(home: Path, model: ModelServer) -> Settings:
    return Settings(
        home=str(home),
        query={"answers": "llm"},  # type: ignore[arg-type]
        llm={"base_url": model.base_url, "model": "gpt-4o-mini"},  # type: ignore[arg-type]
    )


def lines_of(home: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ServerFiles(home).audit.read_text().splitlines()]


# Accounts


def test_the_limits_of_a_key_hold_for_all_workers_together(tmp_path: Path) -> None:
    now = 1000.0
    workers = [Accounts(tmp_path / "accounts.sqlite", clock=lambda: now) for _ in range(4)]
    key = key_with(requests_per_minute=30)

    def asks(n: int) -> bool:
        try:
            workers[n % 4].take_request(key)
        except OverLimitError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(asks, range(80))) == 30
    with pytest.raises(OverLimitError) as caught:
        workers[0].take_request(key)
    assert caught.value.retry_after == pytest.approx(2.0)
    now += 4.0
    assert [asks(n) for n in range(3)] == [True, True, False]
    now -= 3600.0
    assert not asks(0)
    assert stat.S_IMODE((tmp_path / "accounts.sqlite").stat().st_mode) == 0o600


def test_tokens_come_back_by_the_minute_and_dollars_never(tmp_path: Path) -> None:
    now = 0.0
    accounts = Accounts(tmp_path / "accounts.sqlite", clock=lambda: now)
    key = key_with(tokens_per_minute=600, budget_usd=1.0)
    first = accounts.reserve(key, 60)
    accounts.settle(
        key, first, Spending(model_calls=1, prompt_tokens=900, completion_tokens=300, cost=0.6)
    )
    with pytest.raises(OverLimitError, match="600 tokens a minute") as caught:
        accounts.reserve(key, 60)
    assert caught.value.retry_after == pytest.approx(60.1)
    now += 61
    second = accounts.reserve(key, 60)
    accounts.settle(key, second, Spending(model_calls=1, cost=0.6))
    now += 3600
    with pytest.raises(OverLimitError, match=r"budget of the key 0{8} \(\$1\.00\) is spent"):
        accounts.reserve(key, 60)
    (account,) = spent_by(tmp_path / "accounts.sqlite").values()
    assert (account.usd, account.prompt_tokens) == (pytest.approx(1.2), 900)


def test_what_a_key_does_not_ask_for_is_not_saved_up(tmp_path: Path) -> None:
    now = [1000.0]
    accounts = Accounts(tmp_path / "accounts.sqlite", clock=lambda: now[0])
    key = key_with(requests_per_minute=3)
    accounts.take_request(key)
    now[0] += 24 * 60 * 60
    for _ in range(3):
        accounts.take_request(key)
    with pytest.raises(OverLimitError):
        accounts.take_request(key)


def test_a_clock_that_is_put_back_takes_nothing_away_and_gives_nothing(tmp_path: Path) -> None:
    now = [10_000.0]
    accounts = Accounts(tmp_path / "accounts.sqlite", clock=lambda: now[0])
    key = key_with(requests_per_minute=3)
    accounts.take_request(key)
    now[0] -= 60 * 60
    for _ in range(2):
        accounts.take_request(key)
    with pytest.raises(OverLimitError):
        accounts.take_request(key)


def test_what_is_under_way_counts_until_it_has_ended(tmp_path: Path) -> None:
    """Whatever is asked at once, a budget is passed by less than one question takes."""
    now = 0.0
    workers = [Accounts(tmp_path / "accounts.sqlite", clock=lambda: now) for _ in range(4)]
    key = key_with(budget_usd=1.0)
    cost = Spending(model_calls=1, prompt_tokens=10, cost=0.3)

    def reserve(n: int) -> str:
        try:
            return workers[n % 4].reserve(key, 60)
        except OverLimitError:
            return ""

    with ThreadPoolExecutor(8) as pool:
        (first,) = filter(None, pool.map(reserve, range(16)))
        workers[3].settle(key, first, cost)
        reserved = [name for name in pool.map(reserve, range(16)) if name]
        assert len(reserved) == 3
        with pytest.raises(OverLimitError, match="may take the rest of its budget") as caught:
            workers[1].reserve(key, 60)
        assert caught.value.retry_after
        assert workers[0].reserve(key, 60, asks_model=False) == ""
        list(pool.map(lambda name: workers[0].settle(key, name, cost), reserved[1:]))
        # One whose worker has died, and that nobody settles, is let go in time.
        assert reserve(0) == ""
        now += 61
        last = reserve(0)
        assert last
        workers[0].settle(key, last, cost)
    (account,) = spent_by(tmp_path / "accounts.sqlite").values()
    assert account.usd == pytest.approx(1.2)


def test_a_budget_needs_prices(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path / "accounts.sqlite")
    key = key_with(budget_usd=1.0)
    accounts.settle(key, "", Spending(model_calls=1, cost=None))
    with pytest.raises(OverLimitError, match=r"price of the model is not known: .*prices_file"):
        accounts.reserve(key, 60)


def test_what_cannot_be_counted_is_not_given(tmp_path: Path) -> None:
    (tmp_path / "accounts.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(StorageError, match="cannot count"):
        Accounts(tmp_path / "accounts.sqlite").take_request(key_with(requests_per_minute=1))


# At the server


def test_who_asks_too_often_is_told_when_to_come_again(home: Path, tmp_path: Path) -> None:
    text = key_in(tmp_path, requests_per_minute=2)
    with Served({"default": home}, Keyring(ServerFiles(tmp_path).keys)) as server:
        for _ in range(2):
            assert server.post("/v1/query", text, question=QUESTION).status_code == 200
        response = server.post("/v1/query", text, question=QUESTION)
        assert response.status_code == 429
        assert 1 <= int(response.headers["retry-after"]) <= 30
        assert "2 times a minute" in response.json()["detail"]
        assert server.get("/health").status_code == 200


def test_a_budget_that_is_spent_is_said(home: Path, tmp_path: Path, model: ModelServer) -> None:
    text = key_in(tmp_path, budget_usd=1e-9)
    with Served({"default": written(home, model)}, Keyring(ServerFiles(tmp_path).keys)) as server:
        answer = server.post("/v1/query", text, question=QUESTION, method="basic").json()
        assert answer["cost"] > 0
        for path in ("query", "query/stream", "retrieve"):
            response = server.post(f"/v1/{path}", text, question=QUESTION)
            assert response.status_code == 429
            assert "is spent" in response.json()["detail"]
            assert response.headers["x-should-retry"] == "false"
            assert "retry-after" not in response.headers
        assert server.get("/v1/documents", headers={"X-API-Key": text}).status_code == 200
    (account,) = spent_by(ServerFiles(tmp_path).accounts).values()
    assert account.usd == pytest.approx(answer["cost"])
    assert account.prompt_tokens == answer["prompt_tokens"]


def test_of_questions_at_once_no_more_are_answered_than_the_budget_holds(
    home: Path, tmp_path: Path, model: ModelServer
) -> None:
    text = key_in(tmp_path, budget_usd=1e-9)
    with Served({"default": written(home, model)}, Keyring(ServerFiles(tmp_path).keys)) as server:

        def asked(n: int) -> Any:
            return server.post("/v1/query", text, question=f"Who is {n}?", method="basic")

        with ThreadPoolExecutor(6) as pool:
            responses = list(pool.map(asked, range(6)))
    assert sorted(response.status_code for response in responses) == [200, *[429] * 5]
    (cost,) = [each.json()["cost"] for each in responses if each.status_code == 200]
    (account,) = spent_by(ServerFiles(tmp_path).accounts).values()
    assert account.usd == pytest.approx(cost)


@pytest.mark.parametrize("path", ["query", "query/stream", "compare"])
def test_every_way_to_ask_is_charged(
    home: Path, tmp_path: Path, model: ModelServer, path: str
) -> None:
    text = key_in(tmp_path, tokens_per_minute=10)
    asked = {"methods": ["basic"]} if path == "compare" else {"method": "basic"}
    with Served({"default": written(home, model)}, Keyring(ServerFiles(tmp_path).keys)) as server:
        # What the cache of paid answers holds takes nothing.
        question = f"{QUESTION} {path}"
        first = server.post(f"/v1/{path}", text, question=question, **asked)
        assert first.status_code == 200
        second = server.post(f"/v1/{path}", text, question=question, **asked)
        assert second.status_code == 429
        assert int(second.headers["retry-after"]) > 1


def test_one_key_leaves_room_for_others(home: Path, tmp_path: Path) -> None:
    text = key_in(tmp_path)
    other = add_key(settings_for(tmp_path), "ben", collections={"*"}, scopes={"query"})[1]
    with Served({"default": home}, Keyring(ServerFiles(tmp_path).keys), waiting=4) as server:
        identity = text.split("_")[1]
        with server.limits.place(identity), server.limits.place(identity):
            response = server.post("/v1/query", text, question=QUESTION)
            assert response.status_code == 429
            assert int(response.headers["retry-after"])
            assert "asks 2 questions already" in response.json()["detail"]
            assert server.post("/v1/query", other, question=QUESTION).status_code == 200
        assert server.post("/v1/query", text, question=QUESTION).status_code == 200


def test_what_comes_after_the_end_is_charged_too(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that nobody waits for any more may still get the answer to its call."""
    text = key_in(tmp_path)
    inquiries: list[Inquiry] = []
    fail = Inquiry.fail
    monkeypatch.setattr(
        Inquiry, "fail", lambda self, error: (inquiries.append(self), fail(self, error))
    )
    with Served({"default": home}, Keyring(ServerFiles(tmp_path).keys)) as server:
        assert server.post("/v1/query", text, question=QUESTION).status_code == 200
        with inquiries[0].spending():
            put_calls(Call("query", "gpt-4o-mini", prompt_tokens=7, cost=0.5))
    (account,) = spent_by(ServerFiles(tmp_path).accounts).values()
    assert (account.usd, account.prompt_tokens) == (0.5, 7)


# The audit


def test_a_line_tells_who_asked_what_and_was_shown_what(
    home: Path, tmp_path: Path, model: ModelServer
) -> None:
    text = key_in(tmp_path)
    with Served({"default": written(home, model)}, Keyring(ServerFiles(tmp_path).keys)) as server:
        answer = server.post("/v1/query", text, question="Who is Bob?", method="basic").json()
        server.post("/v1/query/stream", text, question="Who is Bob?", method="basic")
        server.post("/v1/compare", text, question="Who is Bob?", methods=["bm25"])
        server.post("/v1/query", text, question="Who is Bob?", method="nonsense")
        server.get("/v1/documents/none", headers={"X-API-Key": text})
        entity = server.get("/v1/entities?q=Bob", headers={"X-API-Key": text}).json()["entities"][0]
        server.get(f"/v1/entities/{entity['id']}", headers={"X-API-Key": text})
        model.misbehave(lambda _: unauthorized())
        server.post("/v1/query/stream", text, question="Who is Tim?", method="basic")
    first, begun, streamed, compared, refused, missing, sought, read, begun_too, failed = lines_of(
        tmp_path
    )
    assert first["key"] == text.split("_")[1]
    assert (first["caller"], first["collection"], first["release"]) == ("anna", "default", "r1")
    assert (first["address"], first["method"]) == ("/v1/query", "basic")
    assert first["question_sha256"] == hashlib.sha256(b"Who is Bob?").hexdigest()
    shown = {each["chunk_id"] for each in answer["retrieval"]["citations"]}
    assert set(first["chunks"]) == shown != set()
    assert first["cost"] == answer["cost"]
    assert first["ms"] >= 0
    assert datetime.fromisoformat(first["time"]).tzinfo
    assert (begun["outcome"], streamed["outcome"]) == ("begun", "answered")
    assert streamed["chunks"] == first["chunks"]
    assert compared["chunks"]
    assert refused["outcome"] == "InputError"
    assert (missing["outcome"], missing["item"]) == ("404", {"id": "none"})
    assert (sought["address"], sought["outcome"]) == ("/v1/entities", "read")
    assert (read["address"], read["item"]) == ("/v1/entities/{id}", {"id": entity["id"]})
    assert (begun_too["outcome"], failed["outcome"]) == ("begun", "TerminalModelError")
    written_lines = ServerFiles(tmp_path).audit.read_text()
    assert "Bob?" not in written_lines
    assert text.split("_")[2] not in written_lines
    assert stat.S_IMODE(ServerFiles(tmp_path).audit.stat().st_mode) == 0o600
    assert stat.S_IMODE(ServerFiles(tmp_path).audit.parent.stat().st_mode) == 0o700


def test_the_text_of_a_question_is_there_where_that_is_set(home: Path, tmp_path: Path) -> None:
    text = key_in(tmp_path)
    with Served({"default": home}, Keyring(ServerFiles(tmp_path).keys), audit_text=True) as server:
        server.post("/v1/query", text, question=f"Who is Bob? {text}", method="bm25")
    assert lines_of(tmp_path)[0]["question"] == "Who is Bob? grp_***"


def test_what_cannot_be_recorded_is_not_answered(home: Path, tmp_path: Path) -> None:
    text = key_in(tmp_path)
    ServerFiles(tmp_path).audit.mkdir(parents=True)
    with Served({"default": home}, Keyring(ServerFiles(tmp_path).keys)) as server:
        for path in ("query", "query/stream", "retrieve"):
            response = server.post(f"/v1/{path}", text, question=QUESTION, method="bm25")
            assert response.status_code == 503
            assert "cannot be recorded" in response.json()["detail"]
            assert "Cratchit" not in response.text
            assert str(tmp_path) not in response.text
        assert server.limits.inside == 0
    with Served({"default": home}, Keyring(ServerFiles(tmp_path).keys), audit=False) as server:
        assert server.post("/v1/query", text, question=QUESTION).status_code == 200


def test_a_stream_that_cannot_be_recorded_to_its_end_is_an_error(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = key_in(tmp_path)
    record = Audit.write

    def write(audit: Audit, entry: dict[str, Any], **given: Any) -> None:
        if entry["outcome"] != "begun":
            raise AuditError("the disk is full")
        record(audit, entry, **given)

    monkeypatch.setattr(Audit, "write", write)
    with Served({"default": home}, Keyring(ServerFiles(tmp_path).keys)) as server:
        got = server.post("/v1/query/stream", text, question=QUESTION, method="bm25").text
    assert "event: error" in got
    assert "event: done" not in got
    assert "event: citations" not in got


def test_no_line_stays_longer_than_its_days(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "audit" / "audit.jsonl"
    hours, start = [0.0], datetime(2026, 1, 1, tzinfo=UTC)
    monkeypatch.setattr(audit_module, "_now", lambda: start + timedelta(hours=hours[0]))
    audit = Audit(place, with_text=False, most_mb=1, keep=100, days=10)
    for hour in range(0, 24 * 40, 6):
        hours[0] = hour
        audit.write({"hour": hour})
        files = place.parent.glob("audit*.jsonl")
        lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        assert min(line["hour"] for line in lines) >= hour - 10 * 24
        if hour > 10 * 24:
            assert min(line["hour"] for line in lines) <= hour - 7 * 24


def test_no_line_is_lost_where_files_are_put_aside(tmp_path: Path) -> None:
    place = tmp_path / "audit" / "audit.jsonl"
    audits = [Audit(place, with_text=False, most_mb=0.002, keep=1000) for _ in range(3)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: audits[n % 3].write({"n": n, "x": "é" * 40}), range(300)))
    files = list(place.parent.glob("audit*.jsonl"))
    assert len(files) > 5
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert sorted(line["n"] for line in lines) == list(range(300))
    few = Audit(place, with_text=False, most_mb=0.0001, keep=2)
    for n in range(10):
        few.write({"n": n})
    assert len(list(place.parent.glob("audit-*.jsonl"))) == 2
