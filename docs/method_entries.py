"""Entries of the page on methods, beyond the code.

A method of a system is a section of that system's ``README.md``, one of the core's is in
``docs/methods/NAME.md``; both have the same form. Defaults are the code's, quality and cost are
those that the benchmark has recorded, and neither is in the files; :func:`faults` says where a file
and the code no longer agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.extraction.rules.sentences import sentence_spans

if TYPE_CHECKING:
    from graphrag_pipeline.query.methods import Method

ROOT = Path(__file__).parents[1]
CORE = "docs/methods/{name}.md"
SYSTEM = "graphrag_pipeline/systems/{name}/README.md"
COMMON = "docs/methods/_common.md"
PROMPTS = Path(__file__).parent / "reference" / "prompts.md"
NO_VALUE = "-"
_SENTENCES = 3
_OF_EVERY_METHOD = frozenset({"next_questions", "report_retry", "rerank_passages"})
"""Prompts that any method may send: they are no step of its flow."""
_STEPS, _PARAMETERS, _DIFFERS, _DETAILS = (
    "Steps", "Parameters", "What differs, and why", "In detail"
)  # fmt: skip
_SOURCE, _WHEN, _CALLS = "Source: ", "**When to use it.** ", "Calls of a model for an answer: "
_FROM = re.compile(r"from (\d+): (.*)")


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
    """What a file says of a method.

    ``paper`` names what the system is from, ``details`` is what there is to say beyond the rest.
    """

    idea: str
    when: str
    source: str
    calls: str
    flow: Sequence[Step]
    differs: str
    parameters: Mapping[str, Meaning] = field(default_factory=dict)
    paper: str = ""
    details: str = ""


def entry_of(name: str) -> MethodEntry | None:
    """Return the entry of a method, or None where it has none.

    Raises ValueError for a section that is none.
    """
    place = _places().get(name)
    if place is None:
        return None
    try:
        return _entry(place.text, place.paper, place.more)
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{place.file}, {name}: {error}") from error


def common_meanings() -> Mapping[str, Meaning]:
    """Return what parameters mean that are the same in several methods."""
    return _meanings(_rows((ROOT / COMMON).read_text("utf-8")))


@dataclass(frozen=True)
class _Place:
    """Where the section of a method is, and what else its file says for the page."""

    file: str
    text: str
    paper: str = ""
    more: str = ""


def _places() -> dict[str, _Place]:
    """Return the sections that describe a method, by its name."""
    places: dict[str, _Place] = {}
    for pattern in (CORE, SYSTEM):
        for path in sorted(ROOT.glob(pattern.format(name="[!_]*"))):
            file = path.relative_to(ROOT).as_posix()
            text = path.read_text("utf-8").replace("](../../../docs/", "](../")
            head, sections = _sections(text, "## ")
            methods = {name: part for name, part in sections.items() if name.islower()}
            others = (
                f"**{n}.** {part.strip()}" for n, part in sections.items() if n not in methods
            )
            more = "\n\n".join(others)
            places |= {
                name: _Place(file, part, _paper(head), more) for name, part in methods.items()
            }
    return places


def _paper(head: str) -> str:
    """Return what a file says before its first section, without the title."""
    return "\n\n".join(part for part in head.split("\n\n") if not part.startswith("#")).strip()


def _entry(text: str, paper: str, more: str) -> MethodEntry:
    head, sections = _sections(text, "### ")
    idea, *paragraphs = (" ".join(part.split()) for part in head.strip().split("\n\n"))
    if strangers := sections.keys() - {_STEPS, _PARAMETERS, _DIFFERS, _DETAILS}:
        raise ValueError(f"no section is called {min(strangers)}")
    return MethodEntry(
        idea=idea,
        when=_after(_WHEN, paragraphs),
        source=_after(_SOURCE, paragraphs).removesuffix("."),
        calls=_after(_CALLS, paragraphs).removesuffix("."),
        flow=[_step(row) for row in _rows(sections.get(_STEPS, ""))],
        differs=" ".join(sections.get(_DIFFERS, "").split()),
        parameters=_meanings(_rows(sections.get(_PARAMETERS, ""))),
        paper=paper,
        details="\n\n".join(filter(None, [sections.get(_DETAILS, "").strip(), more])),
    )


def _after(label: str, paragraphs: Sequence[str]) -> str:
    """Return what follows a label, at the beginning of one of the paragraphs."""
    texts = [part.removeprefix(label) for part in paragraphs if part.startswith(label.strip())]
    if len(texts) != 1:
        raise ValueError(f"one paragraph must begin with {label.strip()}")
    return texts[0] if texts[0] != label.strip() else ""


def _sections(text: str, mark: str) -> tuple[str, dict[str, str]]:
    """Return what stands before the first heading of a kind, and the text under each."""
    head, *parts = re.split(rf"^{mark}(.+)\n", text, flags=re.M)
    return head, dict(zip(parts[::2], parts[1::2], strict=True))


def _rows(text: str) -> list[dict[str, str]]:
    """Return the rows of the first table of a text, by its columns."""
    lines = [line.strip()[1:-1].split("|") for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line] for line in lines]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]


def _meanings(rows: Sequence[Mapping[str, str]]) -> dict[str, Meaning]:
    return {
        row["parameter"].strip("`"): Meaning(meaning=row["meaning"], source=row["source"])
        for row in rows
    }


def _step(row: Mapping[str, str]) -> Step:
    again = _FROM.fullmatch(row.get("again", ""))
    return Step(
        does=row["step"],
        reads=row.get("reads", ""),
        prompts=re.findall(r"`(\w+)`", row.get("asks the model with", "")),
        only=row.get("only", ""),
        again=again[2] if again else row.get("again", ""),
        since=int(again[1]) if again else 0,
    )


def value_shown(value: object) -> str:
    """Return a value of a parameter as the page has it: ``12,000``, ``false``, ``mix``."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else str(value)


