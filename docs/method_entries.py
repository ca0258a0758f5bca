"""Entries of the page on methods, beyond the code, from ``docs/methods/NAME.toml``.

Defaults are the code's, quality and cost are the record's of the benchmark, and neither is in the
files; :func:`faults` says where a file and the code no longer agree.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.extraction.rules.sentences import sentence_spans

if TYPE_CHECKING:
    from graphrag_pipeline.query.methods import Method

ENTRIES = Path(__file__).parent / "methods"
PROMPTS = Path(__file__).parent / "reference" / "prompts.md"
NO_VALUE = "-"
_SENTENCES = 3
_OF_EVERY_METHOD = frozenset({"next_questions", "report_retry", "rerank_passages"})
"""Prompts that any method may send: they are no step of its flow."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a flow: what it ``does``, and what it ``reads``, if anything.

    ``prompts`` are those that it may ask the model with, one of them or all; ``only`` says when it
    is taken at all; ``again`` until when everything since the step ``since`` is repeated.
    """

    does: str
    reads: str = ""
    prompts: Sequence[str] = ()
    only: str = ""
    again: str = ""
    since: int = 0


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """What a parameter means, and its value at the source: ``-`` where the source has none."""

    meaning: str
    source: str


@dataclass(frozen=True, kw_only=True)
class MethodEntry:
    """What a file says of a method."""

    idea: str
    when: str
    source: str
    calls: str
    flow: Sequence[Step]
    differs: str
    parameters: Mapping[str, Meaning] = field(default_factory=dict)


def entry_of(name: str) -> MethodEntry | None:
    """Return the entry of a method, or None where it has no file.

    Raises ValueError for a file that is none.
    """
    path = ENTRIES / f"{name}.toml"
    if not path.is_file():
        return None
    try:
        read: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
        flow = [Step(**step) for step in read.pop("flow", [])]
        own = {key: Meaning(**row) for key, row in read.pop("parameters", {}).items()}
        texts = {key: " ".join(text.split()) for key, text in read.items()}
        return MethodEntry(flow=flow, parameters=own, **texts)
    except (tomllib.TOMLDecodeError, TypeError, AttributeError) as error:
        raise ValueError(f"{path.name}: {error}") from error


def common_meanings() -> Mapping[str, Meaning]:
    """Return what parameters mean that are the same in several methods."""
    rows = tomllib.loads((ENTRIES / "_common.toml").read_text("utf-8"))["parameters"]
    return {name: Meaning(**row) for name, row in rows.items()}


def value_shown(value: object) -> str:
    """Return a value of a parameter as the page has it: ``12,000``, ``false``, ``mix``."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else str(value)


def faults(methods: Mapping[str, Method[Any]]) -> Iterator[str]:
    """Yield what is missing or wrong in the entries of these methods, and what to do about it."""
    from graphrag_pipeline.query.methods import parameter_rows

    senders = _senders(PROMPTS.read_text("utf-8"))
    for name in sorted({path.stem for path in ENTRIES.glob("[!_]*.toml")} - set(methods)):
        yield f"docs/methods/{name}.toml: there is no such method any more; delete the file"
    for name, method in methods.items():
        place = f"docs/methods/{name}.toml"
        entry = entry_of(name)
        if entry is None:
            yield f"{place}: is not there; write it as the others beside it, then: make docs"
            continue
        defaults = {row[0]: value_shown(row[2]) for row in parameter_rows(method)}
        yield from (f"{place}: {fault}" for fault in _of_texts(entry))
        yield from (f"{place}: {fault}" for fault in _of_parameters(entry, defaults))
        yield from (f"{place}: {fault}" for fault in _of_flow(entry, senders.get(name, set())))


def _of_texts(entry: MethodEntry) -> Iterator[str]:
    count = len(list(sentence_spans(entry.idea)))
    if count != _SENTENCES:
        yield f"idea has {count} sentences; say it in {_SENTENCES}"
    for name in ("when", "source", "calls", "differs"):
        if not getattr(entry, name):
            yield f"{name} is empty"


def _of_parameters(entry: MethodEntry, defaults: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(defaults.keys() - entry.parameters.keys() - common_meanings().keys()):
        yield f"add [parameters] {name} = {{meaning = ..., source = ...}}"
    for name in sorted(entry.parameters.keys() - defaults.keys()):
        yield f"the method has no parameter {name} any more; take it out"
    for name, told in entry.parameters.items():
        same = told.source.partition(" (")[0] in (NO_VALUE, defaults.get(name))
        if not same and f"`{name}`" not in entry.differs:
            yield f"{name} is {defaults.get(name)} here, not {told.source}: say why in differs"


def _of_flow(entry: MethodEntry, sent: set[str]) -> Iterator[str]:
    if not entry.flow:
        yield "add the steps of its flow: [[flow]]"
    for number, step in enumerate(entry.flow, start=1):
        if step.prompts and not sent.intersection(step.prompts):
            yield f"step {number} asks the model, but the method sends no {', '.join(step.prompts)}"
        if bool(step.again) != (0 < step.since <= number):
            yield f"step {number}: again needs since, the number of the step it goes back to"
    named = {prompt for step in entry.flow for prompt in step.prompts}
    for prompt in sorted(sent - named):
        yield f"the method asks the model with {prompt}: no step has that in prompts"


def _senders(page: str) -> dict[str, set[str]]:
    """Return the prompts that each method was recorded to send, with any of its parameters."""
    sent: dict[str, set[str]] = {}
    for prompt, places in re.findall(r"^## (\w+)\n\nSent by (.*)$", page, re.M):
        methods = re.search(r"the methods? ((?:`[^`]+`(?:, )?)+)", places)
        for place in re.findall("`([^`]+)`", methods[1]) if methods else ():
            if prompt not in _OF_EVERY_METHOD:
                sent.setdefault(place.partition(",")[0], set()).add(prompt)
    return sent
