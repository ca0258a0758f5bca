"""Requests to other people's servers: polite, bounded, and to public addresses only.

The address that is connected to is the one that was checked: a name that resolves anew to an
address inside the own network between check and connection (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import ipaddress
import queue
import socket
import threading
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

import httpcore
from protego import Protego

AGENT = "graphrag-pipeline"
_MOST_REDIRECTS = 5
_MOST_ROBOTS_BYTES = 512_000
_MOST_DELAY = 30.0
_MOST_FAILURES = 3
_REDIRECTS = (301, 302, 303, 307, 308)
_PORTS = {"http": 80, "https": 443}
_TRANSLATED = tuple(
    ipaddress.ip_network(network) for network in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16")
)


class FetchError(Exception):
    """An address gave nothing, and what is known of it stays; the message says why."""


@dataclass(frozen=True)
class FetchOptions:
    """Limits on fetching: bytes and seconds of one answer, seconds between two requests.

    ``lookup_seconds`` bounds the resolution of a name, which has no time limit of its own.
    """

    max_bytes: int
    seconds: float = 30.0
    lookup_seconds: float = 10.0
    seconds_between: float = 1.0
    private: bool = False
    other_hosts: bool = False


@dataclass(frozen=True)
class FetchedAnswer:
    """The answer of a server: the status, the headers in lower case, and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass
class _Host:
    """State of one origin: when it may be asked again, its robots.txt, its failures."""

    robots: Protego | None = None
    next_request: float = 0.0
    failures: int = 0
    why_stopped: str = ""


class _PublicOnly(httpcore.NetworkBackend):
    """Connects to addresses that were looked at, and found to be public."""

    def __init__(self, *, private: bool, lookup_seconds: float) -> None:
        self._inner = httpcore.SyncBackend()
        self._private = private
        self._lookup_seconds = lookup_seconds

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        addresses = _addresses(host, port, self._lookup_seconds)
        for address in addresses:
            if not self._private and not is_public(address):
                raise FetchError(
                    f"{host} is at {address}, which is not a public address "
                    "(set input.urls_private to allow it)"
                )
        return self._inner.connect_tcp(addresses[0], port, timeout, local_address, socket_options)


def _addresses(host: str, port: int, seconds: float) -> list[str]:
    """Return the IP addresses of a host.

    The system's resolver cannot be interrupted: one that does not answer is left to a thread that
    ends by itself, or with the process. Raises httpcore's errors of connection and time.
    """
    answers = queue.SimpleQueue[list[Any] | Exception]()

    def look_up() -> None:
        try:
            answers.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            answers.put(error)

    threading.Thread(target=look_up, name=f"look up {host}", daemon=True).start()
    try:
        found = answers.get(timeout=seconds)
    except queue.Empty:
        raise httpcore.ConnectTimeout(f"{host} was not found in {seconds:g} seconds") from None
    if isinstance(found, Exception):
        raise httpcore.ConnectError(f"{host} is not known ({found})")
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public internet, and translates to no other.

    >>> [is_public(a) for a in ("8.8.8.8", "169.254.169.254", "::ffff:127.0.0.1", "10.0.0.1")]
    [True, False, False, False]
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return is_public(str(ip.ipv4_mapped))
        if ip.teredo is not None or any(ip in network for network in _TRANSLATED):
            return False
    return ip.is_global and not ip.is_multicast


def canonical(address: str) -> str:
    """Return an address in the one form in which it is kept: no fragment, all of it ASCII.

    Raises FetchError for what is no http(s) address, or has a password in it.
    """
    try:
        parts = urlsplit(address.strip())
        scheme, host, port = parts.scheme.lower(), (parts.hostname or ""), parts.port
        host = host.encode("idna").decode() if not host.isascii() else host
    except (ValueError, UnicodeError):
        raise FetchError("it is not a web address") from None
    if scheme not in _PORTS or not host or parts.username is not None:
        raise FetchError("it is not a web address, or it holds a user's name")
    where = f"[{host}]" if ":" in host else host
    where += f":{port}" if port not in (None, _PORTS[scheme]) else ""
    path = quote(parts.path or "/", safe="/%:=&?~+,;@()*'$-._")
    query = quote(parts.query, safe="/%:=&?~+,;@()*'$-._")
    return urlunsplit((scheme, where, path, query, ""))


