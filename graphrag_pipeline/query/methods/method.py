"""What a retrieval method is: a name, its parameters, and a function of operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.query.results import Record

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import QuerySettings
    from graphrag_pipeline.query.release import Release

P = TypeVar("P")


@dataclass(frozen=True)
class Method(Generic[P]):
    """A retrieval method.

    ``retrieve`` takes the open release, the question and the parameters, and returns records that
    fit the parameters' token budget. ``parameters`` is a frozen dataclass of :func:`number`,
    :func:`share`, :func:`flag` and :func:`choice` fields. Those that ``settings.query`` has too,
    with the same default, are set there; another default is that of the method's paper, and stays.
    One that ``needs_model`` can retrieve without a model, but not answer.
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
        common = type(settings).model_fields
        values = {
            name: getattr(settings, name)
            for name, declared in known.items()
            if name in common and declared.default == common[name].default
        }
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


def choice(default: str, among: Sequence[str] | Callable[[], Sequence[str]]) -> Any:
    """Declare a parameter that is one of some words, listed or, if not known yet, given later."""
    return field(default=default, metadata={"type": str, "among": among})


def read_parameters(method: Method[Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Return parameters written as text, each read by its type; the rest is as for the method.

    Raises InputError where a text is none of the type.
    """
    types = {name: kind for name, kind, _ in parameter_rows(method)}
    return {name: _read(name, text, types.get(name, str)) for name, text in given.items()}


def read_level(text: str) -> int:
    """Return a level of the hierarchy, written as a number or as in the paper: ``C1`` is 1.

    Raises InputError for anything else.
    """
    digits = text[1:] if text[:1] in ("C", "c") else text
    if not (digits.isascii() and digits.isdigit()):
        raise InputError(f"level = {text!r}: must be a number, 0 for the root, or C0, C1 and so on")
    return int(digits)


def parameter_rows(method: Method[Any]) -> list[tuple[str, type, Any]]:
    """Return (name, type, default) of a method's parameters, in order."""
    return [
        (f.name, f.metadata["type"], None if f.default is MISSING else f.default)
        for f in fields(method.parameters)
    ]


def as_mapping(parameters: Any) -> dict[str, Any]:
    """Return a parameters dataclass as plain values."""
    return asdict(parameters)


def _read(name: str, text: str, kind: type) -> Any:
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    if name == "level":
        return read_level(text)
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise InputError(f"{name} = {text!r}: must be {what}") from None


def _words(among: Sequence[str] | Callable[[], Sequence[str]]) -> Sequence[str]:
    return among() if callable(among) else among


def _checked(name: str, value: Any, declared: Field[Any]) -> Any:
    rule = declared.metadata
    if rule["type"] is str:
        words = _words(rule["among"])
        if value not in words:
            raise InputError(f"{name} = {value!r}: must be one of {', '.join(words)}")
        return value
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
