"""Logical forms: the steps that a question is decomposed into, by a model or by rule."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.llm.parsing import parse_json_object
from graphrag_pipeline.llm.schemas import BOOLEAN, Schema, choice, closed, listed
from graphrag_pipeline.llm.schemas import text as a_text
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.question import AnalysedQuestion
from graphrag_pipeline.query.writing.lists import one_line_of
from graphrag_pipeline.systems.kag.arithmetic import REFERENCE

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

StepKind = Literal["retrieval", "deduction", "arithmetic", "summary"]
KINDS: tuple[StepKind, ...] = get_args(StepKind)

_LONGEST = 400
_TASK_CHARS, _SUBJECT_CHARS = 200, 80
"""Most characters of a step that a model is asked for: a small one fills what it is given."""
MISSING_SCHEMA = closed(enough=BOOLEAN, question=a_text(_LONGEST))
"""The schema of a judgement: whether results are enough, and what is to be asked if not."""
_NAMED, _PAIR = 4, 2
_LINK = pattern_of(r"\s+(?:of|who|whom|that|which|whose|where)\s+", re.IGNORECASE)
_DIFFERENCE = pattern_of(
    r"\bhow (?:many|much) (?:\w+ )?(?:years?|older|younger|more|fewer|less|longer|shorter|later|"
    r"earlier|larger|higher|taller)\b",
    re.IGNORECASE,
)
_BETWEEN = pattern_of(r"\bbetween\s+", re.IGNORECASE)
_SMALL = pattern_of(r"^(?:the|a|an|is|was|are|were|did|does|do|in|on|at|by)\s+", re.IGNORECASE)


@dataclass(frozen=True)
class LogicalStep:
    """A step: what kind of work, what to find out or reckon, and about whom.

    ``task`` and ``subject`` name results of earlier steps by ``#n``. The task of an arithmetic step
    is an expression.
    """

    kind: StepKind
    task: str
    subject: str = ""

    def bound(self, results: Sequence[str]) -> LogicalStep:
        """Return the step with the results of earlier steps in place of their numbers."""
        return LogicalStep(
            self.kind, _with_results(self.task, results), _with_results(self.subject, results)
        )


def plan_schema(most: int) -> Schema:
    """Return the schema of a plan of at most so many steps."""
    step = closed(kind=choice(KINDS), task=a_text(_TASK_CHARS), subject=a_text(_SUBJECT_CHARS))
    return closed(steps=listed(step, most))


def read_plan(text: str, most: int) -> list[LogicalStep]:
    """Return the steps in a model's answer, at most ``most``.

    A step names earlier ones only. Raises ModelOutputError where there is none to retrieve.
    """
    reply = parse_json_object(text)
    listed = reply.get("steps")
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    steps: list[LogicalStep] = []
    for row in rows[:most]:
        kind, task, subject = (row.get(name) for name in ("kind", "task", "subject"))
        if kind not in KINDS or not isinstance(task, str) or not (line := _line(task)):
            continue
        about = _line(subject) if isinstance(subject, str) else ""
        if all(int(n) <= len(steps) for n in REFERENCE.findall(line)):
            steps.append(LogicalStep(kind, line, about))
    if not any(step.kind == "retrieval" for step in steps):
        raise ModelOutputError(
            'the answer must be a JSON object with the list "steps", at least one of them of the '
            'kind "retrieval", each with "kind", "task" and "subject"'
        )
    return steps


def read_missing(text: str) -> str:
    """Return what a model asks further; empty if it has enough.

    Raises ModelOutputError where it says neither.
    """
    reply = parse_json_object(text)
    enough, question = reply.get("enough"), reply.get("question")
    if enough is True:
        return ""
    if enough is not False or not isinstance(question, str):
        raise ModelOutputError(
            'the answer must be a JSON object with "enough", true or false, and the text "question"'
        )
    return _line(question)


def plan_by_rule(index: Release, question: str, most: int) -> list[LogicalStep]:
    """Return the steps of a question as far as a rule for English can tell.

    One that compares names, or asks how much they differ, is one retrieval for each name, and a
    deduction, or a difference. One that chains links ("the spouse of the director of ...") is one
    retrieval for each link, the innermost first. Any other is one retrieval.
    """
    named = op.entity_records(index, op.entities_named_in(index, question, _NAMED, apart=True))
    names = [record.title for record in named][: max(1, most - 1)]
    differs = _DIFFERENCE.search(question) is not None
    if len(names) > 1 and (differs or AnalysedQuestion.of(question).compares):
        steps = [LogicalStep("retrieval", _about(question, name, names), name) for name in names]
        if differs and len(names) == _PAIR:
            return [*steps, LogicalStep("arithmetic", "abs(#1 - #2)")]
        return [*steps, LogicalStep("deduction", question)]
    return _chain(question, names, most)


def use_of(number: int, later: Sequence[LogicalStep]) -> str:
    """Return what later steps need of a step's result: "number", "name", or "" for nothing."""
    users = [s for s in later if str(number) in REFERENCE.findall(f"{s.task} {s.subject}")]
    if any(step.kind == "arithmetic" for step in users):
        return "number"
    return "name" if users else ""


def _chain(question: str, names: Sequence[str], most: int) -> list[LogicalStep]:
    """Return a retrieval for each link of a chain, the innermost first."""
    ends = [match.span() for match in _LINK.finditer(question)][: most - 1]
    if not ends or any(len(question[:start].split()) < 1 for start, _ in ends):
        return [LogicalStep("retrieval", question, names[0] if names else "")]
    bounds = [0, *(end for _, end in ends)]
    # The last link and the one before say together what is looked up first: "the author of Brand".
    inner = _SMALL.sub("", question[bounds[-2] :].strip(" ?"))
    steps = [LogicalStep("retrieval", inner, names[0] if names else "")]
    for begin, (until, _) in reversed(list(zip(bounds[:-2], ends[:-1], strict=True))):
        link = question[begin:until].strip()
        steps.append(LogicalStep("retrieval", f"{link} of #{len(steps)}", f"#{len(steps)}"))
    return steps


def _about(question: str, name: str, names: Sequence[str]) -> str:
    """Return a question without the names of others that it compares one with."""
    text = _BETWEEN.sub("", question)
    for other in names:
        if other != name:
            joined = rf"(?:\b(?:and|or|than)\s+)?{re.escape(other)}(?:\s+(?:and|or)\b)?"
            text = re.sub(joined, " ", text, flags=re.IGNORECASE)
    return re.sub(r"\s+(?=[?.,])", "", " ".join(text.split()))


def _with_results(text: str, results: Sequence[str]) -> str:
    def result(match: re.Match[str]) -> str:
        place = int(match[1])
        return results[place - 1] if 1 <= place <= len(results) else ""

    return " ".join(REFERENCE.sub(result, text).split())


def _line(text: str) -> str:
    return one_line_of(text)[:_LONGEST]
