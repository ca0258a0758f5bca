"""All methods by name: those of this package, those registered, and those other packages bring."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from graphrag_pipeline.core.doors import Door
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.prompting import prompt_names
from graphrag_pipeline.query.methods.method import Method, parameter_rows, read_parameters

OTHER_NAMES = {"fulltext": "bm25"}
"""Further names of methods: what is asked for, and what it is called everywhere else."""

_OF_EVERY_QUESTION = frozenset(
    (
        "question",
        "method",
        "where",
        "history",
        "history_turns",
        "response_type",
        "answer_style",
        "sentences",
        "follow_ups",
        "context",
    )
).union(("home", "release", "settings"))
_NAME = pattern_of(r"[a-z][a-z0-9_]*")


def _check(method: Method[Any]) -> None:
    """Raise InputError for a method that could not be asked."""
    if not _NAME.fullmatch(method.name):
        raise InputError(
            f"method {method.name!r}: a name is made of small letters, digits and underscores"
        )
    if method.name in ALL_METHODS.own or method.name in OTHER_NAMES:
        raise InputError(f"method {method.name} is there already: choose another name")
    if not dataclasses.is_dataclass(method.parameters):
        raise InputError(f"method {method.name}: parameters must be a dataclass")
    for parameter in dataclasses.fields(method.parameters):
        if "type" not in parameter.metadata:
            raise InputError(
                f"method {method.name}: declare its parameter {parameter.name} by number, share, "
                "flag, choice or hierarchy_level"
            )
        if parameter.name in _OF_EVERY_QUESTION:
            raise InputError(
                f"method {method.name}: choose another name for its parameter {parameter.name}, "
                "which every question has"
            )
    if method.prompt not in prompt_names():
        raise InputError(
            f"method {method.name}: no prompt {method.prompt!r}; there are "
            f"{', '.join(prompt_names())}"
        )


def _check_brought(name: str, method: Method[Any]) -> None:
    if method.name != name:
        raise InputError(f"it is called {method.name}: name the entry point so, too")
    _check(method)


_LISTED = (
    "basic bm25 hybrid local global kg_triplets kg_triplets_text hipporag hipporag2 lightrag "
    "fast_graphrag hirag raptor kag ppr auto selection integration archrag drift lazy text_summary "
    "ircot zero_shot cot"
)
"""The order in which methods are listed, where they are there. Those of other systems follow."""

ALL_METHODS: Door[Method[Any]] = Door(
    "methods",
    Method,
    "method",
    own={
        "basic": "chunk_search:BASIC",
        "bm25": "chunk_search:BM25",
        "hybrid": "chunk_search:HYBRID",
        "local": "local_search:LOCAL",
        "global": "global_search:GLOBAL",
        "ppr": "ppr_search:PPR",
        "auto": "auto_search:AUTO",
        "selection": "combined_search:SELECTION",
        "integration": "combined_search:INTEGRATION",
        "text_summary": "text_summary:TEXT_SUMMARY",
        "zero_shot": "no_retrieval:ZERO_SHOT",
        "cot": "no_retrieval:COT",
    },
    beside=__name__,
    has_systems=True,
    listed=_LISTED.split(),
    check=_check_brought,
)
"""All methods by name. A question to one waits neither for the others nor for other packages."""


class _Methods(Mapping[str, Method[Any]]):
    """The registered methods that need a model to answer, or those that do not."""

    def __init__(self, *, needs_model: bool) -> None:
        self._needs_model = needs_model

    def __getitem__(self, name: str) -> Method[Any]:
        method = ALL_METHODS.find(name)
        if method is None or method.needs_model is not self._needs_model:
            raise KeyError(name)
        return method

    def __iter__(self) -> Iterator[str]:
        methods = ALL_METHODS.usable().values()
        return iter([method.name for method in methods if method.needs_model is self._needs_model])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __or__(self, other: Mapping[str, Method[Any]]) -> dict[str, Method[Any]]:
        return {**self, **other}


METHODS: _Methods = _Methods(needs_model=False)
"""The methods that answer with and without a model."""

MODEL_METHODS: _Methods = _Methods(needs_model=True)
"""The methods that answer with a model only."""


def register_method(method: Method[Any]) -> None:
    """Add a method of your own, everywhere that methods are named; the same name replaces it.

    Raises InputError if its name is none or is that of a method of this package, if a parameter is
    not declared, or if there is no such prompt.
    """
    _check(method)
    ALL_METHODS.add(method.name, method)


def unregister_method(name: str) -> None:
    """Take out a method that was registered; raises InputError if none was."""
    if not ALL_METHODS.remove(name):
        raise InputError(f"no method {name!r} was registered")


def method_named(name: str) -> Method[Any]:
    """Return a method by one of its names; raises InputError where there is none."""
    method = ALL_METHODS.find(OTHER_NAMES.get(name, name))
    if method is not None:
        return method
    names = [*METHODS, *MODEL_METHODS, *OTHER_NAMES]
    close = difflib.get_close_matches(str(name).lower(), names, n=1, cutoff=0.7)
    hint = f" (did you mean {close[0]}?)" if close else ""
    raise InputError(f"unknown method {name!r}{hint}: use one of {', '.join(names)}")


def read_method(spec: str) -> tuple[str, dict[str, Any]]:
    """Return the method and the parameters that a text such as ``lightrag:mode=local`` names.

    Parameters follow the name, each after a colon. Raises InputError for an unknown method, and
    for what is no parameter with a value.
    """
    name, *parts = spec.split(":")
    method = method_named(name.strip())
    return method.name, read_parameters(method, dict(_parameter(spec, part) for part in parts))


def methods_taking(parameter: str) -> list[str]:
    """Return the names of the methods that have a parameter."""
    return [
        name
        for name, method in (METHODS | MODEL_METHODS).items()
        if parameter in {row[0] for row in parameter_rows(method)}
    ]


def _parameter(spec: str, part: str) -> tuple[str, str]:
    name, equals, value = (piece.strip() for piece in part.partition("="))
    if not (name and equals and value):
        raise InputError(f"{spec!r}: write a parameter as METHOD:name=value")
    return name.replace("-", "_"), value
