"""KAG: a question as a logical form, whose steps are solved on the graph and on text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import terms
from graphrag_pipeline.extraction.rules.sentences import sentence_spans
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, number
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.asking import Final
from graphrag_pipeline.query.writing.lists import one_line_of
from graphrag_pipeline.query.writing.references import Shown, shown_to_model
from graphrag_pipeline.systems.kag.arithmetic import (
    ArithmeticStepError,
    number_in,
    reckon,
    year_in,
)
from graphrag_pipeline.systems.kag.plan import (
    MISSING_SCHEMA,
    LogicalStep,
    plan_by_rule,
    plan_schema,
    read_missing,
    read_plan,
    use_of,
)

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking

UNKNOWN = "unknown"
_CHUNK_CANDIDATES, _EDGE_CANDIDATES = 200, 200
_LONGEST = 300
_PROMPT_TOKENS, _PLAN_TOKENS, _RESULT_TOKENS, _ANSWER_TOKENS = 500, 250, 40, 600
_JUDGE_TOKENS = 60


@dataclass(frozen=True)
class KagParameters:
    """KAG's logical-form solver: Liang et al., 2024 (arXiv 2409.13731), sections 2.2 and 2.3.

    A model decomposes the question into at most ``steps``: retrieval, deduction, arithmetic and
    summary, each of which may name the results of those before it. A retrieval starts from its
    subject in the graph, takes the ``relationships`` of it that are most like what it asks, and by
    mutual indexing the text these come from; where the graph does not have the subject, the text
    nearest to it, and what that names. ``top_k`` chunks of each are read, within ``step_tokens``,
    and answered in a line. A deduction reads the results alone; arithmetic is reckoned here. A
    model then judges whether the results are enough, and if not, asks what is missing, which is
    decomposed and solved in its turn: ``rounds`` at most. The answer is composed from all results
    and the best of what was read, in ``max_context_tokens``.

    Where this differs. KAG aligns its graph by a schema and concepts that people write; here it is
    the graph as it is. It judges and asks in two calls, here in one, which sees the results but not
    what was read for them. Without a model a rule for English decomposes, once; a result that later
    steps need is the entity that the step leads to, or the number in the sentence about its
    subject.
    """

    rounds: int = number(3)
    steps: int = number(5)
    top_k: int = number(5)
    relationships: int = number(10)
    reranked: int = number(40, least=0)
    step_tokens: int = number(4000)
    max_context_tokens: int = number(12_000)


@dataclass
class Solution:
    """Results of the steps so far: one each, and what each has read.

    ``of_round`` are those of the plan that is being solved, whose steps name them by number.
    """

    of_round: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    read: list[list[Record]] = field(default_factory=list)

    def add(self, step: LogicalStep, result: str | None, records: Sequence[Record] = ()) -> None:
        """Take in what a step has come to: "" if that is not known, None if nobody asks."""
        self.of_round.append(result or "")
        said = "" if result is None else f" = {result or UNKNOWN}"
        self.lines.append(f"{len(self.lines) + 1}. {step.kind}: {step.task}{said}")
        self.read.append(list(records))


def kag_search(index: Release, question: str, p: KagParameters) -> list[Record]:
    """Return what the steps of a question read, decomposed and solved by rule."""
    solution = Solution()
    plan = plan_by_rule(index, question, p.steps)
    for number_of_step, planned in enumerate(plan, 1):
        step = planned.bound(solution.of_round)
        records = step_records(index, step, p) if step.kind == "retrieval" else []
        if step.kind == "arithmetic":
            result = _reckoned([], planned, solution)
            step = step if result else planned
        else:
            use = use_of(number_of_step, plan[number_of_step:])
            result = _BY_RULE[use](index, step, records) if use else None
        solution.add(step, result, records)
        index.trace.step(f"{solution.lines[-1]} (by rule)")
    whole = LogicalStep("retrieval", question)
    return _composed(index, [step_records(index, whole, p), *solution.read], p)


def step_records(index: Release, step: LogicalStep, p: KagParameters) -> list[Record]:
    """Return entities, relationships and chunks for a retrieval, each led to by the other."""
    n = op.n_candidates(index, p.top_k, p.reranked)
    near = op.nearest(index, "chunks", step.task, max(n, _CHUNK_CANDIDATES))
    subjects = op.entities_titled(index, [step.subject]) if step.subject else {}
    subjects = subjects or op.entities_named_in(index, step.task, p.top_k, apart=True)
    if not subjects:
        subjects = op.entities_in(index, op.by_place(op.best(near, 1)), p.top_k)
    touching = op.relationships_of(index, subjects, _EDGE_CANDIDATES)
    edges = op.most_similar(index, "relationships", step.task, touching, p.relationships)
    of_graph = op.chunks_of(index, {}, op.by_place(edges), limit=_CHUNK_CANDIDATES)
    ranking = op.best(op.fuse([list(near), [key for key in near if key in of_graph]]), n)
    chunks = op.best(op.rerank(index, step.task, ranking, p.reranked), p.top_k)
    budget = min(p.step_tokens, p.max_context_tokens)
    nodes = op.fill(index, op.entity_records(index, subjects), budget // 6)
    links = op.fill(index, op.relationship_records(index, edges), budget // 3)
    budget -= op.tokens_of(index, nodes) + op.tokens_of(index, links)
    text = op.fill(index, op.chunk_records(index, op.chunks_within(index, chunks, budget)), budget)
    return [*nodes, *links, *text]


async def kag_answer(asking: Asking, p: KagParameters) -> Final | None:
    """Solve the question step by step, and then what is missing; compose the answer."""
    index, solution, asked = asking.index, Solution(), [asking.question]
    while True:
        solution.of_round = []
        for planned in await _plan(asking, asked, p):
            step = planned.bound(solution.of_round)
            records: list[Record] = []
            if step.kind == "retrieval":
                records = await asking.retrieve(partial(step_records, index, step, p))
            result = await _result(asking, planned, step, records, solution)
            solution.add(step, result, records)
            asking.trace.step(solution.lines[-1])
        missing = await _missing(asking, solution) if len(asked) < p.rounds else ""
        if not missing or missing in asked:
            break
        asking.trace.step(f"missing: {missing}")
        asked.append(missing)
    records = await asking.retrieve(lambda: _composed(index, solution.read, p))
    if not records:
        return None
    values = {"context": shown_to_model(records), "text": "\n".join(solution.lines)}
    return Final("answer", "kag_answer", values, Shown(records), tuple(records))


async def _plan(asking: Asking, asked: Sequence[str], p: KagParameters) -> list[LogicalStep]:
    """Return the steps of the last of what is asked; those of the rule where none can be read."""
    read, values = partial(read_plan, most=p.steps), {"most": str(p.steps), "question": asked[-1]}
    plan = asking.read("plan", read, plan_schema(p.steps), "kag_plan", **values)
    if (steps := await asking.tried("plan", plan)) is not None:
        return steps
    text = asking.search_text if len(asked) == 1 else asked[-1]
    return await asking.retrieve(lambda: plan_by_rule(asking.index, text, p.steps))


async def _missing(asking: Asking, solution: Solution) -> str:
    """Return what is to be asked before the question can be answered; empty if nothing is."""
    text = "\n".join(solution.lines)
    judged = asking.read("judge", read_missing, MISSING_SCHEMA, "kag_judge", text=text)
    return await asking.tried("judge", judged) or ""


async def _result(
    asking: Asking,
    planned: LogicalStep,
    step: LogicalStep,
    records: Sequence[Record],
    solution: Solution,
) -> str:
    """Return what a step comes to, empty if that is not known."""
    if step.kind == "arithmetic":
        return _reckoned(asking.failures, planned, solution)
    values = {
        "context": shown_to_model(records) if records else "",
        "text": "\n".join(solution.lines),
        "queries": step.task,
    }
    answer = await asking.tried(step.kind, asking.say(step.kind, "kag_step", **values))
    said = one_line_of(answer or "")[:_LONGEST]
    return "" if said.strip(" .").casefold() == UNKNOWN else said


def _reckoned(failures: list[str], planned: LogicalStep, solution: Solution) -> str:
    try:
        return reckon(planned.task, solution.of_round)
    except ArithmeticStepError as error:
        failures.append(f"arithmetic: {planned.task}: {error}")
        return ""


def _name_by_rule(index: Release, step: LogicalStep, records: Sequence[Record]) -> str:
    """Return the entity that a retrieval leads to."""
    asked = set(terms(step.task))
    own = {record.id for record in records if record.kind == "entity"}
    for edge in (record for record in records if record.kind == "relationship"):
        ends = [edge.attributes[end] for end in ("source_id", "target_id")]
        far = next((key for key in ends if key not in own), "")
        for record in op.entity_records(index, {far: 1.0}) if far else ():
            if not asked.issuperset(terms(record.title)):
                return record.title
    chunks = {record.id: 1.0 for record in records if record.kind == "chunk"}
    named = op.entity_records(index, op.entities_in(index, op.best(chunks, 1), 10))
    return next((r.title for r in named if not asked.issuperset(terms(r.title))), "")


def _number_by_rule(_: Release, step: LogicalStep, records: Sequence[Record]) -> str:
    """Return the number in the sentence about the subject that is most like the task.

    A question of years, or of what is older, earlier or later, takes nothing but a year.
    """
    subject, asked = set(terms(step.subject)), set(terms(step.task))
    number_of = year_in if _OF_TIME.search(step.task) else number_in
    best, most = "", -1
    for text in (record.text for record in records if record.kind == "chunk"):
        for start, end in sentence_spans(text):
            sentence = text[start:end]
            words = set(terms(sentence))
            if len(words & asked) <= most or not subject <= words:
                continue
            value = number_of(re.sub(re.escape(step.subject), " ", sentence, flags=re.IGNORECASE))
            if value is not None:
                best, most = f"{value:g}", len(words & asked)
    return best


_OF_TIME = pattern_of(r"\b(?:years?|older|younger|earlier|later)\b", re.IGNORECASE)
_BY_RULE = {"name": _name_by_rule, "number": _number_by_rule}


def _composed(
    index: Release, of_steps: Sequence[Sequence[Record]], p: KagParameters
) -> list[Record]:
    """Return the records of all steps by turns, each once: a third each for the graph's two."""
    records = {(r.kind, r.id): r for of_step in of_steps for r in of_step}
    budget, composed = p.max_context_tokens, []
    for kind, share in (("entity", 1 / 6), ("relationship", 1 / 6), ("chunk", 1.0)):
        turns = [{r.id: r.score for r in of_step if r.kind == kind} for of_step in of_steps]
        candidates = [records[kind, key] for key in op.in_turn(*turns)]
        part = op.fill(index, candidates, min(budget, int(p.max_context_tokens * share)))
        budget -= op.tokens_of(index, part)
        composed += part
    return composed


def kag_estimate(index: Release, p: KagParameters) -> tuple[float, float, float]:
    """Return what an answer takes with all rounds and steps: calls, tokens read and written."""
    calls = p.rounds * (p.steps + 2)
    read = p.rounds * p.steps * p.step_tokens + p.max_context_tokens + calls * _PROMPT_TOKENS
    of_round = _PLAN_TOKENS + p.steps * _RESULT_TOKENS + _JUDGE_TOKENS
    return calls, read, p.rounds * of_round + _ANSWER_TOKENS


KAG = Method(
    name="kag",
    summary="steps of a logical form, each solved on graph and text",
    parameters=KagParameters,
    retrieve=kag_search,
    answer=kag_answer,
    estimate=kag_estimate,
)
