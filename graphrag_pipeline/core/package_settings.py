"""The sections of settings that packages bring: a door."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from graphrag_pipeline.core.doors import Door
from graphrag_pipeline.core.errors import ConfigError


def _check(name: str, part: type) -> None:
    if not issubclass(part, BaseModel):
        raise ConfigError("it is no class of pydantic's BaseModel")
    try:
        part()
    except ValidationError as error:
        raise ConfigError(f"every setting of it needs a default: {error.errors()[0]}") from None


SECTIONS: Door[type] = Door(
    "settings", type, "section of settings", own={}, beside=__name__, check=_check
)
"""The models of the sections ``[packages.NAME]``, by name."""


def read_section(name: str, values: Mapping[str, Any]) -> Any:
    """Return the values of a section as its model, its defaults for what is left out.

    Raises ConfigError where no package brings the section, for a setting that it does not have, and
    for a wrong value.
    """
    model = SECTIONS.find(name)
    if model is None:
        raise ConfigError(
            f"packages.{name}: no package that is installed has such settings: install it, or take "
            "the section out"
        )
    for setting in values:
        if setting not in model.model_fields:
            there = ", ".join(model.model_fields)
            raise ConfigError(f"packages.{name}.{setting}: unknown setting: there are {there}")
    try:
        return model(**values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in ("packages", name, *first["loc"]))
        raise ConfigError(f"{place} = {first['input']!r}: {first['msg']}") from None
