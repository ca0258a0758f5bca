"""Who may ask the server: keys, scopes, collections, hosts and origins."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import requests
from fastapi.routing import APIRoute
from graphrag_server import callers
from graphrag_server.callers import Needs
from graphrag_server.cli.keys import app as keys_command
from graphrag_server.guard import LINKED, OPEN
from graphrag_server.keys import (
    SCOPES,
    Keyring,
    add_key,
    revoke_key,
    without_keys,
)
from graphrag_server.limits import Limits
from graphrag_server.paths import ServerFiles
from http_server import Served, bearer
from query_fixture import published, settings_for
from typer.testing import CliRunner

from graphrag_pipeline.core.errors import InputError, StorageError
from graphrag_pipeline.core.settings import ServerSettings

QUESTION = "Who worked as a clerk for Scrooge?"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published(tmp_path_factory.mktemp("keyed") / "home")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published(tmp_path_factory.mktemp("keyed") / "other", "r9")


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ring")


@pytest.fixture(scope="module")
def made(ring: Path) -> dict[str, str]:
    """Keys, by the names of whom they are for."""
    return {
        "anna": key_in(ring, "anna"),
        "reader": key_in(ring, "reader", scopes={"read"}),
        "book": key_in(ring, "book", collections={"book"}),
        "all": key_in(ring, "all", collections={"*"}, scopes=set(SCOPES)),
        "prometheus": key_in(ring, "prometheus", scopes={"metrics"}),
    }


@pytest.fixture(scope="module")
def served(home: Path, other: Path, ring: Path, made: dict[str, str]) -> Iterator[Served]:
    assert made
    with Served({"default": home, "book": other}, Keyring(ServerFiles(ring).keys)) as server:
        yield server


def key_in(home: Path, name: str, **allowed: Any) -> str:
    """Make a key, and return it."""
    allowed = {"collections": {"default"}, "scopes": {"query", "read"}, **allowed}
    return add_key(settings_for(home), name, **allowed)[1]


# The file


def test_a_key_is_kept_as_a_hash_in_a_file_of_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        text = key_in(tmp_path, "anna", expires=datetime(2199, 1, 1, tzinfo=UTC))
    finally:
        os.umask(before)
    path = ServerFiles(tmp_path).keys
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    _, identity, secret = text.split("_")
    assert secret not in path.read_text()
    key = Keyring(path).find(text)
    assert key is not None
    assert (key.id, key.name) == (identity, "anna")
    assert secret not in repr(key)
    assert "sha256" not in key.to_dict()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["keys.json", "keys.lock"]


@pytest.mark.parametrize(
    "presented",
    ["", "grp_", "grp_00000000_" + "0" * 64, "x" * 5000, "grp_é", "Bearer", "ID_", "SHORT", "LONG"],
)
def test_what_is_no_key_opens_nothing(tmp_path: Path, presented: str) -> None:
    text = key_in(tmp_path, "anna")
    wrong = {"ID_": text[:13] + "0" * 64, "SHORT": text[:-1], "LONG": text + "0"}
    assert Keyring(ServerFiles(tmp_path).keys).find(wrong.get(presented, presented)) is None
    assert Keyring(ServerFiles(tmp_path).keys).find(text.upper()) is None


def test_a_key_ends_when_it_expires_or_is_revoked_and_a_lost_file_opens_nothing(
    tmp_path: Path,
) -> None:
    now = datetime.now(UTC)
    text = key_in(tmp_path, "anna", expires=now + timedelta(days=1))
    ring = Keyring(ServerFiles(tmp_path).keys, clock=lambda: now)
    assert ring.find(text)
    now += timedelta(days=2)
    assert ring.find(text) is None
    now -= timedelta(days=2)
    assert ring.find(text)
    revoke_key(settings_for(tmp_path), "anna")
    assert ring.find(text) is None
    again = key_in(tmp_path, "anna")
    assert ring.find(again)
    ServerFiles(tmp_path).keys.unlink()
    assert ring.find(again) is None
    assert ring.is_required


def test_a_file_that_is_damaged_or_open_to_others_lets_nobody_in(tmp_path: Path) -> None:
    text = key_in(tmp_path, "anna")
    path = ServerFiles(tmp_path).keys
    path.chmod(0o666)
    with pytest.raises(StorageError, match=r"others may change the keys .* chmod 600"):
        Keyring(path).find(text)
    path.chmod(0o600)
    path.write_text('{"keys": [{"id": "x"}]}')
    with pytest.raises(StorageError, match="damaged"):
        Keyring(path).find(text)


@pytest.mark.parametrize(
    ("name", "allowed", "says"),
    [
        ("a\nb", {}, "name: a name has"),
        ("anna", {"scopes": {"admin"}}, "there is no scope 'admin': use query, read"),
        ("anna", {"scopes": set()}, "scopes"),
        ("anna", {"labels": {"a\x1b[0m"}}, "no label"),
        ("anna", {"expires": datetime(2020, 1, 1, tzinfo=UTC)}, "expired already"),
        ("anna", {"budget_usd": float("nan")}, "budget_usd"),
    ],
)
def test_what_a_key_cannot_have_is_one_line(
    tmp_path: Path, name: str, allowed: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says) as caught:
        key_in(tmp_path, name, **allowed)
    assert "\n" not in str(caught.value)
    assert not ServerFiles(tmp_path).keys.exists()


def test_no_key_is_lost_where_many_are_made_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: key_in(tmp_path, f"caller {n}"), range(24)))
    ring = Keyring(ServerFiles(tmp_path).keys)
    assert all(map(ring.find, made))
    with pytest.raises(InputError, match="there is a key of the name caller 1 already"):
        key_in(tmp_path, "caller 1")


def test_keys_in_a_text_are_made_unreadable(tmp_path: Path) -> None:
    text = key_in(tmp_path, "anna")
    assert without_keys(f"Bearer {text}, {text[:40]}") == "Bearer grp_***, grp_***"


# The command


def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path))
    return CliRunner().invoke(keys_command, arguments)


def test_the_command_makes_lists_and_revokes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = ("--requests-per-minute", "60", "--budget-usd", "2.5")
    who = ("--labels", "hr,public", "--scopes", "query", "--expires", "2199-12-31")
    added = keys(tmp_path, monkeypatch, "add", "anna", *who, *limits)
    text = added.stdout.strip()
    key = Keyring(ServerFiles(tmp_path).keys).find(text)
    assert key is not None
    assert key.labels == {"hr", "public"}
    assert key.expires == datetime(2200, 1, 1, tzinfo=UTC)
    assert "not shown again" in added.stderr
    listed = keys(tmp_path, monkeypatch, "list").stdout
    assert "hr, public" in listed
    assert "2199-12-31" in listed
    assert "60 requests/min, 2.5 USD" in listed
    assert text.split("_")[2] not in listed
    assert key.sha256 not in keys(tmp_path, monkeypatch, "list", "--json").stdout
    assert "is revoked" in keys(tmp_path, monkeypatch, "revoke", key.id).stdout
    assert '"state": "revoked"' in keys(tmp_path, monkeypatch, "list", "--json").stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("add", "anna", "--collections", "handbok"), "no collection handbok: use one of"),
        (("add", "anna", "--expires", "tomorrow"), "--expires tomorrow is not a date"),
        (("revoke", "anna"), "there are no keys"),
    ],
)
def test_what_the_command_cannot_do_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], says: str
) -> None:
    result = keys(tmp_path, monkeypatch, *arguments)
    assert isinstance(result.exception, InputError)
    assert says in str(result.exception)


# At the door


def test_every_address_says_which_scope_it_needs(served: Served) -> None:
    """What is not in ``OPEN`` needs a key in any case; this is what it needs besides."""
    routers = [getattr(each, "original_router", None) for each in served.app.routes]
    routes = [route for router in routers if router for route in router.routes]
    assert len(routes) > 15
    undeclared = {
        route.path
        for route in routes
        if isinstance(route, APIRoute)
        and not any(isinstance(each.call, Needs) for each in route.dependant.dependencies)
    }
    assert undeclared <= {*OPEN, *(f"{kind}{{id}}" for kind in LINKED), "/v1/collections"}


@pytest.mark.parametrize("path", sorted(OPEN))
def test_what_is_open_tells_nothing_of_an_index(served: Served, path: str) -> None:
    response = served.get(path)
    assert response.status_code == 200
    assert not {"r1", "r9", "book"} & set(response.text.replace('"', " ").split())
    assert served.http.post(served.url + path, timeout=60).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer grp_00000000_" + "0" * 64},
        {"Authorization": "Basic YTpi", "X-API-Key": "ANNA"},
        {"X-API-Key": "nonsense"},
    ],
)
@pytest.mark.parametrize("path", ["/v1/methods", "/v1/documents", "/metrics", "/nowhere"])
def test_without_a_key_nothing_else_is_told(
    served: Served, made: dict[str, str], path: str, headers: dict[str, str]
) -> None:
    headers = {name: value.replace("ANNA", made["anna"]) for name, value in headers.items()}
    response = served.get(path, headers=headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer realm=")
    assert response.headers["content-type"] == "application/problem+json"
    assert "Authorization: Bearer grp_" in response.json()["detail"]


def test_a_key_opens_what_it_is_for(served: Served, made: dict[str, str]) -> None:
    assert served.post("/v1/query", made["anna"], question=QUESTION).status_code == 200
    by_header = served.get("/v1/documents", headers={"X-API-Key": made["anna"]})
    assert by_header.status_code == 200
    # The only collection of a key need not be named.
    answer = served.post("/v1/query", made["book"], question=QUESTION, method="bm25").json()
    assert answer["release"] == "r9"
    everything = served.get("/ready", headers=bearer(made["all"])).json()["releases"]
    assert everything == {"default": "r1", "book": "r9"}
    assert served.get("/ready", headers=bearer(made["anna"])).json()["releases"] == {
        "default": "r1"
    }
    assert served.get("/metrics", headers=bearer(made["prometheus"])).status_code == 200


@pytest.mark.parametrize(
    ("key", "path", "body", "says"),
    [
        ("reader", "/v1/query", {}, "is not for the scope query"),
        ("reader", "/v1/query/stream", {}, "is not for the scope query"),
        ("prometheus", "/v1/documents", None, "is not for the scope read"),
        ("anna", "/metrics", None, "is not for the scope metrics"),
        ("anna", "/v1/query", {"collection": "book"}, "not for the collection book"),
        ("anna", "/v1/query", {"collection": "no"}, "not for the collection no"),
        ("anna", "/v1/query/stream", {"collection": "book"}, "not for the collection book"),
        ("anna", "/v1/retrieve", {"collection": "book"}, "not for the collection book"),
        ("anna", "/v1/compare", {"collection": "book"}, "not for the collection book"),
        ("anna", "/v1/documents?collection=book", None, "not for the collection book"),
        ("anna", "/v1/releases?collection=book", None, "not for the collection book"),
        ("anna", "/v1/methods?collection=book", None, "not for the collection book"),
        ("anna", "/ready?collection=book", None, "not for the collection book"),
        ("book", "/v1/documents?collection=default", None, "not for the collection default"),
    ],
)
def test_a_key_opens_nothing_else(
    served: Served,
    made: dict[str, str],
    key: str,
    path: str,
    body: dict[str, Any] | None,
    says: str,
) -> None:
    if body is None:
        response = served.get(path, headers=bearer(made[key]))
    else:
        response = served.post(path, made[key], question=QUESTION, **body)
    assert response.status_code == 403
    assert says in response.json()["detail"]
    assert made[key] not in response.text


def test_each_status_is_a_problem_that_says_what_to_do(home: Path, tmp_path: Path) -> None:
    text = key_in(tmp_path, "anna")
    hasty = key_in(tmp_path, "hasty", requests_per_minute=1)
    with Served({"default": home}, Keyring(ServerFiles(tmp_path).keys), waiting=3) as server:

        def full() -> requests.Response:
            with server.limits.place(), server.limits.place(), server.limits.place():
                return server.post("/v1/query", text, question=QUESTION)

        server.get("/v1/methods", headers=bearer(hasty))
        responses = [
            (401, "send one as Authorization", server.post("/v1/query", question=QUESTION)),
            (403, "keys add --scopes metrics", server.get("/metrics", headers=bearer(text))),
            (404, "/openapi.json lists all", server.get("/v1/nothing", headers=bearer(text))),
            (413, "send less", server.post("/v1/query", text, question="x" * 300_000)),
            (422, "remove it", server.post("/v1/query", text, question=QUESTION, nonsense=1)),
            (429, "come again later", server.get("/v1/methods", headers=bearer(hasty))),
            (503, "ask again in a moment", full()),
        ]
    for status, advice, response in responses:
        problem = response.json()
        assert response.headers["content-type"] == "application/problem+json"
        assert (response.status_code, problem["status"]) == (status, status)
        assert problem["type"] == "about:blank"
        assert problem["title"] == HTTPStatus(status).phrase
        assert advice in problem["detail"]
        assert ("retry-after" in response.headers) == (status in (429, 503))


def test_a_key_that_is_revoked_is_refused_with_the_next_request(home: Path, tmp_path: Path) -> None:
    with Served({"default": home}, Keyring(ServerFiles(tmp_path).keys)) as server:
        assert server.get("/v1/methods").status_code == 200
        text = key_in(tmp_path, "anna")
        assert server.get("/v1/methods").status_code == 401
        assert server.get("/v1/methods", headers=bearer(text)).status_code == 200
        revoke_key(settings_for(tmp_path), "anna")
        assert server.get("/v1/methods", headers=bearer(text)).status_code == 401
        ServerFiles(tmp_path).keys.write_text("{")
        broken = server.get("/v1/methods", headers=bearer(text))
        assert broken.status_code == 503
        assert str(tmp_path) not in broken.text


# Hosts and origins


def test_with_keys_other_names_and_named_pages_may_ask(home: Path, tmp_path: Path) -> None:
    text = key_in(tmp_path, "anna")
    ring = Keyring(ServerFiles(tmp_path).keys)
    named = {"hosts": ("graph.example",), "origins": ("https://wiki.example",)}
    with Served({"default": home}, ring, **named) as server:

        def asked(host: str, origin: str = "") -> int:
            headers = {**bearer(text), "Host": host, **({"Origin": origin} if origin else {})}
            return server.get("/v1/methods", headers=headers).status_code

        assert asked("graph.example:8000") == 200
        assert asked("localhost") == 200
        assert asked("evil.example") == 403
        assert asked("graph.example", "https://graph.example") == 200
        assert asked("graph.example", "https://wiki.example") == 200
        assert asked("graph.example", "http://wiki.example") == 403
        assert asked("graph.example", "http://localhost:3000") == 403
        assert asked("graph.example", "null") == 403
        assert asked("graph.example", "http://[") == 403

        before = {
            "Origin": "https://wiki.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type",
        }
        first = requests.options(f"{server.url}/v1/query", headers=before, timeout=60)
        assert first.status_code == 200
        assert first.headers["access-control-allow-origin"] == "https://wiki.example"
        assert "authorization" in first.headers["access-control-allow-headers"]
        refused = server.get("/v1/methods", headers={"Origin": "https://wiki.example"})
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == "https://wiki.example"
        before["Origin"] = "https://evil.example"
        stranger = requests.options(f"{server.url}/v1/query", headers=before, timeout=60)
        assert "access-control-allow-origin" not in stranger.headers


def test_names_of_the_server_count_only_where_there_are_keys(home: Path, tmp_path: Path) -> None:
    with Served(
        {"default": home}, Keyring(ServerFiles(tmp_path).keys), hosts=("graph.example",)
    ) as server:
        headers = {"Host": "graph.example"}
        assert server.get("/v1/methods", headers=headers).status_code == 403
        text = key_in(tmp_path, "anna")
        assert server.get("/v1/methods", headers={**headers, **bearer(text)}).status_code == 200


def test_every_page_may_never_ask() -> None:
    with pytest.raises(Exception, match="must begin with http"):
        ServerSettings(origins=("*",))


@pytest.mark.parametrize(
    ("headers", "caller"),
    [
        ({}, callers.LOCAL),
        ({"Origin": "OWN"}, callers.LOCAL),
        ({"Sec-Fetch-Site": "same-origin"}, callers.LOCAL),
        ({"Sec-Fetch-Site": "cross-site"}, callers.LOCAL_PAGE),
        ({"Origin": "http://localhost:1"}, callers.LOCAL_PAGE),
    ],
)
def test_without_keys_a_page_of_another_origin_changes_nothing(
    home: Path, headers: dict[str, str], caller: callers.Caller
) -> None:
    with Served({"default": home}) as server:
        seen: list[callers.Caller] = []

        @server.app.post("/try", dependencies=[callers.needs("write")])
        async def route(request: callers.Request) -> None:
            seen.append(callers.caller_of(request))

        own = server.url
        headers = {name: value.replace("OWN", own) for name, value in headers.items()}
        response = server.http.post(f"{own}/try", headers=headers, timeout=60)
        if caller is callers.LOCAL:
            assert seen == [caller]
        else:
            assert response.status_code == 403
            assert "a page of another origin may not upload" in response.json()["detail"]


def test_who_has_no_key_cannot_make_it_look_more_than_once_at_a_time() -> None:
    limits = Limits(ServerSettings())
    looked: list[int] = []
    go_on = threading.Event()

    def look() -> int:
        looked.append(1)
        assert go_on.wait(60)
        return len(looked)

    async def all_at_once() -> list[int]:
        asking = [asyncio.create_task(limits.look("default", look)) for _ in range(100)]
        await asyncio.sleep(0)
        asking[0].cancel()
        go_on.set()
        answers = await asyncio.gather(*asking[1:])
        return [*answers, await limits.look("default", look)]

    assert asyncio.run(all_at_once()) == [*[1] * 99, 2]
    limits.close()
