"""The guard before every address: who may come in, and how much they may bring.

Without keys only this machine may ask. A page of somebody else, open in a browser here, is not this
machine: it is told from its Origin, and from a Host whose name it had resolved to this address (DNS
rebinding). With keys, whoever shows none may call what is in ``OPEN``, and nothing else.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException

from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_server.callers import NOBODY, caller_with, set_caller, unauthorized
from graphrag_server.limits import BODY_BYTES, HEAD_BYTES, HEAD_TOO_LARGE
from graphrag_server.problems import HttpProblem, problem_of, response_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from graphrag_server.accounts import Accounts
    from graphrag_server.keys import Keyring
    from graphrag_server.metrics import Metrics

VIEWS = ("/", "/compare", "/documents", "/state")
"""The addresses of the views of the page."""
LINKED = (
    "/documents/", "/entities/", "/communities/", "/reports/", "/answers/", "/history/"
)  # fmt: skip
"""How the addresses begin by which the page opens one thing; an id follows."""
OPEN = frozenset({*VIEWS, "/explorer", "/health", "/ready", "/openapi.json"})
"""What may be read without a key. Nothing of an index is told there."""
OPEN_BELOW = (*LINKED, "/page/")
"""How addresses begin that are open too: of the page, and of the files it is made of."""
UPLOADS = "/v1/documents"
"""Where documents are sent to, each with a limit of its own."""
_HEADERS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
_POLICY = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
_TOO_LARGE = f"a request has at most {BODY_BYTES // 1024} KB: send less"
_ONCE = (b"authorization", b"x-api-key", b"host", b"origin")
_SLOWEST = 50_000
_TOO_SLOW = "the body did not come in time: send it again, over a faster line"


class Guard:
    """Finds who asks. Refuses strangers (400, 401, 403), those who ask too often
    (429), and heads (431) and bodies that are too large (413) or too slow (408).

    It counts what is answered. ``hosts`` are the names that a request may call this server by;
    this machine's own are always among them. Where there are keys and no hosts, every name is.
    A body is here within ``seconds``, and one more for each 50 KB of it.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        keyring: Keyring,
        accounts: Accounts,
        hosts: Collection[str],
        origins: Collection[str],
        metrics: Metrics,
        seconds: float,
    ) -> None:
        self._app = app
        self._keyring = keyring
        self._accounts = accounts
        self._hosts = {host.lower() for host in hosts}
        self._origins = {_origin(address) for address in origins}
        self._metrics = metrics
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["method"] == "HEAD":
            # Answered as GET is, without the body, which the server leaves out.
            scope = {**scope, "method": "GET"}
        status = 500

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": _with_ours(message["headers"])}
            await send(message)

        try:
            if problem := self._refused(scope):
                await response_of(problem, scope["path"])(scope, receive, send_guarded)
            else:
                most = None if _is_upload(scope) else BODY_BYTES
                bounded = _bounded(receive, most, self._seconds)
                await self._app(scope, bounded, send_guarded)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(route, str(status)).inc()

    def _refused(self, scope: Scope) -> HttpProblem | None:
        """Note who asks; return why he may not, or None."""
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        try:
            _check_head(scope)
            self._check_host(headers.get(b"host", ""))
            is_ours = self._is_ours(scope, headers)
            caller = caller_with(self._keyring, headers, is_ours=is_ours)
            set_caller(scope, caller)
            if caller is NOBODY and not is_open(scope["path"], scope["method"]):
                return unauthorized("this needs a key")
            length = headers.get(b"content-length", "0")
            if not length.isdigit() or len(length) > 12:
                return HttpProblem(413, _TOO_LARGE)
            if int(length) > BODY_BYTES and not _is_upload(scope):
                return HttpProblem(413, _TOO_LARGE)
            self._accounts.take_request(caller.key)
        except HttpProblem as problem:
            return problem
        except GraphRAGError as error:
            return problem_of(error)
        return None

    def _check_host(self, header: str) -> None:
        host = _host_of(header)
        if is_loopback(host):
            return
        if not self._keyring.is_required:
            raise HttpProblem(
                403, "without keys, only this machine may ask: use http://127.0.0.1 or localhost"
            )
        if self._hosts and host not in self._hosts:
            raise HttpProblem(
                403, "the server has no such name: whoever runs it sets hosts in [server]"
            )

    def _is_ours(self, scope: Scope, headers: dict[bytes, str]) -> bool:
        """Whether no page of another origin asks. Raises a 403 Problem for one that may not."""
        origin = headers.get(b"origin")
        if origin is None:
            return headers.get(b"sec-fetch-site", "none") in ("none", "same-origin")
        try:
            scheme, place = _origin(origin)
            is_near = is_loopback(urlsplit(origin).hostname or "")
        except ValueError:
            scheme, place, is_near = "", "", False
        # What stands before it may speak TLS, so that the scheme here need not be the page's.
        if place and place == headers.get(b"host", "").lower():
            return True
        # With keys, a page of this machine is a stranger too, unless it is named.
        if (scheme, place) in self._origins or (is_near and not self._keyring.is_required):
            return False
        raise HttpProblem(403, "a page of that origin may not ask: name it in origins of [server]")


def is_loopback(host: str) -> bool:
    """Whether a host, by name or address, is this machine and no other."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _with_ours(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return headers with those of every answer; a page has a policy of its own."""
    given = list(headers)
    policy = [] if any(name == _POLICY[0] for name, _ in given) else [_POLICY]
    return [*given, *_HEADERS, *policy]


def _check_head(scope: Scope) -> None:
    """Raise a 431 Problem for a head that is too large, a 400 Problem for two headers of a name
    of which each program on the way could take another."""
    n_bytes = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
    if n_bytes + len(scope["path"]) + len(scope["query_string"]) > HEAD_BYTES:
        raise HttpProblem(431, HEAD_TOO_LARGE, headers={"Connection": "close"})
    names = [name for name, _ in scope["headers"]]
    for name in _ONCE:
        if names.count(name) > 1:
            raise HttpProblem(400, f"the header {name.decode().title()} came twice: send it once")


def _host_of(header: str) -> str:
    """Return the name of a Host header, without its port and the brackets of IPv6."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def is_open(path: str, method: str) -> bool:
    """Return whether an address may be called without a key."""
    return method in ("GET", "HEAD") and (path in OPEN or path.startswith(OPEN_BELOW))


def _is_upload(scope: Scope) -> bool:
    """Whether a document is brought, which is read in pieces and has a limit of its own."""
    return scope["path"] == UPLOADS and scope["method"] == "POST"


def _origin(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    return parts.scheme.lower(), parts.netloc.lower()


def _bounded(receive: Receive, most: int | None, seconds: float) -> Receive:
    """Return what receives a body of no more than ``most`` bytes, else it raises a 413; and a 408
    where it does not come in time."""
    received, is_whole = 0, False
    begun = asyncio.get_running_loop().time()

    async def bounded() -> Message:
        nonlocal received, is_whole
        if is_whole:
            return await receive()
        try:
            async with asyncio.timeout_at(begun + seconds + received / _SLOWEST):
                message = await receive()
        except TimeoutError:
            # What reads the body passes these on.
            raise HTTPException(408, _TOO_SLOW, headers={"Connection": "close"}) from None
        received += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if most is not None and received > most:
            raise HTTPException(413, _TOO_LARGE)
        return message

    return bounded