def origin(address: str) -> str:
    """Return scheme, host and port of an address in canonical form."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


@dataclass
class Fetcher:
    """Asks for addresses one after the other. Use as a context manager."""

    options: FetchOptions
    _hosts: dict[str, _Host] = field(default_factory=dict)

    def __enter__(self) -> Fetcher:
        backend = _PublicOnly(
            private=self.options.private, lookup_seconds=self.options.lookup_seconds
        )
        self._pool = httpcore.ConnectionPool(network_backend=backend, max_connections=4)
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def get(self, address: str, conditions: Mapping[str, str] | None = None) -> FetchedAnswer:
        """Return the last answer of an address, redirections followed within its host.

        ``conditions`` are headers such as If-None-Match. Raises FetchError where there is none:
        robots.txt forbids it, the server failed or took too long, the answer is too large, or a
        redirection leads elsewhere.
        """
        current = address
        for _ in range(_MOST_REDIRECTS + 1):
            host = self._host(origin(current))
            if host.robots is not None and not host.robots.can_fetch(current, AGENT):
                raise FetchError("robots.txt forbids it")
            answer = self._ask(host, current, conditions or {}, self.options.max_bytes)
            if answer.status not in _REDIRECTS:
                return answer
            current = self._next(current, answer.headers.get("location", ""))
        raise FetchError(f"more than {_MOST_REDIRECTS} redirections")

    def _next(self, address: str, location: str) -> str:
        following = canonical(urljoin(address, location))
        if origin(following) != origin(address) and not self.options.other_hosts:
            safer = origin(address).replace("http://", "https://", 1)
            if origin(following) != safer:
                raise FetchError(
                    f"it leads to {origin(following)} (set input.urls_other_hosts to follow it)"
                )
        return following

    def _host(self, place: str) -> _Host:
        """Return what is known of an origin; its robots.txt is asked for first."""
        if place not in self._hosts:
            host = self._hosts[place] = _Host()
            try:
                host.robots = self._robots(host, place)
            except FetchError as error:
                host.why_stopped = f"robots.txt could not be read ({error})"
        host = self._hosts[place]
        if host.why_stopped:
            raise FetchError(host.why_stopped)
        return host

    def _robots(self, host: _Host, place: str) -> Protego | None:
        """Return the rules of an origin; None where it has none (RFC 9309)."""
        address = f"{place}/robots.txt"
        for _ in range(_MOST_REDIRECTS + 1):
            answer = self._ask(host, address, {}, _MOST_ROBOTS_BYTES)
            if answer.status in _REDIRECTS:
                address = self._next(address, answer.headers.get("location", ""))
                continue
            if answer.status != 200:
                return None
            return Protego.parse(answer.body.decode("utf-8", "replace"))
        return None

    def _ask(
        self, host: _Host, address: str, conditions: Mapping[str, str], most: int
    ) -> FetchedAnswer:
        delay = self.options.seconds_between
        if host.robots is not None and (asked := host.robots.crawl_delay(AGENT)):
            delay = max(delay, min(float(asked), _MOST_DELAY))
        time.sleep(max(0.0, host.next_request - time.monotonic()))
        try:
            answer = self._request(address, conditions, most)
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
            self._failed(host)
            reason = str(error) or type(error).__name__
            raise FetchError(f"the server did not answer ({reason[:200]})") from None
        finally:
            host.next_request = time.monotonic() + delay
        if answer.status == 429 or answer.status >= 500:
            self._failed(host, at_once=answer.status in (429, 503))
            raise FetchError(f"the server answered {answer.status}")
        host.failures = 0
        return answer

    def _failed(self, host: _Host, *, at_once: bool = False) -> None:
        host.failures += 1
        if at_once or host.failures >= _MOST_FAILURES:
            host.why_stopped = "its server is busy or failing; the next run asks again"

    def _request(self, address: str, conditions: Mapping[str, str], most: int) -> FetchedAnswer:
        deadline = time.monotonic() + self.options.seconds
        limits = dict.fromkeys(("connect", "read", "write", "pool"), self.options.seconds)
        headers = {"User-Agent": AGENT, "Accept-Encoding": "gzip", "Accept": "*/*", **conditions}
        parts = urlsplit(address)
        headers = {"Host": parts.netloc, **headers}
        with self._pool.stream(
            "GET", address, headers=list(headers.items()), extensions={"timeout": limits}
        ) as response:
            told = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in response.headers}
            body = _Body(told.get("content-encoding", ""), most)
            for block in response.iter_stream():
                body.add(block)
                if time.monotonic() > deadline:
                    raise httpcore.ReadTimeout(f"more than {self.options.seconds:g} seconds")
            return FetchedAnswer(response.status, told, body.whole())


class _Body:
    """Collects an answer, unpacked, as long as it is no larger than allowed."""

    def __init__(self, encoding: str, most: int) -> None:
        self._unpack = unpacker() if encoding.strip().lower() in ("gzip", "x-gzip") else None
        if self._unpack is None and encoding.strip().lower() not in ("", "identity"):
            raise FetchError(f"its content encoding {encoding[:40]!r} is not known")
        self._parts: list[bytes] = []
        self._most = self._room = most

    def add(self, block: bytes) -> None:
        if self._unpack is not None:
            try:
                block = self._unpack.decompress(block, self._room + 1)
            except zlib.error as error:
                raise FetchError(f"its gzip encoding is broken ({error})") from None
        self._room -= len(block)
        if self._room < 0:
            raise FetchError(
                f"the answer is larger than input.max_file_mb allows ({self._most / 1e6:g} MB)"
            )
        self._parts.append(block)

    def whole(self) -> bytes:
        return b"".join(self._parts)


def unpacker() -> Any:
    """Return what unpacks gzip, block by block."""
    return zlib.decompressobj(16 + zlib.MAX_WBITS)
