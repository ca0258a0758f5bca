"""Secrets: variables of the environment, or of a file ``.env``. They are in no settings."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping

KEYS = ("OPENAI_API_KEY", "GRAPHRAG_API_KEY")
"""Where the key of the models may be, in this order."""

NO_KEY = "GRAPHRAG_NO_API_KEY"
"""A name for where a key is not: a server that is to be sent none."""


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
