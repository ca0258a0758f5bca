"""`methods`: what a question can be answered by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import prints, settings_here
from graphrag_pipeline.core.rows import one_line

_INDENT = "    "
_BLOCK_WIDTH = 76


def _show(listed: list[dict[str, Any]] | dict[str, Any]) -> None:
    if isinstance(listed, dict):
        _show_method(listed)
        return
    for method in listed:
        console.say(f"{method['name']}{_needs(method)}", style="bold")
        console.say_whole(f"{_INDENT}{one_line(method['summary'])}")
        for line in _wrapped([f"{p['name']}={_value(p['default'])}" for p in method["parameters"]]):
            console.say_whole(f"{_INDENT}{line}", style="dim")


def _show_method(method: Mapping[str, Any]) -> None:
    console.say(f"{method['name']}{_needs(method)}: {one_line(method['summary'])}")
    if not method["parameters"]:
        return
    console.say()
    rows = [(p["name"], _value(p["default"]), _values(p)) for p in method["parameters"]]
    console.table(("parameter", "default", "values"), rows)
    first = method["parameters"][0]
    console.say()
    example = f"-m {method['name']}:{first['name']}={_value(first['default'])}"
    console.say_whole(f'graphrag-pipeline query "..." {example}', style="dim")


@prints(_show)
def methods(
    name: Annotated[
        str | None, typer.Argument(help="One of them, with the values its parameters take.")
    ] = None,
) -> list[dict[str, Any]] | dict[str, Any]:
    """List the methods, their parameters with the defaults here, and which need a model."""
    from graphrag_pipeline.query.methods import list_methods, method_named, method_values

    settings = settings_here()
    if name is not None:
        return method_values(method_named(name), settings)
    return list_methods(settings)


def _needs(method: Mapping[str, Any]) -> str:
    """Return what stands behind the name of a method that a model has to answer by."""
    if not method["needs_model"]:
        return ""
    return " (needs a model)" if method["can_answer"] else " (needs a model; none is set)"


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _values(parameter: Mapping[str, Any]) -> str:
    """Return in words which values a parameter takes."""
    if parameter["type"] == "bool":
        return "true, false"
    if "among" in parameter:
        return ", ".join(parameter["among"])
    if "most" in parameter:
        return f"a number from {parameter['least']} to {parameter['most']}"
    return f"a whole number, at least {parameter['least']}"


def _wrapped(words: list[str]) -> list[str]:
    """Return words in lines; no word is cut."""
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) >= _BLOCK_WIDTH:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{word}"
    return [line for line in lines if line]
