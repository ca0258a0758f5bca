"""Nothing of one caller is seen by another, and no key is seen by anybody."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from graphrag_server.app import create_app
from graphrag_server.collections import Collections
from graphrag_server.keys import Keyring, add_key
from graphrag_server.paths import ServerFiles
from http_server import Served, bearer
from query_fixture import published, settings_for

from graphrag_pipeline.core.settings import ServerSettings
from graphrag_pipeline.query.open_engine import Holder

N_CALLERS = 200
PEOPLE = ("Ada", "Ben")


class Requests:
    """Requests to an application in this process, as many at once as one likes."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def send(
        self, path: str, headers: dict[str, str], body: dict[str, Any] | None = None
    ) -> tuple[int, str]:
        """Return status, and headers and body as one text."""
        path, _, query = path.partition("?")
        pairs = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        pairs += [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
            "method": "GET" if body is None else "POST", "path": path, "raw_path": path.encode(),
            "query_string": query.encode(), "root_path": "", "headers": pairs,
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {},
        }  # fmt: skip
        sent: list[Any] = []
        content = b"" if body is None else json.dumps(body).encode()
        waiting = [{"type": "http.request", "body": content, "more_body": False}]

        async def receive() -> Any:
            return waiting.pop() if waiting else await asyncio.Future()

        async def send(message: Any) -> None:
            sent.append(message)
            # Let the others go on between any two messages.
            await asyncio.sleep(0)

        await self._app(scope, receive, send)
        head = " ".join(f"{name}: {value}" for name, value in sent[0]["headers"])
        return sent[0]["status"], head + b"".join(m.get("body", b"") for m in sent[1:]).decode()


