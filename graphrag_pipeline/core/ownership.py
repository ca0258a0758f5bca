"""Settings that another user of the machine left where they are found: not taken unseen."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from graphrag_pipeline.core.environment import KEYS, variable
from graphrag_pipeline.core.errors import ConfigError

_ROOT = 0


def check_values(
    file: Path, owner: str, values: Mapping[str, Any], env_file: Path | None = None
) -> None:
    """Raise ConfigError where a file of ``owner`` would have our key or answers sent, or a program
    run.

    ``values`` are what the file sets; ``env_file`` is the file where it is one of variables.
    """
    dangers = list(dict.fromkeys(_keys_sent(values, env_file)))
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


def _keys_sent(values: Mapping[str, Any], env_file: Path | None) -> Iterator[str]:
    """Yield which of our keys the models of a file would be sent, and where."""
    llm, models = _section(values, "llm"), _section(values, "models")
    address = str(llm.get("base_url") or "")
    if not address and env_file is not None and not os.environ.get("OPENAI_BASE_URL"):
        address = variable("OPENAI_BASE_URL", str(env_file))
    own = llm.get("api_key_env")
    yield from _key_sent((own,) if isinstance(own, str) and own else KEYS, address)
    for name in models:
        model = _section(models, name)
        # Without a name of its own, an address of its own is sent no key.
        if isinstance(own := model.get("api_key_env"), str):
            place = str(model.get("base_url") or address)
            yield from _key_sent((own,) if own else KEYS, place)


def _key_sent(names: Sequence[str], base_url: str) -> Iterator[str]:
    key = next((name for name in names if os.environ.get(name)), "")
    if key and base_url:
        parts = urlsplit(base_url)
        yield f"send your {key} to {parts.scheme}://{parts.netloc.rpartition('@')[2]}"


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
