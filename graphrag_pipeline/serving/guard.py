"""What stands before every address: who may come in, and how much they may bring.

Without keys only this machine may ask. A page of somebody else, open in a browser here, is not this
machine: it is told from its Origin, and from a Host whose name it had resolved to this address (DNS
rebinding).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException

from graphrag_pipeline.serving.limits import BODY_BYTES
from graphrag_pipeline.serving.problems import Problem, response_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from graphrag_pipeline.serving.metrics import Metrics

_HEADERS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
]
_TOO_LARGE = f"a request has at most {BODY_BYTES // 1024} KB: send less"


class Guard:
    """Refuses strangers (403) and bodies that are too large (413); counts what is answered."""

    def __init__(self, app: ASGIApp, *, origins: Collection[str], metrics: Metrics) -> None:
        self._app = app
        self._origins = {_origin(address) for address in origins}
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], *_HEADERS]}
            await send(message)

        try:
            if problem := self._refusal(scope):
                await response_of(problem)(scope, receive, send_guarded)
            else:
                await self._app(scope, _bounded(receive), send_guarded)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(route, str(status)).inc()

    def _refusal(self, scope: Scope) -> Problem | None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if not is_loopback(_host_of(headers.get(b"host", ""))):
            return Problem(
                403, "without keys, only this machine may ask: use http://127.0.0.1 or localhost"
            )
        origin = headers.get(b"origin")
        if origin is not None and not self._may_ask(origin):
            return Problem(403, "a page of that origin may not ask: name it in origins of [server]")
        length = headers.get(b"content-length", "0")
        if not length.isdigit() or len(length) > 12 or int(length) > BODY_BYTES:
            return Problem(413, _TOO_LARGE)
        return None

    def _may_ask(self, origin: str) -> bool:
        try:
            return _origin(origin) in self._origins or is_loopback(urlsplit(origin).hostname or "")
        except ValueError:
            return False


def is_loopback(host: str) -> bool:
    """Whether a host, by name or address, is this machine and no other."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host_of(header: str) -> str:
    """Return the name of a Host header, without its port and the brackets of IPv6."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _origin(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    return parts.scheme.lower(), parts.netloc.lower()


def _bounded(receive: Receive) -> Receive:
    """Return what receives a body of no more than ``BODY_BYTES``; else it raises a 413."""
    received = 0

    async def bounded() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > BODY_BYTES:
            # What reads the body passes this one on.
            raise HTTPException(413, _TOO_LARGE)
        return message

    return bounded
