"""Answers as HTTP/1.1 allows them, over connections that are kept open."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import shutil
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2
import pytest
from llm_helpers import ask, ask_many
from model_server import Fault, ModelServer

from graphrag_pipeline.llm.connections import Connections

BODY = b'{"a": 1}'
ZIPPED = gzip.compress(BODY)
ANSWERS = {
    "plain": b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n" + BODY,
    "chunked": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    b'3\r\n{"a\r\n5;x=y\r\n": 1}\r\n0\r\nlater: x\r\n\r\n',
    "until it closes": b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + BODY,
    "compressed": b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
    % len(ZIPPED)
    + ZIPPED,
    "after a word of patience": b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\n"
    b"content-length: 8\r\n\r\n" + BODY,
    "an older protocol": b"HTTP/1.0 200 OK\r\ncontent-length: 8\r\n\r\n" + BODY,
}
KEPT_OPEN = ("plain", "chunked", "compressed", "after a word of patience")
BROKEN = {
    "half a body": b"HTTP/1.1 200 OK\r\ncontent-length: 80\r\n\r\n" + BODY,
    "half a chunk": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n8\r\n{",
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "nothing": b"",
}
Send = Callable[[], Awaitable[httpx2.Response]]


async def answered(
    answer: bytes, use: Callable[[Send], Awaitable[int]], context: ssl.SSLContext | None = None
) -> tuple[int, int]:
    """Use a server that says the same each time; return what came of it, and its connections."""
    opened = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(2)
                writer.write(answer)
                await writer.drain()
                if answer not in [ANSWERS[name] for name in KEPT_OPEN]:
                    break
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    connections = Connections(trusting, expiry=20.0)
    url = httpx2.URL(f"{'https' if context else 'http'}://127.0.0.1:{port}/v1/x?y=1")
    try:
        result = await use(lambda: connections.send(httpx2.Request("POST", url, content=b"{}")))
    finally:
        await connections.close()
        server.close()
    return result, opened


async def thrice(send: Send) -> int:
    answers = [await send() for _ in range(3)]
    assert [answer.json() for answer in answers] == [{"a": 1}] * 3
    return len(answers)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_read_whole_however_it_is_sent(name: str) -> None:
    _, opened = asyncio.run(answered(ANSWERS[name], thrice))
    assert opened == (1 if name in KEPT_OPEN else 3)


@pytest.mark.parametrize("name", BROKEN)
def test_an_answer_that_breaks_off_is_an_error(name: str) -> None:
    async def use(send: Send) -> int:
        for _ in range(2):
            with pytest.raises((httpx2.HTTPError, OSError)):
                await send()
        return 2

    assert asyncio.run(answered(BROKEN[name], use)) == (2, 2)


def test_a_connection_that_the_server_closes_as_it_is_used_again_costs_no_call() -> None:
    """As llama.cpp's server does after a long answer: what is sent next meets a closed door."""
    met: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        me = len(met)
        met.append(0)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(2)
                met[me] += 1
                if met[me] == 2:
                    break
                writer.write(ANSWERS["plain"])
                await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = httpx2.URL(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        connections = Connections(ssl.create_default_context(), expiry=20.0)
        await thrice(lambda: connections.send(httpx2.Request("POST", url, content=b"{}")))
        await connections.close()
        server.close()

    asyncio.run(run())
    assert met == [2, 2, 1]


def test_a_call_that_is_given_up_leaves_no_connection_behind() -> None:
    async def use(send: Send) -> int:
        for _ in range(2):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await send()
        return 2

    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 80\r\n\r\n"

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        with contextlib.suppress(ConnectionError):
            await reader.read()

    async def run() -> int:
        server = await asyncio.start_server(hang, "127.0.0.1", 0)
        url = httpx2.URL(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        connections = Connections(ssl.create_default_context(), expiry=20.0)
        made = await use(lambda: connections.send(httpx2.Request("POST", url, content=b"{}")))
        await connections.close()
        server.close()
        return made

    assert asyncio.run(run()) == 2


@pytest.fixture
def encrypted(tmp_path: Path) -> ssl.SSLContext:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


def test_a_connection_can_be_encrypted(encrypted: ssl.SSLContext) -> None:
    assert asyncio.run(answered(ANSWERS["plain"], thrice, encrypted)) == (3, 1)


def test_a_redirect_is_followed(tmp_path: Path) -> None:
    with ModelServer() as real:
        to = f"{real.base_url}/chat/completions"
        with ModelServer(faults=lambda _: Fault(308, {}, {"location": to})) as server:
            assert ask(server, tmp_path).text
        assert len(real.requests) == 1


def test_a_proxy_of_the_environment_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer() as proxy, ModelServer() as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.base_url.removesuffix("/v1"))
        monkeypatch.setenv("NO_PROXY", "")
        ask_many(server, tmp_path, ["one", "two"])
        assert server.connections == 0
        assert proxy.connections > 0
