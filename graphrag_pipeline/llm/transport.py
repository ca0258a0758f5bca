"""HTTP through OpenAI's own client, one request at a time: JSON back, or one of our errors."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import functools
import importlib
import json
import logging
import re
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_pipeline.core.environment import KEYS, NO_KEY
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.llm.connections import Connections, goes_through_proxy
from graphrag_pipeline.llm.errors import ModelError, TerminalModelError, TransientModelError
from graphrag_pipeline.llm.options import LlmOptions
from graphrag_pipeline.llm.requests import RefusedParameterError, parameters_named
from graphrag_pipeline.llm.server_words import words_of
from graphrag_pipeline.llm.windows import window_error

if TYPE_CHECKING:
    import httpx2
    import openai

T = TypeVar("T")
_KEPT_OPEN = 20.0
_GRANT_EVERY = 1.0
_TALKATIVE = ("openai", "httpx2", "httpcore2")
_TRANSIENT_STATUS = {408, 409, 425, 429}
_QUOTA = pattern_of(r"insufficient_quota|billing|credit", re.IGNORECASE)
_LARGER_THAN_RATE = pattern_of(r"request too large", re.IGNORECASE)
_TOO_LONG = pattern_of(
    r"context.?length|context.?window|context size|maximum context|too many tokens"
    r"|(prompt|input) is too long|maximum input length|reduce the length|exceeds? the .*context"
    r"|too large to process",
    re.IGNORECASE,
)
_STARTED_OTHERWISE = pattern_of(r"start (it|the server) with(out)? `?--", re.IGNORECASE)
_FILTERED = pattern_of(r"content.?(filter|policy|management)|safety", re.IGNORECASE)
_NO_MODEL = pattern_of(r"model.{0,80}(not found|does not exist|not exist|unknown)", re.I | re.S)


class Transport:
    """One pooled ``openai.AsyncOpenAI`` without its retries, for one event loop.

    Its answers are read as plain JSON: building the SDK's own objects costs more CPU than all the
    rest of a call, and a body cut in half must be told from an answer. The SDK says once what a
    request to a path is like, its address and headers; they then go over
    :class:`~graphrag_pipeline.llm.connections.Connections`, or through the SDK's HTTP client where
    there is a proxy.
    """

    def __init__(self, options: LlmOptions) -> None:
        self._options = options
        self._endpoint = options.endpoint
        self._timeout = options.timeout_seconds
        self._client: openai.AsyncOpenAI | None = None
        self._requests: dict[str, httpx2.Request] = {}
        self._unheard: dict[asyncio.Timeout, float] = {}
        self._granted = 0.0

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.close()
            await self._connections.close()

    async def ready(self) -> openai.AsyncOpenAI:
        """Return the SDK's client, imported and made when first needed: a cached run needs none.

        Raises ConfigError if there is no key.
        """
        if self._client is None:
            await asyncio.to_thread(importlib.import_module, "openai")
        return self._client or self._open()

    def _open(self) -> openai.AsyncOpenAI:
        import httpx2
        import openai

        options = self._options
        if not options.log_content:
            for name in _TALKATIVE:
                _quieten(logging.getLogger(name))
        base_url, key = options.connection()
        self._raw, self._request = httpx2.Response, httpx2.Request
        self._stream_class = openai.AsyncStream[object]
        self._status_error = openai.APIStatusError
        self._not_connected = httpx2.ConnectError
        lost = (openai.APIError, httpx2.HTTPError, httpx2.StreamError, OSError)
        self._caught = (openai.APIStatusError, ValueError, TimeoutError, *lost)
        limits = httpx2.Limits(
            max_connections=None,
            max_keepalive_connections=options.concurrency + 4,
            keepalive_expiry=_KEPT_OPEN,
        )
        http = openai.DefaultAsyncHttpxClient(limits=limits, timeout=None, verify=_certificates())
        self._connections = Connections(_certificates(), _KEPT_OPEN)
        self._through_proxy = goes_through_proxy()
        self._send_whole = http.send if self._through_proxy else self._connections.send
        self._client = openai.AsyncOpenAI(
            api_key=key, base_url=base_url, max_retries=0, timeout=None, http_client=http
        )
        return self._client

    async def post(self, path: str, content: bytes, model: str) -> Mapping[str, Any]:
        """Return the JSON object that answers a request. Raises a ModelError."""
        client = await self.ready()
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._send(client, path, content)
            answer = json.loads(response.content)
        except self._caught as caught:
            failure = self._failure(caught, model, content)
        else:
            if isinstance(answer, dict) and not isinstance(answer.get("error"), dict):
                return answer
            failure = self._error_inside(answer, model, content)
        # Not within the handler: what the server said would come along as the error's context.
        raise failure

    async def call(
        self, ask: Callable[[openai.AsyncOpenAI], Awaitable[T]], model: str, seconds: float
    ) -> T:
        """Return what the SDK's client answers in time. Raises a ModelError."""
        client = await self.ready()
        try:
            async with asyncio.timeout(seconds):
                return await ask(client)
        except self._caught as caught:
            failure = self._failure(caught, model, b"")
        # As in :meth:`post`; a context manager would bring the SDK's error along all the same.
        raise failure

    def _failure(
        self, caught: Exception, model: str, sent: bytes, limit: float | None = None
    ) -> ModelError:
        if isinstance(caught, self._status_error):
            return self._refusal(caught, model, sent)
        if isinstance(caught, ValueError):
            return self._not_json()
        if isinstance(caught, TimeoutError):
            return self._timed_out(limit or self._timeout)
        return self._connection_lost(caught)

    def explain(self, status: int, error: Mapping[str, Any], model: str) -> ModelError:
        """Return the error of an answer with a status, by what the server says of it."""
        return self._explain(status, error, {}, model, b"")

    async def _send(self, client: openai.AsyncOpenAI, path: str, content: bytes) -> httpx2.Response:
        """Return the answer to a request; raises the SDK's error of a status that is none."""
        response = await self._send_whole(await self._like(client, path, content))
        if response.is_success:
            return response
        if response.has_redirect_location:
            return await client.post(path, content=content, cast_to=self._raw)
        raise self._error_of(response)

    def _error_of(self, response: httpx2.Response) -> Exception:
        try:
            body = response.json()
        except ValueError:
            body = None
        body = body.get("error", body) if isinstance(body, dict) else body
        return self._status_error(str(response.status_code), response=response, body=body)

    async def _like(self, client: openai.AsyncOpenAI, path: str, content: bytes) -> httpx2.Request:
        """Return a request with this content, like the SDK's own to the same path."""
        if path not in self._requests:
            self._requests[path] = await self._request_to(client, path)
        like = self._requests[path]
        fields = [field for field in like.headers.raw if field[0].lower() != b"content-length"]
        return self._request("POST", like.url, headers=fields, content=content)

    async def _request_to(self, client: openai.AsyncOpenAI, path: str) -> httpx2.Request:
        """Return a request as the SDK makes it, without sending it."""
        import httpx2

        requests: list[httpx2.Request] = []

        def answer(request: httpx2.Request) -> httpx2.Response:
            requests.append(request)
            return httpx2.Response(200, json={})

        async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
            await client.with_options(http_client=http).post(path, content=b"{}", cast_to=self._raw)
        return requests[0]

    async def stream(
        self, path: str, content: bytes, model: str, *, reading: float = 0.0
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the JSON objects of a streamed answer. Raises a ModelError.

        The time limit is on the wait for each piece; for the first it is longer by ``reading``
        seconds, and as long as the server sends something to other calls: a small one answers them
        one after another. A server that does not stream gives its whole answer in one piece.
        """
        client = await self.ready()
        limit, is_first = self._timeout + reading, True
        failure: ModelError | None = None
        try:
            async with contextlib.aclosing(self._events(client, path, content)) as events:
                while (event := await self._next(events, limit, is_first)) is not None:
                    limit, is_first = self._timeout, False
                    if not isinstance(event, dict) or isinstance(event.get("error"), dict):
                        failure = self._error_inside(event, model, content)
                        break
                    if event:
                        yield event
        except self._caught as caught:
            failure = self._failure(caught, model, content, limit)
        if failure is not None:
            raise failure

    async def _events(
        self, client: openai.AsyncOpenAI, path: str, content: bytes
    ) -> AsyncGenerator[object, None]:
        if not self._through_proxy:
            request = await self._like(client, path, content)
            async with self._connections.stream(request) as (head, body):
                if not head.has_redirect_location:
                    async for event in self._read_stream(head, body):
                        yield event
                    return
        events = await client.post(
            path, content=content, cast_to=object, stream=True, stream_cls=self._stream_class
        )
        try:
            async for event in events:
                yield event
        finally:
            await events.close()

    async def _read_stream(
        self, head: httpx2.Response, body: AsyncIterator[bytes]
    ) -> AsyncGenerator[object, None]:
        is_stream = "text/event-stream" in head.headers.get("content-type", "")
        if head.is_success and is_stream:
            async for event in events_in(body):
                yield event
            return
        whole = b"".join([piece async for piece in body])
        if not head.is_success:
            raise self._error_of(
                self._raw(
                    head.status_code, headers=head.headers, content=whole, request=head.request
                )
            )
        yield json.loads(whole)

    async def _next(
        self, events: AsyncGenerator[object, None], limit: float, is_first: bool
    ) -> object | None:
        """Return the next piece, or None after the last; only this wait is timed."""
        async with asyncio.timeout(limit) as deadline:
            if is_first:
                self._unheard[deadline] = limit
            try:
                event = await anext(events, None)
            finally:
                self._unheard.pop(deadline, None)
        self._grant_patience()
        return event

    def _grant_patience(self) -> None:
        """Let those that have got nothing wait on: the server is at work."""
        now = asyncio.get_running_loop().time()
        if now - self._granted >= _GRANT_EVERY:
            self._granted = now
            for deadline, limit in self._unheard.items():
                deadline.reschedule(now + limit)

    def _refusal(self, caught: Any, model: str, sent: bytes) -> ModelError:
        body = caught.body if isinstance(caught.body, Mapping) else {}
        headers = caught.response.headers
        return self._explain(caught.status_code, body, headers, model, sent)

    def _error_inside(self, answer: Any, model: str, sent: bytes) -> ModelError:
        """Explain an error that came with status 200, as gateways send it."""
        body = answer.get("error") if isinstance(answer, dict) else None
        if not isinstance(body, Mapping):
            return self._not_json()
        code = body.get("code")
        return self._explain(code if isinstance(code, int) else 500, body, {}, model, sent)

    def _explain(
        self,
        status: int,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        model: str,
        sent: bytes,
    ) -> ModelError:
        said = " ".join(str(body.get(name) or "") for name in ("code", "type", "param", "message"))
        where = f"{self._endpoint} ({status})"
        # The text of a rate limit advises to add a payment method, under "billing".
        is_rate = body.get("code") == "rate_limit_exceeded"
        if status == 429 and is_rate and _LARGER_THAN_RATE.search(said):
            return TerminalModelError(
                f"the prompt is larger than the tokens a minute of {model} at {where}: lower the "
                "tokens of its context",
                "context_length",
            )
        if status == 402 or (status == 429 and not is_rate and _QUOTA.search(said)):
            return TerminalModelError(
                f"the account at {where} has no credit left: add some and run again", "quota"
            )
        if status in (401, 403):
            section, name = self._options.section, self._options.api_key_env
            keys = name if name not in ("", NO_KEY) else " or ".join(KEYS)
            cure = f"set {section}.api_key_env" if name == NO_KEY else f"check {keys}"
            return TerminalModelError(
                f"the key was refused by {where}: {cure}, and {section}.base_url", "auth"
            )
        if status == 501 or _STARTED_OTHERWISE.search(said):
            is_parameter = parameters_named(said)
            words = self._words(body, sent)
            return _refused(where, said, words) if is_parameter else self._unable(where, body, sent)
        if status == 500 and _TOO_LONG.search(said):
            return window_error(model, self._options.section, body, sent)
        if status in _TRANSIENT_STATUS or status >= 500:
            return self._busy(status, headers)
        if _FILTERED.search(f"{body.get('code')} {body.get('type')}"):
            return TerminalModelError(f"the prompt was refused by the filter of {where}", "filter")
        if status == 413 or _TOO_LONG.search(said):
            return window_error(model, self._options.section, body, sent)
        if status == 404 or _NO_MODEL.search(said):
            return TerminalModelError(
                f"model {model} is not known at {where}: check model and base_url", "model"
            )
        return _refused(where, said, self._words(body, sent))

    def _words(self, body: Mapping[str, Any], sent: bytes) -> str:
        return words_of(body, sent, self._options.connection()[1])

    def _unable(self, where: str, body: Mapping[str, Any], sent: bytes) -> TerminalModelError:
        words = self._words(body, sent)
        says = f", and says: {words}" if words else ""
        return TerminalModelError(
            f"{where} cannot do what it was asked{says}; a server that does one thing needs "
            "another beside it: see [models.NAME]",
            "unsupported",
        )

    def _busy(self, status: int, headers: Mapping[str, str]) -> TransientModelError:
        if status == 429:
            return TransientModelError(
                f"{self._endpoint} limits the rate of calls (429): lower requests_per_minute, "
                "tokens_per_minute or concurrency",
                "rate_limit",
                retry_after=_retry_after(headers),
            )
        return TransientModelError(
            f"{self._endpoint} cannot answer now ({status}): run again later",
            "server",
            retry_after=_retry_after(headers),
        )

    def _timed_out(self, seconds: float) -> TransientModelError:
        return TransientModelError(
            f"no answer from {self._endpoint} in {round(seconds, 1):g} s: raise timeout_seconds",
            "timeout",
        )

    def _connection_lost(self, caught: BaseException) -> TransientModelError:
        refused = isinstance(caught.__cause__ or caught, self._not_connected)
        return TransientModelError(
            f"no connection to {self._endpoint}, or it was lost: check base_url and that the "
            "server runs",
            "unreachable" if refused else "connection",
        )

    def _not_json(self) -> TransientModelError:
        return TransientModelError(
            f"{self._endpoint} sent what is no answer of the OpenAI API: check base_url", "body"
        )


async def events_in(body: AsyncIterator[bytes]) -> AsyncGenerator[object, None]:
    """Yield the JSON values of server-sent events; a comment, which says "still here", is ``{}``.

    Raises ValueError for what is no JSON.
    """
    waiting, data = b"", list[bytes]()
    async for piece in body:
        *lines, waiting = (waiting + piece).split(b"\n")
        for line in map(bytes.rstrip, lines):
            if line.startswith(b"data:"):
                data.append(line[5:].lstrip())
            elif line.startswith(b":"):
                yield {}
            elif not line and data:
                if data == [b"[DONE]"]:
                    return
                yield json.loads(b"\n".join(data))
                data.clear()
    if data and data != [b"[DONE]"]:
        yield json.loads(b"\n".join(data))


def _refused(where: str, said: str, words: str) -> TerminalModelError:
    named = parameters_named(said)
    about = f" for its {', '.join(sorted(named))}" if named else ""
    error = RefusedParameterError(
        f"the request was refused by {where}{about}: check the model's parameters"
        f"{f'; it says: {words}' if words else ''}",
        "request",
    )
    error.named = named
    return error


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds a server asks to wait (milliseconds, seconds or an HTTP date)."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        value = headers.get("retry-after")
        if not value:
            return None
        try:
            return max(0.0, float(value))
        except ValueError:
            return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Return whom to trust; to read that again for every client costs as much as forty calls."""
    import httpx2

    return httpx2.create_ssl_context()


def _quieten(logger: logging.Logger) -> None:
    """Keep what these libraries say of each request, also at DEBUG, out of every log."""
    if logger.getEffectiveLevel() < logging.WARNING:
        logger.setLevel(logging.WARNING)
