"""What a retrieval method is: a name, its parameters, and a function of operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from graphrag_pipeline.errors import InputError
from graphrag_pipeline.query.results import Record

if TYPE_CHECKING:
    from graphrag_pipeline.config import QuerySettings
    from graphrag_pipeline.query.release import Release

P = TypeVar("P")


@dataclass(frozen=True)
class Method(Generic[P]):
    """A retrieval method.

    ``retrieve`` takes the open release, the question and the parameters, and returns records that
    fit the parameters' token budget. ``parameters`` is a frozen dataclass of :func:`number`,
    :func:`share` and :func:`flag` fields; those that ``settings.query`` has too take their defaults
    from there. One that ``needs_model`` can retrieve without a model, but not answer.
    """

    name: str
    summary: str
    parameters: type[P]
    retrieve: Callable[[Release, str, P], list[Record]]
    needs_model: bool = False

    def parametrise(self, given: Mapping[str, Any], settings: QuerySettings) -> P:
        """Return the parameters: as given, then as set, then by default.

        Raises InputError for an unknown name or a value out of range.
        """
        known = {f.name: f for f in fields(self.parameters)}  # type: ignore[arg-type]
        unknown = sorted(given.keys() - known)
        if unknown:
            raise InputError(
                f"method {self.name} has no parameter {unknown[0]}: "
                f"it has {', '.join(known) or 'none'}"
            )
        values = {name: getattr(settings, name) for name in known if hasattr(settings, name)}
        values |= {name: value for name, value in given.items() if value is not None}
        return self.parameters(**{n: _checked(n, v, known[n]) for n, v in values.items()})


def number(default: int, *, least: int = 1) -> Any:
    """Declare a whole-number parameter."""
    return field(default=default, metadata={"type": int, "least": least, "most": None})


def share(default: float) -> Any:
    """Declare a parameter from 0 to 1."""
    return field(default=default, metadata={"type": float, "least": 0, "most": 1})


def flag(default: bool) -> Any:
    """Declare a parameter that is true or false."""
    return field(default=default, metadata={"type": bool, "least": None, "most": None})


def parameter_rows(method: Method[Any]) -> list[tuple[str, type, Any]]:
    """Return (name, type, default) of a method's parameters, in order."""
    return [
        (f.name, f.metadata["type"], None if f.default is MISSING else f.default)
        for f in fields(method.parameters)
    ]


def as_mapping(parameters: Any) -> dict[str, Any]:
    """Return a parameters dataclass as plain values."""
    return asdict(parameters)


def _checked(name: str, value: Any, declared: Field[Any]) -> Any:
    rule = declared.metadata
    if rule["type"] is bool:
        if not isinstance(value, bool):
            raise InputError(f"{name} = {value!r}: must be true or false")
        return value
    allowed = (int, float) if rule["type"] is float else int
    low, high = rule["least"], rule["most"]
    if (
        isinstance(value, bool)
        or not isinstance(value, allowed)
        or not low <= value
        or (high is not None and value > high)
    ):
        kind = f"a number from {low} to {high}" if high else f"a whole number, at least {low}"
        raise InputError(f"{name} = {value!r}: must be {kind}")
    return value
