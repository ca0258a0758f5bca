"""Callers: identified once, where a request comes in, and known to every address from then on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from fastapi import Depends, Request

from graphrag_server.keys import EVERYTHING, SCOPES, Key
from graphrag_server.problems import HttpProblem

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection
    from starlette.types import Scope

    from graphrag_server.keys import Keyring

_STATE = "caller"


@dataclass(frozen=True)
class Caller:
    """Somebody who asks, and what he may.

    ``labels`` None: all documents, whatever their labels. ``collections`` None: all of them.
    ``key_id`` is empty where no key is needed. ``key`` has the limits of his key.
    """

    name: str
    labels: frozenset[str] | None
    scopes: frozenset[str]
    collections: frozenset[str] | None
    key_id: str = ""
    key: Key | None = None

    def check_scope(self, scope: str) -> None:
        """Raise a Problem where he may not do what a scope is for: 401 for nobody, else 403."""
        if scope in self.scopes:
            return
        if self is NOBODY:
            raise unauthorized("this needs a key")
        if not self.key_id:
            raise HttpProblem(403, f"a page of another origin may not {SCOPES[scope]}")
        raise HttpProblem(
            403,
            f"the key {self.key_id} is not for the scope {scope} ({SCOPES[scope]}): use one that "
            f"graphrag-pipeline keys add --scopes {scope} has made",
        )

    def collection(self, name: str | None, default: str) -> str:
        """Return the collection that he means: by name, or the default one, or his only one.

        Raises a Problem where it is not his, whether or not there is one of that name.
        """
        if self is NOBODY:
            raise unauthorized("this needs a key")
        if self.collections is None:
            return name or default
        if name is None:
            name = next(iter(self.collections)) if len(self.collections) == 1 else default
        if name not in self.collections:
            raise HttpProblem(
                403,
                f"the key {self.key_id} is not for the collection {name}: name one of "
                + ", ".join(sorted(self.collections)),
            )
        return name

    def may_see(self, collection: str) -> bool:
        """Return whether a collection is his to ask."""
        return self.collections is None or collection in self.collections


NOBODY = Caller("", frozenset(), frozenset(), frozenset())
"""Who shows no key where keys are needed. He may call what is open to all."""
LOCAL = Caller("this machine", None, frozenset(SCOPES), None)
"""Who asks from this machine while there are no keys: a program, or our own page."""
LOCAL_PAGE = Caller("a page on this machine", None, LOCAL.scopes - {"write", "sql"}, None)
"""A page of another origin, which may ask while there are no keys, and change nothing."""


def caller_of(request: HTTPConnection) -> Caller:
    """Return who asks."""
    return cast("Caller", request.scope["state"][_STATE])


def set_caller(scope: Scope, caller: Caller) -> None:
    """Note who asks, for :func:`caller_of`."""
    scope.setdefault("state", {})[_STATE] = caller


def caller_with(keyring: Keyring, headers: Mapping[bytes, str], *, is_ours: bool) -> Caller:
    """Return who sends a request with these headers; ``is_ours``: no page of another origin does.

    Raises a 401 Problem for a key that opens nothing, StorageError where keys cannot be read.
    """
    if not keyring.is_required:
        return LOCAL if is_ours else LOCAL_PAGE
    presented = _presented(headers)
    if presented is None:
        return NOBODY
    key = keyring.find(presented)
    if key is None:
        raise unauthorized("this key is not known, was revoked, or has expired", "invalid_token")
    return Caller(
        key.name, _all_or(key.labels), key.scopes, _all_or(key.collections), key.id, key
    )  # fmt: skip


def unauthorized(why: str, error: str = "") -> HttpProblem:
    """Return the 401 Problem of a request without a key that opens anything."""
    challenge = 'Bearer realm="graphrag-pipeline"' + (f', error="{error}"' if error else "")
    return HttpProblem(
        401,
        f"{why}: send one as Authorization: Bearer grp_... (graphrag-pipeline keys add makes one)",
        headers={"WWW-Authenticate": challenge},
    )


class Needs:
    """A dependency of an address: who calls it needs a scope."""

    def __init__(self, scope: str) -> None:
        assert scope in SCOPES
        self.scope = scope

    async def __call__(self, request: Request) -> None:
        """Raise a 401 or 403 Problem for a caller without the scope."""
        caller_of(request).check_scope(self.scope)


def needs(scope: str) -> Any:
    """Return what an address, or a router, has among its dependencies: the scope it needs."""
    return Depends(Needs(scope))


def _presented(headers: Mapping[bytes, str]) -> str | None:
    """Return the key that a request shows, or None where it shows nothing."""
    kind, _, value = headers.get(b"authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return value.strip()
    if kind:
        return ""
    return headers.get(b"x-api-key")


def _all_or(names: frozenset[str]) -> frozenset[str] | None:
    return None if EVERYTHING in names else names
