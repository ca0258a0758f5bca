"""The commands by name: a door. Only the command that runs is imported."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import typer

from graphrag_pipeline.core.doors import Door
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.extras import require_extra
from graphrag_pipeline.core.patterns import pattern_of

_NAME = pattern_of(r"[a-z][a-z0-9-]*")


def _check(name: str, part: object) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigError("call it by small letters, digits and hyphens")
    if not callable(part):
        raise ConfigError("it is neither a function nor a typer.Typer")


COMMANDS: Door[Any] = Door(
    "commands",
    object,
    "command",
    own={
        "init": "index:init",
        "index": "index:index",
        "plan": "plan:plan",
        "tune": "plan:tune",
        "status": "index:status",
        "query": "query:query",
        "compare": "query:compare",
        "ask": "ask:ask",
        "methods": "methods:methods",
        "sql": "sql:sql",
        "marts": "marts:marts",
        "releases": "releases:releases",
        "rollback": "releases:rollback",
        "diff": "releases:diff",
        "cache": "cache:cache",
        "check": "upkeep:check",
        "backup": "upkeep:backup",
        "restore": "upkeep:restore",
        "forget": "forgetting:forget",
        "purge": "forgetting:purge",
        "export": "exports:export",
        "explore": "pages:explore",
        "report": "pages:report",
        "ui": "ui:ui",
        "notify": "index:notify",
        "import-graphrag": "index:import_graphrag",
        "import-extractions": "index:import_extractions",
        "dbt": "marts:dbt",
    },
    beside=__name__,
    check=_check,
)
"""The commands, in the order in which help lists them."""


OF_EXTRAS = {
    "serve": "server",
    "feedback": "server",
    "mcp": "server",
    "keys": "server",
    "worker": "cluster",
    "eval": "evaluation",
}
"""The commands that extras bring, so that where one is not installed, it is said how to get it."""


def commands_to_be_had() -> str:
    """Return in words which commands extras would bring that are not installed, or nothing."""
    there = COMMANDS.names()
    by_extra: dict[str, list[str]] = {}
    for name, extra in OF_EXTRAS.items():
        if name not in there:
            by_extra.setdefault(extra, []).append(name)
    brought = [f"{', '.join(names)} (extra {extra})" for extra, names in by_extra.items()]
    return f"More commands: {'; '.join(brought)}." if brought else ""


class Commands(MutableMapping[str, Any]):
    """The commands as click has them, each made when it is looked up."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            part = COMMANDS.find(name)
            if part is None and name in OF_EXTRAS:
                require_extra(OF_EXTRAS[name], name)
            if part is None:
                raise KeyError(name)
            self._made[name] = _command(name, part)
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS.names())

    def __len__(self) -> int:
        return len(COMMANDS.names())


def _command(name: str, part: Any) -> Any:
    """Return a function, or the commands of a Typer, as click has them."""
    alone = typer.Typer(add_completion=False, rich_markup_mode="markdown")
    if isinstance(part, typer.Typer):
        alone.add_typer(part, name=name)
        return typer.main.get_group(alone).commands[name]
    alone.command(name, context_settings=getattr(part, "context_settings", None))(part)
    return typer.main.get_command(alone)
