"""Trace of a question on its way to an answer: time, decisions, what fits, what is spent.

A :class:`Trace` belongs to one question. It reaches every operator with the release that the
operator reads: :meth:`Release.traced` gives the release for one question.
"""

from __future__ import annotations

import contextlib
import functools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.llm.ledger import hearing
from graphrag_pipeline.query.control import Control

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings
    from graphrag_pipeline.llm.completion import Completion
    from graphrag_pipeline.llm.ledger import Call

_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass
class Spending:
    """Counts of calls, tokens and dollars; cached calls took nothing."""

    model_calls: int = 0
    cached_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0
    calls: Counter[str] = field(default_factory=Counter)

    def add(self, step: str, call: Completion | Call) -> None:
        """Count one answered call."""
        self.calls[step] += 1
        if call.cached:
            self.cached_calls += 1
            return
        self.model_calls += 1
        self.prompt_tokens += call.prompt_tokens
        self.completion_tokens += call.completion_tokens
        has_cost = self.cost is not None and call.cost is not None
        # Calls at once end in any order: the last digits of a sum of floats would say in which.
        self.cost = round(self.cost + call.cost, 12) if has_cost else None  # type: ignore[operator]


_NAMES, _NONE = "names looked for: ", "none"


def names_told(steps: Iterable[str]) -> list[str] | None:
    """Return the names that a question's steps say were looked for, None where none say so."""
    lines = [line.removeprefix(_NAMES) for line in steps if line.startswith(_NAMES)]
    told = [json.loads(f"[{line}]") for line in lines if line != _NONE]
    return list(dict.fromkeys(chain.from_iterable(told))) if lines else None


class Trace:
    """Time and tokens that one question has taken so far, from any number of threads.

    ``steps`` are the lines that say what a method decided, in order; ``seconds`` are those spent in
    each operator, one that calls another included.
    """

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.seconds: dict[str, float] = {}
        self.control = Control()
        self._spending = Spending()
        self._any_records = False
        self._any_fit = False
        self._lock = threading.Lock()

    def step(self, line: str) -> None:
        """Say what was decided."""
        self.steps.append(line)
        self.control.tell(line)

    def looked_for(self, names: Iterable[str]) -> None:
        """Say which names of the question a method looks for; :func:`names_told` reads them."""
        told = ", ".join(json.dumps(name, ensure_ascii=False) for name in names)
        self.step(_NAMES + (told or _NONE))

    def timed(self, function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call a function, and add its seconds under its name.

        Raises StoppedError where the question was stopped.
        """
        self.control.check()
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            elapsed = time.perf_counter() - start
            name = function.__name__
            with self._lock:
                self.seconds[name] = self.seconds.get(name, 0.0) + elapsed

    def note_filling(self, *, any_fit: bool) -> None:
        """Note that there were records to fill a budget with, and whether any of them fit."""
        self._any_records = True
        self._any_fit = self._any_fit or any_fit

    def check_fit(self, parameters: Mapping[str, Any]) -> None:
        """Raise InputError, with the budgets among a method's parameters, if no record fit.

        A part of a budget may hold nothing; that all of it does is a mistake to report.
        """
        if self._any_records and not self._any_fit:
            budgets = {k: v for k, v in parameters.items() if k.endswith("_tokens")}
            settings_text = ", ".join(f"{name} = {value}" for name, value in budgets.items())
            raise InputError(f"{settings_text}: too few for one record")

    def spend(self, step: str, call: Completion | Call) -> None:
        """Count one answered call of a model."""
        with self._lock:
            self._spending.add(step, call)

    def spending(self) -> dict[str, Any]:
        """Return what was spent, by the names of an answer's fields."""
        with self._lock:
            return {**vars(self._spending), "calls": dict(self._spending.calls)}

    @contextlib.contextmanager
    def counting_embeddings(self, settings: Settings) -> Iterator[None]:
        """Count the calls for embeddings that are made within, where a model embeds."""
        if settings.embeddings.embedder != "llm":
            yield
            return

        def count(call: Call) -> None:
            if call.error is None:
                self.spend("embed", call)

        with hearing(count):
            yield


class _Traced(Protocol):
    @property
    def trace(self) -> Trace: ...


_Index = TypeVar("_Index", bound=_Traced)


def operator(
    function: Callable[Concatenate[_Index, _P], _R],
) -> Callable[Concatenate[_Index, _P], _R]:
    """Record the time of an operator on a release in the release's trace, under its name."""

    @functools.wraps(function)
    def traced(index: _Index, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return index.trace.timed(function, index, *args, **kwargs)

    return traced
