"""A real HTTP server on loopback that plays the model: it counts, and misbehaves on request.

It speaks the OpenAI API: ``/v1/chat/completions`` (also streamed), ``/v1/embeddings`` and
``/v1/models``. What the model would say is a function of the messages::

    with ModelServer(lambda messages: "hello", faults=[rate_limited("0.1")]) as server:
        ask(server.base_url)
        assert len(server.requests) == 2
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import hashlib
import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from graphrag_pipeline.llm.pace import _LEARNT
from graphrag_pipeline.llm.schemas import without_mosts

METHOD = ":method"
"""Where the headers have the method of a request."""
_MOST_ALONE = 40

Messages = list[dict[str, Any]]
Responder = Callable[[Messages], str]


@dataclass(frozen=True)
class Request:
    """One request as it arrived. ``attempt`` counts requests with the same body, from 1."""

    number: int
    endpoint: str
    body: dict[str, Any]
    headers: Mapping[str, str]
    content_hash: str
    attempt: int
    arrived: float

    @property
    def messages(self) -> Messages:
        return self.body.get("messages", [])

    @property
    def schema(self) -> dict[str, Any] | None:
        """The schema that the answer is to be by."""
        form = self.body.get("response_format") or {}
        return form.get("json_schema", {}).get("schema")

    @property
    def asked(self) -> dict[str, Any]:
        """The body as it is known by in the cache: without the most that an answer may hold.

        Nor does the cache know whether the answer came in pieces.
        """
        in_pieces = ("stream", "stream_options")
        body = {name: value for name, value in self.body.items() if name not in in_pieces}
        if self.schema is None:
            return body
        form = body["response_format"]
        schema = without_mosts(self.schema)
        by_schema = {**form, "json_schema": {**form["json_schema"], "schema": schema}}
        return {**body, "response_format": by_schema}

    @property
    def text(self) -> str:
        """Everything the model was shown."""
        if self.endpoint == "embeddings":
            return "\n".join(_inputs(self.body))
        return "\n".join(str(message.get("content", "")) for message in self.messages)

    @property
    def is_probe(self) -> bool:
        """Whether it asks the model of vectors whether it is there, as every run does once."""
        return self.endpoint == "embeddings" and self.text == "length"


@dataclass(frozen=True)
class Fault:
    """How a request is answered instead of well."""

    status: int = 200
    error: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    delay: float = 0.0
    drop: str = ""
    """"at once": no answer; "body": half the body, then the connection is gone; "quietly": half a
    stream, ended as if that were all."""
    change: Mapping[str, Any] = field(default_factory=dict)
    """Replaces fields of a chat answer's choice, or ``choices`` itself."""
    text: str | None = None
    chunk_delay: float = 0.0
    no_usage: bool = False
    reply: Callable[[dict[str, Any]], Any] | None = None
    """Makes another body of the right one: what is JSON, or bytes as they are sent."""


def _error(status: int, message: str, code: str | None, **more: Any) -> Fault:
    error = {"message": message, "type": "error", "code": code, "param": more.pop("param", None)}
    return Fault(status=status, error=error, **more)


def rate_limited(retry_after: str | None = None) -> Fault:
    headers = {} if retry_after is None else {"retry-after": retry_after}
    return _error(429, "Rate limit reached", "rate_limit_exceeded", headers=headers)


def quota_exhausted() -> Fault:
    return _error(429, "You exceeded your current quota", "insufficient_quota")


def server_error(status: int = 500) -> Fault:
    return _error(status, "The server had an error", None)


def unauthorized() -> Fault:
    return _error(401, "Incorrect API key provided: sk-tes***", "invalid_api_key")


def unknown_model() -> Fault:
    return _error(404, "The model does not exist", "model_not_found")


def too_long() -> Fault:
    message = "This model's maximum context length is 8192 tokens"
    return _error(400, message, "context_length_exceeded")


def unsupported(parameter: str) -> Fault:
    message = f"Unsupported parameter: '{parameter}' is not supported with this model."
    return _error(400, message, "unsupported_parameter", param=parameter)


