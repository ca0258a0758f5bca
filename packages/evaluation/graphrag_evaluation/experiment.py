"""An experiment: which conditions answer which questions, and how the answers are judged.

It is read from a TOML file::

    name = "levels"
    questions = "questions.jsonl"      # a file beside this one, or the name of a question set
    preset = "graphrag"                # its conditions, judge and tables, as in the paper
    methods = ["local", "lightrag:mode=mix"]
    levels = [0, 1]                    # each method that reads a level, at each of these
    context_tokens = [8000, 16000]     # each method with a budget, with each of these
    where = {year = ["2019", "2020"]}  # asked of these documents only
    per_document = true                # each question, of an index of its document alone

    [[condition]]
    name = "smaller chunks"
    method = "basic:top_k=20"
    home = "../other-index"

    [[condition]]
    name = "smaller chunks, made here"
    method = "basic:top_k=20"
    index = {chunks = {size = 300}}    # of an index of the same documents that differs so

    [judge]
    replicates = 5
    against = "SS"                     # default: every pair
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from graphrag_evaluation.answers_elsewhere import METHOD, GivenAnswers, read_answers
from graphrag_evaluation.file_errors import parsed
from graphrag_evaluation.paper import Paper, paper_of, with_budget
from graphrag_evaluation.step_models import StepModel
from graphrag_evaluation.steps import (
    Assertions,
    Claims,
    Judge,
    Reference,
    Relevance,
    SelfCheck,
)
from graphrag_evaluation.variants import Changes
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import fingerprint
from graphrag_pipeline.query.ask import Ask
from graphrag_pipeline.query.limited_release import Where, checked_where
from graphrag_pipeline.query.methods import method_named, methods_taking, read_method
from graphrag_pipeline.query.short_answers import AnswerStyle

WORDS: Mapping[str, str] = paper_of("graphrag").methods
"""Conditions of the GraphRAG paper (4.1.2), by their names there."""


_BUDGET = "max_context_tokens"


@dataclass(frozen=True)
class Condition:
    """A method with parameters, on what is published in ``home`` (default: the settings').

    ``index`` are the settings in which the index of the same documents that it is asked of differs,
    by section: a run makes it. ``where`` limits it to documents, as that of
    :class:`~graphrag_pipeline.query.ask.Ask`. ``answer_style`` is that of its answers, by default
    the experiment's, then the settings'. ``as_much_as`` is a condition before it, whose tokens of
    context are its budget, question by question. ``given`` are its answers where they were made
    elsewhere: nothing is asked then. Where each document has an index of its own there is a
    condition of the same name for each ``document``, by uri, which ``asks`` those questions alone,
    by id.
    """

    name: str
    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    home: Path | None = None
    release: str | None = None
    index: Changes = field(default_factory=dict)
    answer_style: AnswerStyle | None = None
    where: Where = field(default_factory=dict)
    as_much_as: str = ""
    given: GivenAnswers | None = field(default=None, repr=False)
    document: str = ""
    asks: frozenset[str] | None = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """Its name, with the document that it is asked of, if that is one."""
        return f"{self.name}, {self.document}" if self.document else self.name

    def __post_init__(self) -> None:
        object.__setattr__(self, "where", checked_where(self.where))

    def ask(self, question: str, budget: int | None = None) -> Ask:
        """Return a question as this condition asks it, within a budget of tokens of its own."""
        own = {} if budget is None else {_BUDGET: budget}
        parameters = {**self.parameters, **own}
        return Ask(question=question, method=self.method, parameters=parameters, where=self.where)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Given(_Strict):
    """A condition as a file gives it."""

    name: str = ""
    method: str
    home: str = ""
    release: str = ""
    index: dict[str, Any] = Field(default_factory=dict)
    answer_style: AnswerStyle | None = None
    where: dict[str, Any] = Field(default_factory=dict)
    as_much_as: str = ""


class _File(_Strict):
    name: str = ""
    questions: str
    preset: str = ""
    methods: tuple[str, ...] = ()
    levels: tuple[int, ...] = ()
    context_tokens: tuple[int, ...] = ()
    answer_style: AnswerStyle | None = None
    where: dict[str, Any] = Field(default_factory=dict)
    retrieval_only: bool = False
    per_document: bool | None = None
    limit: Annotated[int, Field(ge=0)] = 0
    metrics: tuple[str, ...] = ()
    condition: tuple[_Given, ...] = ()
    answers: tuple[str, ...] = ()
    judge: Judge | None = None
    claims: Claims | None = None
    reference: Reference | None = None
    assertions: Assertions | None = None
    relevance: Relevance | None = None
    self_check: SelfCheck | None = None


@dataclass(frozen=True)
class Experiment:
    """Conditions over a set of questions.

    ``questions`` is a file or the name of a stored set, of which the first ``limit`` are asked (0:
    all). ``retrieval_only`` asks for no answers. ``metrics`` are those beyond the usual ones.
    ``judge`` and the other steps are None where no model is to look at the answers.
    ``per_document`` asks each question of an index of its document alone; None: as the preset does.
    ``preset`` names the paper whose tables it fills, ``lacking`` its conditions that there are not,
    with the reason.
    """

    name: str
    questions: str
    conditions: tuple[Condition, ...]
    retrieval_only: bool = False
    limit: int = 0
    metrics: tuple[str, ...] = ()
    judge: Judge | None = None
    claims: Claims | None = None
    reference: Reference | None = None
    assertions: Assertions | None = None
    relevance: Relevance | None = None
    self_check: SelfCheck | None = None
    preset: str = ""
    lacking: tuple[tuple[str, str], ...] = ()
    per_document: bool | None = None

    @property
    def names(self) -> list[str]:
        """The names of its conditions, each once."""
        return list(dict.fromkeys(condition.name for condition in self.conditions))

    @property
    def variants(self) -> dict[str, Changes]:
        """The indexes by other settings that it asks, each by the first condition that does."""
        asked = {fingerprint(each.index): each for each in reversed(self.conditions) if each.index}
        return {each.name: each.index for each in reversed(asked.values())}

    @property
    def steps(self) -> list[StepModel]:
        """The steps in which a model looks at the answers, or at what was retrieved for them."""
        steps = (
            self.claims, self.reference, self.assertions, self.relevance, self.self_check,
            self.judge,
        )  # fmt: skip
        return [step for step in steps if step]

    @property
    def asks_models(self) -> bool:
        """Whether a model is to look at the answers, or at what was retrieved for them."""
        return bool(self.steps)

    @property
    def reads_answers(self) -> bool:
        """Whether a model is to look at the answers."""
        return any((self.judge, self.claims, self.reference, self.assertions, self.self_check))


def read_experiment(file: Path) -> Experiment:
    """Read a TOML file. Raises InputError that says which line or value is wrong."""
    try:
        text = file.read_text("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not valid TOML: {error}") from None
    contents = parsed(text, str(file), _File)
    try:
        return _experiment(contents, file)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def experiment_of(
    name: str,
    questions: str,
    methods: Sequence[str],
    *,
    preset: str = "",
    levels: Sequence[int] = (),
    context_tokens: Sequence[int] = (),
    where: Mapping[str, Any] | None = None,
    **more: Any,
) -> Experiment:
    """Return the experiment that runs methods, or the paper's conditions such as C0, on questions.

    ``preset`` adds the conditions, metrics, judge and claims of a paper, where others are not
    given: see :mod:`~graphrag_evaluation.paper`.

    A method that reads a community level is run at each of ``levels``, one that has a budget with
    each of ``context_tokens``, all of the documents that ``where`` says; ``more`` are further
    fields of :class:`Experiment`. Raises InputError for an unknown method or parameter, and for
    what is no filter.
    """
    conditions = [
        replace(condition, where=where or {})
        for condition in _conditions(methods, preset, levels, context_tokens)
    ]
    return checked(_by_preset(Experiment(name, questions, tuple(conditions), **more), preset))


def _experiment(contents: _File, file: Path) -> Experiment:
    spread = _conditions(
        contents.methods, contents.preset, contents.levels, contents.context_tokens
    )
    tables = [_from_table(table, file.parent) for table in contents.condition]
    named = {condition.name for condition in tables if contents.preset}
    spread = [condition for condition in spread if condition.name not in named]
    styled = [
        replace(
            condition,
            answer_style=condition.answer_style or contents.answer_style,
            where=condition.where or contents.where,
        )
        for condition in (*spread, *tables)
    ]
    return checked(
        _by_preset(
            Experiment(
                name=contents.name or file.stem,
                questions=_questions(contents.questions, file.parent),
                conditions=(*styled, *_given([file.parent / name for name in contents.answers])),
                retrieval_only=contents.retrieval_only,
                limit=contents.limit,
                metrics=contents.metrics,
                judge=contents.judge,
                claims=contents.claims,
                reference=contents.reference,
                assertions=contents.assertions,
                relevance=contents.relevance,
                self_check=contents.self_check,
                per_document=contents.per_document,
            ),
            contents.preset,
        )
    )


def _conditions(
    methods: Sequence[str], preset: str, levels: Sequence[int], budgets: Sequence[int]
) -> list[Condition]:
    paper = paper_of(preset) if preset else None
    rows = [] if paper is None else list(_of_paper(paper)[0])
    budgets = budgets or (paper.context_tokens if paper else ())
    return _spread([*rows, *map(_condition, methods)], levels, budgets)


def _of_paper(paper: Paper) -> tuple[list[Condition], dict[str, str]]:
    """Return the conditions of a paper, and why others are lacking, by name."""
    conditions, lacking = [], {}
    for row in paper.condition:
        try:
            method = read_method(row.method)
            conditions.append(
                Condition(row.name, *method, index=row.index, as_much_as=row.as_much_as)
            )
        except InputError as error:
            lacking[row.name] = str(error).partition(":")[0]
    return conditions, lacking


def _by_preset(experiment: Experiment, preset: str) -> Experiment:
    """Return an experiment with what a preset says beyond conditions, where it says nothing."""
    if not preset:
        return experiment
    paper = paper_of(preset)
    names = {condition.name for condition in experiment.conditions}
    retrieval_only = experiment.retrieval_only or paper.retrieval_only
    asks = not retrieval_only
    judge = experiment.judge or (_judge_of(paper, names) if asks else None)
    claims = paper.claims if asks else None
    return replace(
        experiment,
        retrieval_only=retrieval_only,
        metrics=experiment.metrics or paper.measured,
        judge=judge,
        claims=experiment.claims or claims,
        preset=preset,
        lacking=tuple(pair for pair in _of_paper(paper)[1].items() if pair[0] not in names),
    )


def _judge_of(paper: Paper, names: Collection[str]) -> Judge | None:
    if paper.judge is None:
        return None
    among = tuple(name for name in paper.judge.among if name in names)
    against = paper.judge.against if paper.judge.against in names else ""
    return paper.judge.model_copy(update={"among": among, "against": against})


def _given(files: Sequence[Path]) -> list[Condition]:
    answers = read_answers(files)
    return [Condition(name, METHOD, given=given) for name, given in answers.items()]


def _questions(name: str, folder: Path) -> str:
    beside = folder / name
    return str(beside) if beside.is_file() else name


def _from_table(table: _Given, folder: Path) -> Condition:
    condition = _condition(table.method)
    home = (folder / table.home).resolve() if table.home else None
    name = table.name or condition.name
    return replace(
        condition,
        name=name,
        home=home,
        release=table.release or None,
        index=table.index,
        answer_style=table.answer_style,
        where=table.where,
        as_much_as=table.as_much_as,
    )


def _condition(spec: str) -> Condition:
    method, parameters = read_method(WORDS.get(spec, spec))
    return Condition(spec, method, parameters)


def _spread(
    conditions: Iterable[Condition], levels: Sequence[int], budgets: Sequence[int]
) -> list[Condition]:
    """Return each condition at each level and with each budget that it can have and has not."""
    taking = {name: methods_taking(name) for name in ("level", _BUDGET)}

    def values(condition: Condition, parameter: str, wanted: Sequence[int]) -> Sequence[int | None]:
        has = parameter in condition.parameters or condition.method not in taking[parameter]
        has |= parameter == _BUDGET and bool(condition.as_much_as)
        return [None] if has or not wanted else wanted

    spread = []
    for condition in conditions:
        at = values(condition, "level", levels)
        budget = values(condition, _BUDGET, budgets)
        several = len(budgets) > 1
        spread += [_with(condition, *pair, several) for pair in product(at, budget)]
    return spread


def _with(condition: Condition, level: int | None, budget: int | None, several: bool) -> Condition:
    name, parameters = condition.name, dict(condition.parameters)
    if level is not None:
        name, parameters["level"] = f"{name} level {level}", level
    if budget is not None:
        name = with_budget(name, budget) if several else name
        parameters[_BUDGET] = budget
    return replace(condition, name=name, parameters=parameters)


def checked(experiment: Experiment) -> Experiment:
    """Return an experiment; raises InputError if it cannot be run as it is."""
    names = [condition.name for condition in experiment.conditions]
    if not names:
        raise InputError(
            "an experiment needs conditions: methods, a preset, [[condition]] or answers"
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"two conditions are called {twice[0]!r}: give one another name")
    for number, condition in enumerate(experiment.conditions):
        if condition.given is None:
            _check_parameters(condition)
        if condition.index and (condition.home or condition.release or experiment.per_document):
            raise InputError(
                f"{condition.name}: index makes one of all documents: leave out home, release and "
                "per_document"
            )
        _check_budget(condition, names[:number])
    judge = experiment.judge or Judge()
    if judge.against and judge.against not in names:
        raise InputError(f"judge.against = {judge.against!r} is no condition of the experiment")
    if strangers := [name for name in judge.among if name not in names]:
        raise InputError(f"judge.among: {strangers[0]!r} is no condition of the experiment")
    reference = experiment.reference or Reference()
    if reference.condition and reference.condition not in names:
        raise InputError(f"reference.condition = {reference.condition!r} is no condition")
    given = any(condition.given for condition in experiment.conditions)
    if experiment.retrieval_only and (experiment.reads_answers or given):
        raise InputError("retrieval_only makes no answers: there is nothing to judge")
    return experiment


def _check_parameters(condition: Condition) -> None:
    try:
        method_named(condition.method).check(condition.parameters)
    except InputError as error:
        raise InputError(f"{condition.name}: {error}") from None


def _check_budget(condition: Condition, before: Sequence[str]) -> None:
    other = condition.as_much_as
    if other and condition.method not in methods_taking(_BUDGET):
        raise InputError(f"{condition.name}: {condition.method} has no {_BUDGET} for as_much_as")
    if other and other not in before:
        raise InputError(
            f"{condition.name}: as_much_as = {other!r} must name a condition that stands before it"
        )
