"""A method: its name, its parameters, how it retrieves, and how a model answers by it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.levels import parse_level
from graphrag_pipeline.llm.configured import model_options
from graphrag_pipeline.llm.windows import evidence_room
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.single import from_records

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking, Final

P = TypeVar("P")


@dataclass(frozen=True, kw_only=True)
class Method(Generic[P]):
    """A method: all that there is to it, whether a model writes the answers or not.

    ``retrieve`` takes the open release, the question and the parameters, and returns records that
    fit the parameters' token budget. ``parameters`` is a frozen dataclass of fields declared by
    :func:`number`, :func:`share`, :func:`flag`, :func:`choice` and :func:`hierarchy_level`; its
    docstring says what they mean. Those that ``settings.query`` has too, with the same default, are
    set there; another default is that of the method's paper, and stays.

    Where a model writes, it gets what ``retrieve`` returns, in ``prompt``. A method that asks the
    model before (for keywords, ratings, follow-ups) has ``answer``: it makes these calls, and
    returns the last, or None where the index holds nothing that bears on the question. One that
    ``needs_model`` can retrieve without a model, but not answer. ``table`` is the table of vectors
    that it cannot do without, where only some indexes have it.

    What an answer takes follows from what is retrieved: ``readings`` calls read that, with these
    parameters, after ``short_calls``. Where it does not, ``estimate`` says it: calls, tokens of
    prompts, and tokens of what the model writes. Those ``recommended`` are named first where one is
    chosen.
    """

    name: str
    summary: str
    parameters: type[P]
    retrieve: Callable[[Release, str, P], list[Record]]
    prompt: str = "local_answer"
    answer: Callable[[Asking, P], Awaitable[Final | None]] | None = None
    needs_model: bool = False
    table: str = ""
    short_calls: int = 0
    readings: Callable[[P], int] = lambda parameters: 1
    estimate: Callable[[Release, P], tuple[float, float, float]] | None = None
    recommended: bool = False

    async def last_call(self, asking: Asking, p: P) -> Final | None:
        """Return the call that writes the answer, once those before it are made."""
        if self.answer is not None:
            return await self.answer(asking, p)
        records = await asking.retrieve(lambda: self.retrieve(asking.index, asking.search_text, p))
        return from_records(records, self.prompt)

    def can_answer(self, settings: Settings, tables: Collection[str] | None = None) -> bool:
        """Whether it can answer as things are set, from a release with these tables of vectors."""
        has_table = tables is None or not self.table or self.table in tables
        return has_table and (settings.query.answers == "llm" or not self.needs_model)

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise InputError for an unknown name, or a value that no settings make right."""
        declared = {f.name: f for f in fields(self.parameters)}  # type: ignore[arg-type]
        if strangers := sorted(options.keys() - declared):
            raise InputError(
                f"method {self.name} has no parameter {strangers[0]}: "
                f"it has {', '.join(declared) or 'none'}"
            )
        for name, value in options.items():
            if value is not None:
                _checked(name, value, declared[name])

    def parametrise(self, options: Mapping[str, Any], settings: Settings) -> P:
        """Return the parameters: as chosen for this question, then as set, then by default.

        A default of ``max_context_tokens`` is lowered to what the model's window holds. Raises
        InputError for an unknown name or a value out of range, or one that is beyond the window.
        """
        self.check(options)
        declared = {f.name: f for f in fields(self.parameters)}  # type: ignore[arg-type]
        common = type(settings.query).model_fields
        values = {
            name: getattr(settings.query, name)
            for name, parameter in declared.items()
            if name in common and parameter.default == common[name].default
        }
        values |= {name: value for name, value in options.items() if value is not None}
        parameters = self.parameters(**{n: _checked(n, v, declared[n]) for n, v in values.items()})
        return _within_window(parameters, options, settings)


def number(default: int, *, least: int = 1) -> Any:
    """Declare a whole-number parameter."""
    return field(default=default, metadata={"type": int, "least": least, "most": None})


def hierarchy_level(default: int) -> Any:
    """Declare a level of the hierarchy, 0 for the root: see :func:`parse_level`."""
    return field(
        default=default,
        metadata={"type": int, "least": 0, "most": None, "parse": parse_level},
    )


def share(default: float) -> Any:
    """Declare a parameter from 0 to 1."""
    return field(default=default, metadata={"type": float, "least": 0, "most": 1})


def flag(default: bool) -> Any:
    """Declare a parameter that is true or false."""
    return field(default=default, metadata={"type": bool, "least": None, "most": None})


def choice(default: str, among: Sequence[str] | Callable[[], Sequence[str]]) -> Any:
    """Declare a parameter that is one of some words, listed or, if not known yet, given later."""
    return field(default=default, metadata={"type": str, "among": among})


def read_parameters(method: Method[Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """Return parameters written as text, each read by its type; the rest is as for the method.

    Raises InputError where a text is none of the type.
    """
    types = {name: kind for name, kind, _ in parameter_rows(method)}
    return {name: _read(name, text, types.get(name, str)) for name, text in texts.items()}


def parameter_rows(method: Method[Any]) -> list[tuple[str, type, Any]]:
    """Return (name, type, default) of a method's parameters, in order."""
    return [
        (f.name, f.metadata["type"], None if f.default is MISSING else f.default)
        for f in fields(method.parameters)
    ]


def words_of(among: Sequence[str] | Callable[[], Sequence[str]]) -> Sequence[str]:
    """Return the words that a parameter declared by :func:`choice` can be."""
    return among() if callable(among) else among


def as_mapping(parameters: Any) -> dict[str, Any]:
    """Return a parameters dataclass as plain values."""
    return asdict(parameters)


def _read(name: str, text: str, kind: type) -> Any:
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    if name == "level":
        return parse_level(text)
    try:
        return kind(text)
    except ValueError:
        kind_name = "a whole number" if kind is int else "a number"
        raise InputError(f"{name} = {text!r}: must be {kind_name}") from None


def _within_window(parameters: P, options: Mapping[str, Any], settings: Settings) -> P:
    """Return parameters whose budget of tokens is no more than the model that answers can read."""
    budget = getattr(parameters, "max_context_tokens", 0)
    if settings.query.answers != "llm":
        return parameters
    reader = model_options(settings, "answers")
    room = evidence_room(settings, reader) if budget else None
    if room is None or budget <= room:
        return parameters
    if options.get("max_context_tokens") is not None:
        raise InputError(
            f"max_context_tokens = {budget}: with the prompt and its answer, the window of "
            f"{reader.model} has room for {room}; set {reader.section}.context_window if it is "
            "larger"
        )
    return replace(cast("Any", parameters), max_context_tokens=room)


def _checked(name: str, value: Any, declared: Field[Any]) -> Any:
    rule = declared.metadata
    value = rule["parse"](value) if "parse" in rule else value
    if rule["type"] is str:
        words = words_of(rule["among"])
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
