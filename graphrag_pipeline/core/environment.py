"""Secrets: variables of the environment, or of a file ``.env``. They are in no settings."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping

KEYS = ("OPENAI_API_KEY", "GRAPHRAG_API_KEY")
"""Where the key of the models may be, in this order."""

POSTGRES = "GRAPHRAG_POSTGRES_URL"
"""The address of Postgres with its password."""

BROKER = "GRAPHRAG_BROKER_URL"
"""The address of Redis with its password."""

NO_KEY = "GRAPHRAG_NO_API_KEY"
"""A name for where a key is not: a server that is to be sent none."""


class Secret:
    """A text that is never shown and never pickled; an unpickled or copied one is empty."""

    __slots__ = ("_value",)

    def __init__(self, value: str = "") -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the text."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "Secret(***)" if self._value else "Secret()"

    def __reduce__(self) -> tuple[type[Secret], tuple[()]]:
        return Secret, ()


def variable(name: str, env_file: str = "") -> str:
    """Return a variable of the environment, or of a file of such; empty where it is not set."""
    return os.environ.get(name) or _in_file(env_file, name)


def _in_file(path: str, name: str) -> str:
    try:
        changed = os.stat(path).st_mtime_ns if path else 0
    except OSError:
        changed = 0
    return _values(path, changed).get(name) or "" if changed else ""


@functools.lru_cache(maxsize=8)
def _values(path: str, changed: int) -> Mapping[str, str | None]:
    """Return a file's variables; every call asks for the endpoint, so they are kept."""
    from dotenv import dotenv_values

    return dotenv_values(path, interpolate=False)
