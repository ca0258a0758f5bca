"""Settings that another user of the machine left where they are found: not taken unseen."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from graphrag_pipeline.core.environment import KEYS, variable
from graphrag_pipeline.core.errors import ConfigError

_ROOT = 0


def check_values(file: Path, owner: str, values: Mapping[str, Any], base_url: str) -> None:
    """Raise ConfigError where a file of ``owner`` would have our key or answers sent, or a program
    run.

    ``values`` are what the file sets, ``base_url`` is where it has the models asked, or empty.
    """
    dangers = []
    own = _section(values, "llm").get("api_key_env")
    names = (own,) if isinstance(own, str) and own else KEYS
    key = next((name for name in names if os.environ.get(name)), "")
    if key and base_url:
        parts = urlsplit(base_url)
        dangers.append(f"send your {key} to {parts.scheme}://{parts.netloc.rpartition('@')[2]}")
    if shared := _section(values, "llm").get("shared_cache"):
        dangers.append(f"write what models answer to {shared}")
    storage = _section(values, "storage")
    if place := storage.get("url") or storage.get("postgres"):
        dangers.append(f"keep your documents at {str(place).rpartition('@')[2]}")
    if command := _section(values, "notify").get("command"):
        dangers.append(f"run {command[0]}" if isinstance(command, list) else f"run {command}")
    if dangers:
        raise ConfigError(
            f"{file} belongs to {owner} and would {' and '.join(dangers)}: if you trust it, make "
            "a copy that you own, or name it with --config or GRAPHRAG_CONFIG"
        )


def address_in(values: Mapping[str, Any], env_file: Path | None = None) -> str:
    """Return where the settings of a file have the models asked; empty where they do not say."""
    stated = _section(values, "llm").get("base_url") or ""
    if not stated and env_file is not None and not os.environ.get("OPENAI_BASE_URL"):
        stated = variable("OPENAI_BASE_URL", str(env_file))
    return str(stated)


def _section(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = values.get(name)
    return section if isinstance(section, Mapping) else {}


def other_owner(file: Path) -> str:
    """Return the name of a file's owner, if it is neither we nor the system; empty if it is."""
    if os.name == "nt":
        return ""
    try:
        uid = file.stat().st_uid
    except OSError:
        return ""
    if uid in (_ROOT, os.geteuid()):
        return ""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"another user ({uid})"