def asked_by(k: int, person: str) -> tuple[str, dict[str, Any] | None]:
    """Return what a caller asks, each in one of six ways."""
    word = person.lower()
    question = f"What is the {word}word of caller{k:03}?"
    asked = {"question": question, "method": ["bm25", "basic"][k % 2]}
    chat = {
        "model": f"{word}/bm25",
        "messages": [{"role": "user", "content": question}],
        "stream": bool(k % 2),
    }
    ways: list[tuple[str, dict[str, Any] | None]] = [
        ("/v1/query", {**asked, "parameters": {"top_k": 1}}),
        ("/v1/query/stream", asked),
        ("/v1/retrieve", asked),
        ("/v1/compare", {"question": question, "methods": ["bm25"]}),
        ("/v1/chat/completions", chat),
        ("/v1/documents", None),
    ]
    return ways[k // len(PEOPLE) % len(ways)]


def test_two_hundred_callers_see_nothing_of_each_other(tmp_path: Path) -> None:
    """Each has a key of his own, for one of two collections; each collection has its canaries."""
    for person in PEOPLE:
        texts = {
            f"{person} {k}": f"The {person.lower()}word of caller{k:03} is {person}-{k:03}-canary."
            for k in range(PEOPLE.index(person), N_CALLERS, len(PEOPLE))
        }
        published(tmp_path / person.lower(), documents=texts)
    names = [person.lower() for person in PEOPLE]
    holders = {name: Holder(name, settings_for(tmp_path / name)) for name in names}
    keys = [
        add_key(
            settings_for(tmp_path),
            f"caller {k}",
            collections={names[k % len(names)]},
            scopes={"query", "read"},
            requests_per_minute=2,
        )[1]
        for k in range(N_CALLERS)
    ]
    watching = add_key(settings_for(tmp_path), "prometheus", collections={"*"}, scopes={"metrics"})[
        1
    ]
    app = create_app(
        Collections(holders, names[0]),
        ServerSettings(waiting=N_CALLERS, threads=4),
        Keyring(ServerFiles(tmp_path).keys),
    )
    requests = Requests(app)

    async def ask(k: int) -> None:
        person = PEOPLE[k % len(PEOPLE)]
        path, body = asked_by(k, person)
        status, text = await requests.send(path, bearer(keys[k]), body)
        assert status == 200, text
        assert f"{person}-" in text or f"{person} {k % len(PEOPLE)}" in text
        others = [other for other in PEOPLE if other != person]
        assert [other for other in others if f"{other}-" in text or f"{other} " in text] == []
        questions = {f"caller{n:03}?" for n in range(N_CALLERS)} - {f"caller{k:03}?"}
        assert [question for question in questions if question in text] == []
        foreign = names[(k + 1) % len(names)]
        status, text = await requests.send(f"/v1/documents?collection={foreign}", bearer(keys[k]))
        assert status == 403
        assert "canary" not in text

    async def all_at_once() -> None:
        async with app.router.lifespan_context(app):
            await asyncio.gather(*map(ask, range(N_CALLERS)))
            late = [requests.send("/v1/methods", bearer(key)) for key in keys]
            assert {status for status, _ in await asyncio.gather(*late)} == {429}
            _, numbers = await requests.send("/metrics", bearer(watching))
            assert 'graphrag_question_seconds_count{collection="ada",method="bm25"}' in numbers
            assert not [word for word in ("canary", "caller", "word of") if word in numbers]

    asyncio.run(all_at_once())
    lines = [json.loads(line) for line in ServerFiles(tmp_path).audit.read_text().splitlines()]
    own = Counter((line["key"], line["collection"]) for line in lines)
    identities = [key.split("_")[1] for key in keys]
    assert {key for key, _ in own} == set(identities)
    assert all(names[identities.index(key) % len(names)] == name for key, name in own)


# Keys


def test_no_key_is_in_a_log_an_error_the_audit_the_numbers_or_a_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Keys are shown in every place of a request in which somebody may put them by mistake."""
    home = published(tmp_path / "home")
    place = tmp_path / "keys"
    good = add_key(
        settings_for(place), "anna", collections={"*"}, scopes={"query", "read", "metrics"},
        requests_per_minute=1000,
    )[1]  # fmt: skip
    wrong = f"{good[:-4]}0000" if not good.endswith("0000") else f"{good[:-4]}1111"
    revoked = "grp_00000000_" + "f" * 64
    caplog.set_level(logging.DEBUG)
    texts: list[str] = []
    with Served({"default": home}, Keyring(ServerFiles(place).keys), audit_text=True) as server:
        for key in (good, wrong, revoked):
            for headers in (bearer(key), {"X-API-Key": key}, {**bearer(good), "Origin": key}):
                for asked in (
                    {"question": f"My key is {key}"},
                    {"question": "Who?", "method": key},
                    {"question": "Who?", "method": "bm25", "parameters": {key: key}},
                    {"question": "Who?", "collection": key},
                    {"question": "Who?", "release": key},
                    {"question": "Who?", key: 1},
                    {"model": f"default/{key}", "messages": [{"role": "user", "content": key}]},
                    {"model": "default/bm25", "messages": [{"role": key, "content": "Who?"}]},
                ):
                    for path in ("query", "query/stream", "compare", "chat/completions"):
                        url = f"{server.url}/v1/{path}"
                        got = server.http.post(url, json=asked, headers=headers, timeout=60)
                        if "question" not in asked or key not in asked["question"]:
                            texts.append(f"{got.headers} {got.text}")
                for path in (f"documents/{key}", f"{key}", f"methods?key={key}", f"models/{key}"):
                    got = server.get(f"/v1/{path}", headers=headers)
                    texts.append(f"{got.headers} {got.text}")
        ServerFiles(place).keys.chmod(0o666)
        texts.append(server.get("/v1/methods", headers=bearer(good)).text)
        ServerFiles(place).keys.chmod(0o600)
        texts.append(server.get("/metrics", headers=bearer(good)).text)
    # The client of this test tells its own log which addresses it calls.
    logged = [each.getMessage() for each in caplog.records if not each.name.startswith("urllib3")]
    assert any("chmod 600" in line for line in logged)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    kept = b"".join(path.read_bytes() for path in files)
    assert b"My key is grp_***" in kept
    for key in (good, wrong, revoked):
        secret = key.split("_")[2]
        assert [line for line in logged if secret in line] == []
        assert [text for text in texts if secret in text] == []
        assert secret.encode() not in kept
