"""The sections of settings that packages bring: a door."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from graphrag_pipeline.core.doors import Door
from graphrag_pipeline.core.errors import ConfigError

log = logging.getLogger("graphrag_pipeline")


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


def check_sections(sections: Mapping[str, Mapping[str, Any]]) -> None:
    """Read all sections; one that no installed package has is told of in the log.

    A package that was taken out should not stop what does without it. Raises ConfigError for what
    is wrong in the others.
    """
    for name, values in sections.items():
        if SECTIONS.find(name) is None:
            _tell_of_unknown(name)
        else:
            read_section(name, values)


@functools.cache
def _tell_of_unknown(name: str) -> None:
    log.warning("%s", _unknown(name))


def _unknown(name: str) -> str:
    return (
        f"[packages.{name}] in the settings: no package that is installed has such a section: "
        "install the package, or take the section out"
    )


def read_section(name: str, values: Mapping[str, Any]) -> Any:
    """Return the values of a section as its model, its defaults for what is left out.

    Raises ConfigError where no package brings the section, for a setting that it does not have, and
    for a wrong value.
    """
    model = SECTIONS.find(name)
    if model is None:
        raise ConfigError(_unknown(name))
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