def bad_request(message: str = "Invalid request") -> Fault:
    return _error(400, message, None)


def prompt_filtered() -> Fault:
    return _error(400, "The prompt was filtered", "content_filter")


def invalid_json() -> Fault:
    return Fault(raw=b'{"id": "x", "choices": [{"mess')


def hang(seconds: float = 3600.0) -> Fault:
    return Fault(delay=seconds)


def dropped() -> Fault:
    return Fault(drop="at once")


def half_body() -> Fault:
    return Fault(drop="body")


def half_stream() -> Fault:
    return Fault(drop="quietly")


def empty_choices() -> Fault:
    return Fault(change={"choices": []})


def empty_answer() -> Fault:
    return Fault(text="")


def content_filter() -> Fault:
    return Fault(change={"finish_reason": "content_filter"}, text="")


def truncated(text: str) -> Fault:
    return Fault(change={"finish_reason": "length"}, text=text)


def refusal(words: str = "I can't help with that.") -> Fault:
    message = {"role": "assistant", "content": None, "refusal": words}
    return Fault(change={"message": message})


def slow_stream(seconds_per_chunk: float) -> Fault:
    return Fault(chunk_delay=seconds_per_chunk)


def without_usage() -> Fault:
    return Fault(no_usage=True)


Faults = Callable[[Request], Fault | None] | Iterable[Fault | None]


def echo(messages: Messages) -> str:
    """The responder used unless another is given: it names what it was asked by its hash."""
    text = json.dumps(messages, sort_keys=True)
    return f"answer {hashlib.sha256(text.encode()).hexdigest()[:12]}"


