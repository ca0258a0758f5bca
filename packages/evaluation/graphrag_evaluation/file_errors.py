"""Errors in the file of an experiment or a preset, reported with their lines."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from graphrag_pipeline.core.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_Model = TypeVar("_Model", bound=BaseModel)
_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.-]+)")
_KEY = re.compile(r"""\s*["']?([\w.-]+)["']?\s*=""")
_WHOLE: Final = ("int_parsing", "int_type", "int_from_float")
_LISTS: Final = ("tuple_type", "list_type")


def parsed(text: str, name: str, model: type[_Model]) -> _Model:
    """Read TOML of a file called ``name``. Raises InputError with the line that is wrong."""
    try:
        return model.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name} is not valid TOML: {error}") from None
    except ValidationError as error:
        raise InputError(f"{name}{_misfit(text, error, model)}") from None


def _misfit(text: str, error: ValidationError, model: type[BaseModel]) -> str:
    """Return the first thing that is wrong, to follow the file's name: line, place, reason."""
    item = error.errors()[0]
    line = _line_of(text, item["loc"])
    place = "".join(f" {n + 1}" if isinstance(n, int) else f".{n}" for n in item["loc"])
    where = f", line {line}" if line else ""
    return f"{where}: {place.lstrip('.')}: {_reason(item, model)}"


def _reason(item: ErrorDetails, model: type[BaseModel]) -> str:
    kind, shown = item["type"], repr(item["input"])[:80]
    if kind == "extra_forbidden":
        names = _fields_at(item["loc"], model)
        instead = did_you_mean(str(item["loc"][-1]), names, f"there are {', '.join(names)}")
        return f"there is no such field: {instead}"
    if kind == "missing":
        return "it is missing"
    if kind in _WHOLE:
        return f"{shown} is no whole number"
    if kind in _LISTS:
        return f"{shown} is no list: put it in brackets"
    message = item["msg"].removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def _fields_at(loc: tuple[int | str, ...], model: type[BaseModel]) -> Collection[str]:
    """Return the fields of the table that a place is in."""
    for part in loc[:-1]:
        if isinstance(part, str) and part in model.model_fields:
            model = _model_in(model.model_fields[part].annotation) or model
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that an annotation such as ``tuple[Model, ...] | None`` holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = map(_model_in, getattr(annotation, "__args__", ()))
    return next(filter(None, inner), None)


def _line_of(text: str, loc: tuple[int | str, ...]) -> int | None:
    """Return the line of a value, or of the table that lacks it."""
    place, seen = [], dict[str, int]()
    begun: int | None = None
    wanted = [str(part) for part in loc]
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.match(line):
            name = header[2]
            place = name.split(".")
            if header[1] == "[[":
                place.append(str(seen.get(name, 0)))
                seen[name] = seen.get(name, 0) + 1
            if place == wanted[: len(place)]:
                begun = number
        elif key := _KEY.match(line):
            whole = [*place, *key[1].split(".")]
            if whole == wanted[: len(whole)]:
                return number
    return begun
