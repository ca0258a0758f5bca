"""Measures of each release once it is published: a door."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from graphrag_pipeline.core.doors import Door, require_takes
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.store.workspace import Workspace

_NAME = pattern_of(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A measure, called as its asset is: the last work of a run. Comes in by the door ``measures``.

    Parameters
    ----------
    about
        What is measured, in a sentence.
    label
        What `index` calls it while it is at work.
    group
        The group of its asset in Dagster; runs that measure in one group wait for each other.
    measure
        Measures the published release, once, and returns the numbers by name. What it raises is
        told of, and fails no run.
    is_made
        Says whether that was done for the published release, whose id is given second.
    """

    about: str
    label: str
    group: str
    measure: Callable[[Workspace], Mapping[str, float | str]]
    is_made: Callable[[Workspace, str], bool]


def _check(name: str, measure: Measure) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigError("call it by small letters, digits and underscores")
    require_takes(measure.measure, "workspace")
    require_takes(measure.is_made, "workspace", "release")


MEASURES: Door[Measure] = Door(
    "measures",
    Measure,
    "measure",
    own={},
    beside=__name__,
    check=_check,
)
"""What is measured of each release."""