def faults(methods: Mapping[str, Method[Any]]) -> Iterator[str]:
    """Yield what is missing or wrong in the entries of these methods, and what to do about it."""
    from graphrag_pipeline.query.methods import parameter_rows

    senders = _senders(PROMPTS.read_text("utf-8"))
    places = _places()
    for name in sorted(places.keys() - methods.keys()):
        yield f"{places[name].file}: there is no method {name} any more; take it out"
    for name, method in methods.items():
        entry = entry_of(name)
        if entry is None:
            place = CORE.format(name=name)
            yield f"{place}: is not there; write it as the others beside it, then: make docs"
            continue
        place = f"{places[name].file}, {name}"
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
        yield f"add a row to the table of parameters: | `{name}` | source | meaning |"
    for name in sorted(entry.parameters.keys() - defaults.keys()):
        yield f"the method has no parameter {name} any more; take it out"
    for name, told in entry.parameters.items():
        same = told.source.partition(" (")[0] in (NO_VALUE, defaults.get(name))
        if not same and f"`{name}`" not in entry.differs:
            yield f"{name} is {defaults.get(name)} here, not {told.source}: say why in differs"


def _of_flow(entry: MethodEntry, sent: set[str]) -> Iterator[str]:
    if not entry.flow:
        yield "add the table of its steps"
    for number, step in enumerate(entry.flow, start=1):
        if step.prompts and not sent.intersection(step.prompts):
            yield f"step {number} asks the model, but the method sends no {', '.join(step.prompts)}"
        if bool(step.again) != (0 < step.since <= number):
            yield f"step {number}: again must be written as from 3: until when"
    named = {prompt for step in entry.flow for prompt in step.prompts}
    for prompt in sorted(sent - named):
        yield f"the method asks the model with {prompt}: no step has that"


def _senders(page: str) -> dict[str, set[str]]:
    """Return the prompts that each method was recorded to send, with any of its parameters."""
    sent: dict[str, set[str]] = {}
    for prompt, places in re.findall(r"^## (\w+)\n\nSent by (.*)$", page, re.M):
        methods = re.search(r"the methods? ((?:`[^`]+`(?:, )?)+)", places)
        for place in re.findall("`([^`]+)`", methods[1]) if methods else ():
            if prompt not in _OF_EVERY_METHOD:
                sent.setdefault(place.partition(",")[0], set()).add(prompt)
    return sent