class ModelServer:
    """The server, in a thread of this process, from ``with`` to the end of its block.

    ``faults`` is a sequence (one for each request as it comes; None and those after its end are
    answered well) or a function of the request. ``latency`` seconds pass before each answer.
    """

    def __init__(
        self,
        responder: Responder = echo,
        *,
        faults: Faults = (),
        latency: float = 0.0,
        dimensions: int = 64,
        port: int = 0,
    ) -> None:
        self.responder = responder
        self.latency = latency
        self.dimensions = dimensions
        self.requests: list[Request] = []
        self.counts: Counter[str] = Counter()
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.answered = 0
        self.in_flight = 0
        self.max_in_flight = 0
        self.connections = 0
        self.misbehave(faults)
        self._attempts: Counter[str] = Counter()
        self._paid: Counter[str] = Counter()
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="model-server", daemon=True)
        self._socket: socket.socket | None = None
        self._stop: asyncio.Event | None = None

    def __enter__(self) -> Self:
        self._socket = socket.create_server(("127.0.0.1", self._port), backlog=512)
        self._port = self._socket.getsockname()[1]
        # What a process has learnt of an earlier server of this port is not true of this one.
        for key in [key for key in _LEARNT if key[0] == self.base_url]:
            del _LEARNT[key]
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(lambda: self._stop and self._stop.set())
        self._thread.join(timeout=10)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def misbehave(self, faults: Faults) -> None:
        """Answer from now on as these faults say; ``()`` is to behave."""
        self._faults = faults if callable(faults) else _one_by_one(faults)

    def asked(self, endpoint: str = "chat/completions") -> list[Request]:
        """The requests to one endpoint, in the order of their arrival."""
        return [request for request in self.requests if request.endpoint == endpoint]

    def repeated(self) -> dict[str, int]:
        """How often each request that came more than once has come, by content hash."""
        return {key: n for key, n in self._attempts.items() if n > 1}

    def paid_again(self) -> int:
        """How many answers were paid for though the same question had been answered before."""
        return sum(n - 1 for n in self._paid.values())

    def forget(self) -> None:
        """Start counting again from nothing."""
        self.requests.clear()
        self.counts.clear()
        self._attempts.clear()
        self._paid.clear()
        self.prompt_tokens = self.completion_tokens = self.answered = self.max_in_flight = 0

    def _run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connection, sock=self._socket, limit=1 << 24)
        await self._stop.wait()
        server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        start, _, rest = head.decode("latin-1").partition("\r\n")
        method, path = start.split(" ")[:2]
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in rest.split("\r\n") if line)
        }
        headers[METHOD] = method
        content = await reader.readexactly(int(headers.get("content-length", 0)))
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            return await self._answer(path, headers, content, writer)
        finally:
            self.in_flight -= 1

    async def _answer(
        self, path: str, headers: dict[str, str], content: bytes, writer: asyncio.StreamWriter
    ) -> bool:
        endpoint = path.partition("?")[0].removeprefix("/v1/").strip("/")
        if endpoint == "models":
            return await _send(writer, 200, json.dumps({"object": "list", "data": []}).encode())
        if endpoint not in ("chat/completions", "embeddings"):
            return await _send(writer, 404, b'{"error": {"message": "no such path"}}')
        request = self._received(endpoint, headers, content)
        fault = self._faults(request) or self.refuse(request) or Fault()
        fault = replace(fault, headers={**self.headers(request), **fault.headers})
        if fault.delay or self.latency:
            await asyncio.sleep(fault.delay or self.latency)
        if fault.drop == "at once":
            writer.transport.abort()
            return False
        if fault.error is not None:
            body = json.dumps({"error": fault.error}).encode()
            return await _send(writer, fault.status, body, fault.headers)
        if fault.raw is not None:
            return await _send(writer, fault.status, fault.raw, fault.headers)
        if endpoint == "embeddings":
            return await self._respond(writer, request, self._embeddings(request), fault)
        whole = fault.reply is not None or "choices" in fault.change
        if request.body.get("stream") and not whole:
            return await self._stream(writer, request, fault)
        return await self._respond(writer, request, self._completion(request, fault), fault)

    async def pause(self, fault: Fault) -> None:
        """Wait after a piece of a stream, as the fault says."""
        if fault.chunk_delay:
            await asyncio.sleep(fault.chunk_delay)

    def refuse(self, request: Request) -> Fault | None:
        """Return how a request is refused that the server cannot serve; this one takes any."""
        return None

    def tokens_of(self, texts: list[str], model: str) -> int:
        """Return the tokens that texts to be embedded have; this server counts characters."""
        return sum(usage_of(text, "")["prompt_tokens"] for text in texts)

    def headers(self, request: Request) -> Mapping[str, str]:
        """Return what is said in the headers of each answer; this server says nothing."""
        return {}

    def say(self, request: Request, fault: Fault) -> tuple[str, str, dict[str, int]]:
        """Return what the model answers, why it stopped, and the tokens of it."""
        text = self.responder(request.messages) if fault.text is None else fault.text
        return text, "stop", usage_of(request.text, text)

    def _received(self, endpoint: str, headers: dict[str, str], content: bytes) -> Request:
        digest = hashlib.sha256(endpoint.encode() + content).hexdigest()
        self._attempts[digest] += 1
        self.counts[endpoint] += 1
        request = Request(
            len(self.requests) + 1,
            endpoint,
            json.loads(content),
            headers,
            digest,
            self._attempts[digest],
            time.monotonic(),
        )
        self.requests.append(request)
        return request

    async def _respond(
        self,
        writer: asyncio.StreamWriter,
        request: Request,
        answer: dict[str, Any],
        fault: Fault,
    ) -> bool:
        if fault.no_usage:
            del answer["usage"]
        changed = answer if fault.reply is None else fault.reply(answer)
        body = changed if isinstance(changed, bytes) else json.dumps(changed).encode()
        if fault.drop == "body":
            await _send(writer, 200, body[: len(body) // 2], {"content-length": str(len(body))})
            writer.transport.abort()
            return False
        self._bill(request, answer.get("usage"))
        return await _send(writer, 200, body, fault.headers)

    def _bill(self, request: Request, usage: dict[str, int] | None) -> None:
        self.answered += 1
        self._paid[request.content_hash] += 1
        if usage:
            self.prompt_tokens += usage["prompt_tokens"]
            self.completion_tokens += usage.get("completion_tokens", 0)

    def _completion(self, request: Request, fault: Fault) -> dict[str, Any]:
        text, reason, usage = self.say(request, fault)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text, "refusal": None},
            "logprobs": None,
            "finish_reason": reason,
        } | {k: v for k, v in fault.change.items() if k != "choices"}
        return {
            "id": f"chatcmpl-{request.number}",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": request.body["model"],
            "choices": fault.change.get("choices", [choice]),
            "usage": usage,
        }

    async def _stream(self, writer: asyncio.StreamWriter, request: Request, fault: Fault) -> bool:
        text, reason, usage = self.say(request, fault)
        words = re.findall(r"\S+\s*|\s+", text)
        if fault.drop:
            words = words[: len(words) // 2]
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"transfer-encoding: chunked\r\n" + _fields(fault.headers) + b"\r\n"
        )
        if message := fault.change.get("message"):
            _event(writer, {"choices": [{"index": 0, "delta": message}]})
            words = []
        # As servers do that make several tokens in a step; one by one would take most of a test.
        size = 1 if fault.chunk_delay or len(words) < _MOST_ALONE else _MOST_ALONE
        for begin in range(0, len(words), size):
            piece = "".join(words[begin : begin + size])
            _event(writer, {"choices": [{"index": 0, "delta": {"content": piece}}]})
            await writer.drain()
            await self.pause(fault)
        if fault.drop == "quietly":
            writer.write(b"0\r\n\r\n")
            return True
        if fault.drop == "body":
            await asyncio.sleep(0.05)
            writer.transport.abort()
            return False
        reason = fault.change.get("finish_reason", reason)
        _event(writer, {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        has_usage = request.body.get("stream_options", {}).get("include_usage")
        said_usage = usage if has_usage and not fault.no_usage else None
        self._bill(request, said_usage)
        if said_usage:
            _event(writer, {"choices": [], "usage": said_usage})
        _chunk(writer, b"data: [DONE]\n\n")
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    def _embeddings(self, request: Request) -> dict[str, Any]:
        texts = _inputs(request.body)
        width = request.body.get("dimensions") or self.dimensions
        as_text = request.body.get("encoding_format") == "base64"
        vectors = [embedding_of(text, width) for text in texts]
        tokens = self.tokens_of(texts, request.body["model"])
        return {
            "object": "list",
            "model": request.body["model"],
            "data": [
                {
                    "object": "embedding",
                    "index": index,
                    "embedding": base64.b64encode(vector.tobytes()).decode()
                    if as_text
                    else [float(value) for value in vector],
                }
                for index, vector in enumerate(vectors)
            ],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }


def usage_of(prompt: str, answer: str) -> dict[str, int]:
    """The tokens this server says it read and wrote: a quarter of the characters, rounded up."""
    read, written = -(-len(prompt) // 4), -(-len(answer) // 4)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def embedding_of(text: str, dimensions: int) -> np.ndarray:
    """The vector of a text: the sum of its words', so that texts that share words are near."""
    total = np.zeros(dimensions, dtype=np.float32)
    for word in re.findall(r"\w+", text.lower()) or [text]:
        total += _word_vector(word, dimensions)
    return total * np.float32(3.0)


@functools.cache
def _word_vector(word: str, dimensions: int) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(dimensions).astype(np.float32)


def _inputs(body: dict[str, Any]) -> list[str]:
    given = body.get("input", [])
    return [given] if isinstance(given, str) else list(given)


def _one_by_one(faults: Iterable[Fault | None]) -> Callable[[Request], Fault | None]:
    waiting = iter(faults)
    return lambda request: next(waiting, None)


async def _send(
    writer: asyncio.StreamWriter, status: int, body: bytes, headers: Mapping[str, str] | None = None
) -> bool:
    fields = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **(headers or {}),
    }
    writer.write(f"HTTP/1.1 {status} Status\r\n".encode() + _fields(fields) + b"\r\n" + body)
    await writer.drain()
    return True


def _fields(headers: Mapping[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode("latin-1")


def _event(writer: asyncio.StreamWriter, part: dict[str, Any]) -> None:
    event = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    _chunk(writer, b"data: " + json.dumps(event | part).encode() + b"\n\n")


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))
