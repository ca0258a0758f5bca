"""The answers of an experiment: each condition's to each question, those there are left alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_evaluation import traces
from graphrag_evaluation.answer_costs import AnswerSpending, counting
from graphrag_evaluation.answers_elsewhere import check_questions, row_of
from graphrag_evaluation.experiment import Condition, Experiment
from graphrag_evaluation.keeping import keeping
from graphrag_evaluation.questions.datasets import read_questions
from graphrag_evaluation.questions.question import (
    Question,
    get_questions,
    put_questions,
    set_name_of,
    set_names,
)
from graphrag_evaluation.store import EvaluationStore
from graphrag_evaluation.variants import variant_of
from graphrag_pipeline.core.errors import (
    ConfigError,
    GraphRAGError,
    InputError,
    NothingPublishedError,
    StorageError,
)
from graphrag_pipeline.core.model_settings import EndpointSettings
from graphrag_pipeline.core.progress import report
from graphrag_pipeline.core.settings import (
    CONFIG_FILE,
    Settings,
    fingerprint,
    load_settings,
)
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.llm.configured import all_prices, answered_by, model_of, prompts_folder
from graphrag_pipeline.llm.errors import ModelError
from graphrag_pipeline.llm.running import run_calls, work_through
from graphrag_pipeline.query import Answer, QueryEngine, Retrieval
from graphrag_pipeline.query.ask import Ask
from graphrag_pipeline.query.methods import method_named
from graphrag_pipeline.query.methods.method import as_mapping
from graphrag_pipeline.query.short_answers import RULE
from graphrag_pipeline.store.index_store import insert

_AT_ONCE = 4
"""So many questions at a time where a model answers; each may be several calls."""
_MILLISECONDS = 1000.0


class UnaskableError(GraphRAGError):
    """An error of one question that every other question of the condition would meet too."""


@dataclass(frozen=True)
class Workload:
    """A condition's share of an experiment.

    ``answer_ids`` are its answers by question, ``unanswered`` the questions whose answer has to be
    made. ``error`` says why this condition cannot be asked at all. ``questions`` are all it is to
    answer, ``budgets`` the most tokens of context of those that have a budget of their own.
    ``own_ids`` are the answers of a condition that budgets come to.
    """

    condition: Condition
    release: str
    parameters: Mapping[str, Any]
    answer_ids: Mapping[str, str]
    unanswered: tuple[Question, ...]
    error: str = ""
    questions: tuple[Question, ...] = ()
    budgets: Mapping[str, int] = field(default_factory=dict)
    own_ids: Mapping[str, str] = field(default_factory=dict)

    def ask(self, question: Question) -> Ask:
        """Return a question as its condition asks it."""
        return self.condition.ask(question.text, self.budgets.get(question.id))

    @property
    def parameters_json(self) -> str:
        """The parameters as JSON, and ``where`` it is asked where that is not everywhere."""
        where = {"where": self.condition.where} if self.condition.where else {}
        return json.dumps({**self.parameters, **where}, sort_keys=True)


@dataclass(frozen=True)
class AnsweredQuestion:
    """The answers of a run of an experiment: ``made`` answers now, and ``reused`` earlier ones.

    ``errors`` are of conditions that could not be asked, ``failed`` counts questions without an
    answer by condition, with the first reason.
    """

    questions: int
    made: int
    reused: int
    errors: Mapping[str, str]
    failed: Mapping[str, tuple[int, str]]


def load_questions(store: EvaluationStore, experiment: Experiment) -> tuple[str, list[Question]]:
    """Return the name of the question set and the questions to ask; a file is stored as a set.

    Raises InputError where there is neither a file nor a set of the name, and for answers made
    elsewhere to other questions.
    """
    file = Path(experiment.questions)
    name = experiment.questions
    place_of: dict[str, str] = {}
    with store.read() as con:
        is_kept = name in set_names(con)
    if file.is_file() or (file.is_dir() and not is_kept):
        questions = read_questions(file)
        place_of = {question.id: question.place for question in questions}
        name = _kept(store, file, questions)
    with store.read() as con:
        questions = get_questions(con, name)
    if place_of:
        questions = [replace(q, place=place_of.get(q.id, "")) for q in questions]
    for condition in experiment.conditions:
        if condition.given is not None:
            check_questions(condition.given, questions)
    return name, questions[: experiment.limit or None]


def _kept(store: EvaluationStore, file: Path, questions: Sequence[Question]) -> str:
    """Keep the questions of a file, unless they are kept as they are; return their set's name."""
    with store.transaction() as con:
        name = set_name_of(con, file)
        distinct = list({question.id: question for question in questions}.values())
        if name not in set_names(con) or get_questions(con, name) != distinct:
            put_questions(con, name, distinct)
    return name


def look(
    store: EvaluationStore,
    experiment: Experiment,
    settings: Settings,
    questions: Sequence[Question],
) -> list[Workload]:
    """Return each condition with the answers that it wants and lacks; nothing is asked."""
    looked_at: dict[int, Workload] = {}
    for conditions in _by_place(experiment).values():
        looked_at |= _look_at_place(conditions, experiment, settings, questions)
    workloads = [looked_at[number] for number in range(len(experiment.conditions))]
    return _measured(store, workloads)


def _measured(store: EvaluationStore, workloads: Sequence[Workload]) -> list[Workload]:
    """Return shares with the budgets that are known by now, and the answers that they lack."""
    # One made while some of its calls failed is made again; those that did not are in the cache.
    with store.read() as con:
        rows = con.execute(
            "SELECT answer_id, context_tokens FROM answers WHERE len(failures) = 0"
        ).fetchall()
    have = dict(rows)
    measured: dict[tuple[str, str], Workload] = {}
    for workload in workloads:
        condition = workload.condition
        other = measured.get((condition.as_much_as, condition.document))
        measured[condition.name, condition.document] = _with_missing(
            _with_budgets(workload, other, have), have
        )
    return [*measured.values()]


def _with_budgets(
    workload: Workload, other: Workload | None, tokens: Mapping[str, int]
) -> Workload:
    """Return a share whose questions have the tokens of another condition's answers as budgets.

    An answer is another with another budget; while that is not known, by the answer it waits for.
    """
    if not workload.condition.as_much_as or workload.error:
        return workload
    theirs = other.answer_ids if other else {}
    waits_for = {question: theirs.get(question, "") for question in workload.own_ids}
    budgets = {q: tokens[answer] for q, answer in waits_for.items() if answer in tokens}
    ids = {
        question: fingerprint(id, budgets.get(question, waits_for[question]))
        for question, id in workload.own_ids.items()
    }
    return replace(workload, budgets=budgets, answer_ids=ids)


def answer_questions(
    store: EvaluationStore, experiment: Experiment, settings: Settings
) -> AnsweredQuestion:
    """Make the answers that are missing, and note which answers the experiment consists of.

    Whatever was made is kept if the run ends early. Raises InputError if no condition can be
    asked, and the model's error where every other call would meet it too.
    """
    set_name, questions = load_questions(store, experiment)
    conditions = look(store, experiment, settings, questions)
    if all(workload.error for workload in conditions):
        raise InputError(f"{conditions[0].condition.label}: {conditions[0].error}")
    _begin(store, experiment, set_name)
    total = sum(len(workload.unanswered) for workload in conditions)
    failures: dict[str, tuple[int, str]] = {}
    unaskable = {w.condition.label: w.error for w in conditions if w.error}
    n_unaskable = Counter[str]()
    for workload in conditions:
        if workload.error:
            n_unaskable[workload.condition.name] += len(workload.questions)
    n_answered = 0

    def note_answer() -> None:
        nonlocal n_answered
        n_answered += 1
        report("answers", n_answered, total)

    try:
        for number, workload in enumerate(conditions):
            if workload.condition.as_much_as and len(workload.budgets) < len(workload.questions):
                conditions[:] = _measured(store, conditions)
                workload = conditions[number]
            try:
                problems = make_missing(store, experiment, settings, workload, note_answer)
            except UnaskableError as error:
                unaskable[workload.condition.label] = str(error)
                n_unaskable[workload.condition.name] += len(workload.questions)
                continue
            if problems:
                name = workload.condition.name
                n_before, first = failures.get(name, (0, problems[0]))
                failures[name] = (n_before + len(problems), first)
    finally:
        _note_answers(store, experiment, conditions)
        _note_unanswered(store, experiment, _reasons(conditions, failures, unaskable, n_unaskable))
    n_wanted = sum(len(workload.answer_ids) for workload in conditions)
    errors = told_once((w.condition, unaskable.get(w.condition.label, "")) for w in conditions)
    return AnsweredQuestion(len(questions), n_answered, n_wanted - total, errors, failures)


def make_missing(
    store: EvaluationStore,
    experiment: Experiment,
    settings: Settings,
    workload: Workload,
    note_answer: Callable[[], None],
) -> list[str]:
    """Make and keep the answers that a condition lacks; return why some could not be made.

    Those that an earlier run made in part are made again. Raises UnaskableError, and the model's
    error where every other call would meet it too.
    """
    if not workload.unanswered:
        return []
    _forget(store, [workload.answer_ids[question.id] for question in workload.unanswered])
    with keeping(store, "answers", "answer_id", _SCHEMA) as keep:

        def keep_answer(answer: Mapping[str, Any]) -> None:
            keep(answer)
            note_answer()

        return _ask(workload, experiment, settings, keep_answer)


def told_once(reasons: Iterable[tuple[Condition, str]]) -> dict[str, str]:
    """Return the first reason why each condition is not asked; empty reasons are none.

    Of one that is not asked of several documents it is said of how many.
    """
    by_name: dict[str, list[tuple[str, str]]] = {}
    for condition, reason in reasons:
        if reason:
            by_name.setdefault(condition.name, []).append((condition.label, reason))
    told: dict[str, str] = {}
    for name, those in by_name.items():
        (label, reason), *others = those
        told[f"{name}, {len(those):,} documents" if others else label] = reason
    return told


def _reasons(
    workloads: Sequence[Workload],
    failures: Mapping[str, tuple[int, str]],
    unaskable: Mapping[str, str],
    n_unaskable: Mapping[str, int],
) -> dict[str, tuple[int, str]]:
    """Return how many questions each condition did not answer, and the first reason."""
    reasons = dict(failures)
    for workload in workloads:
        condition = workload.condition
        if (reason := unaskable.get(condition.label)) and condition.name in n_unaskable:
            n_failed, first = failures.get(condition.name, (0, reason))
            reasons[condition.name] = (n_failed + n_unaskable[condition.name], first)
    return reasons


def evaluation_settings(settings: Settings, condition: Condition) -> Settings:
    """Return the settings that a condition is asked with, calls cached.

    Those beside the index of another home say how it was embedded; the model is the same for all.
    """
    home: dict[str, Any] = {}
    if condition.home and condition.index:
        of_index = variant_of(settings, condition.index).embeddings
        home = {"home": str(condition.home), "embeddings": of_index}
    elif condition.home:
        beside = condition.home / CONFIG_FILE
        beside_settings = (
            load_settings(beside, home=condition.home) if beside.is_file() else settings
        )
        home = {"home": str(condition.home), "embeddings": beside_settings.embeddings}
    changes: dict[str, Any] = {"concurrency": _share(settings.llm)}
    if condition.document or condition.index:
        changes["shared_cache"] = str(settings.home_path)
    llm = settings.llm.model_copy(update=changes)
    models = {
        name: model.model_copy(update={"concurrency": _share(model)})
        if "concurrency" in model.model_fields_set
        else model
        for name, model in settings.models.items()
    }
    style = condition.answer_style or settings.query.answer_style
    # Methods are compared as they are published: none of them reads dates.
    own = {"cache": True, "answer_style": style, "dates": False}
    query = settings.query.model_copy(update=own)
    return settings.model_copy(update={**home, "llm": llm, "models": models, "query": query})


def _share(model: EndpointSettings) -> int:
    """Return the calls at once of each of the questions that are asked together."""
    return max(1, model.concurrency // _AT_ONCE)


def opened(experiment: Experiment, settings: Settings) -> Iterator[QueryEngine]:
    """Yield an engine for each release that an experiment is asked of, open until the next.

    What cannot be opened was left out of the answers, too, and told.
    """
    places, releases = set[object](), set[str]()
    for condition in experiment.conditions:
        place = (condition.home, condition.release)
        if condition.given is not None or place in places:
            continue
        places.add(place)
        unaskable = suppress(NothingPublishedError, InputError, StorageError)
        with unaskable, open_engine(condition, settings) as engine:
            if (release := engine.index.facts.id) not in releases:
                releases.add(release)
                yield engine


@contextmanager
def open_engine(condition: Condition, settings: Settings) -> Iterator[QueryEngine]:
    """Yield the engine that a condition is asked with.

    Each has its own: what another condition has loaded or embedded would make it look fast.
    """
    own = evaluation_settings(settings, condition)
    with QueryEngine(own.home_path, release=condition.release, settings=own) as engine:
        yield engine


Numbered = Sequence[tuple[int, Condition]]
"""Conditions with their numbers in the experiment."""


def _by_place(experiment: Experiment) -> Mapping[object, Numbered]:
    """Return conditions by the release that they are asked of: each is opened once to look at."""
    places: dict[object, list[tuple[int, Condition]]] = {}
    for number, condition in enumerate(experiment.conditions):
        place = ("given",) if condition.given is not None else (condition.home, condition.release)
        places.setdefault(place, []).append((number, condition))
    return places


def _look_at_place(
    conditions: Numbered,
    experiment: Experiment,
    settings: Settings,
    questions: Sequence[Question],
) -> dict[int, Workload]:
    """Return the shares of conditions of one place, by their numbers."""
    own = {
        number: tuple(q for q in questions if condition.asks is None or q.id in condition.asks)
        for number, condition in conditions
    }
    if conditions[0][1].given is not None:
        return {number: _look_at_given(condition, own[number]) for number, condition in conditions}
    try:
        with open_engine(conditions[0][1], settings) as engine:
            return {
                number: _look_at(condition, engine, experiment, settings, own[number])
                for number, condition in conditions
            }
    except GraphRAGError as error:
        return {
            number: _unaskable(condition, error, own[number]) for number, condition in conditions
        }


def _look_at_given(condition: Condition, questions: tuple[Question, ...]) -> Workload:
    given = condition.given or {}
    ids = {q.id: given[q.text].id for q in questions if q.text in given}
    return Workload(condition, "", {}, ids, (), questions=questions)


def _look_at(
    condition: Condition,
    engine: QueryEngine,
    experiment: Experiment,
    settings: Settings,
    questions: tuple[Question, ...],
) -> Workload:
    own = evaluation_settings(settings, condition)
    try:
        method = method_named(condition.method)
        if not experiment.retrieval_only:
            engine.check(condition.method, condition.parameters, own.query.answer_style)
        values = as_mapping(method.parametrise(condition.parameters, settings))
        # Raises where no document is as wanted.
        engine.index.limited(condition.where)
    except GraphRAGError as error:
        return _unaskable(condition, error, questions)
    release = engine.index.facts.id
    made_by = [] if experiment.retrieval_only else _made_by(own)
    found_by = _found_by(settings, values)
    if condition.where:
        found_by["where"] = condition.where
    key = (version("graphrag-pipeline"), condition.method, found_by, release, made_by)
    apart = ["apart"] if condition.document or condition.index else []
    answer_ids = {
        question.id: fingerprint(question.text, *filter(None, [question.document]), *apart, *key)
        for question in questions
    }
    own_ids = answer_ids if condition.as_much_as else {}
    return Workload(condition, release, values, answer_ids, (), "", questions, own_ids=own_ids)


def _unaskable(
    condition: Condition, error: GraphRAGError, questions: tuple[Question, ...]
) -> Workload:
    return Workload(
        condition=condition,
        release="",
        parameters={},
        answer_ids={},
        unanswered=(),
        error=str(error),
        questions=questions,
    )


def _found_by(settings: Settings, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what retrieval depends on: the parameters, and the reranker where there is one."""
    reranker = settings.query.reranker if values.get("reranked") else ""
    if not reranker:
        return {name: value for name, value in values.items() if name != "reranked"}
    asked = answered_by(settings.llm_for("answers")) if reranker == "llm" else []
    return {**values, "reranker": [reranker, *asked]}


def _made_by(settings: Settings) -> list[object]:
    """Return what, beside its context, an answer depends on."""
    if settings.query.answers != "llm":
        return ["extractive"]
    own = prompts_folder(settings)
    prompts = sorted(own.glob("*.txt")) if own else []
    texts = [path.read_text("utf-8") for path in prompts]
    made_by = [settings.query.response_type, *answered_by(settings.llm_for("answers")), *texts]
    return [RULE, *made_by] if settings.query.answer_style == "short" else made_by


def _with_missing(workload: Workload, have: Container[str]) -> Workload:
    if workload.error:
        return workload
    unanswered = tuple(
        question
        for question in workload.questions
        if (id := workload.answer_ids.get(question.id)) and id not in have
    )
    return replace(workload, unanswered=unanswered)


def _ask(
    workload: Workload,
    experiment: Experiment,
    settings: Settings,
    keep_answer: Callable[[dict[str, Any]], None],
) -> list[str]:
    """Make a condition's missing answers; return why some could not be made."""
    if (given := workload.condition.given) is not None:
        for question in workload.unanswered:
            keep_answer(row_of(given[question.text], question.document))
        return []
    workload, problems = _measurable(workload)
    if not workload.unanswered:
        return problems
    with open_engine(workload.condition, settings) as engine:
        # What is loaded at the first question is no part of any answer's time.
        _warm(engine, workload, experiment)

        def note(question: Question, error: GraphRAGError) -> None:
            if isinstance(error, ModelError) and error.stops_everything:
                raise error
            if isinstance(error, InputError | ConfigError) and not workload.budgets:
                raise UnaskableError(str(error))
            problems.append(f"{question.text}: {error}")

        if engine.writes and not experiment.retrieval_only:
            _ask_together(engine, workload, keep_answer, note)
        else:
            _ask_in_turn(engine, workload, experiment, keep_answer, note)
    return problems


def _measurable(workload: Workload) -> tuple[Workload, list[str]]:
    """Return a share without the questions whose budget cannot be known, and of these why."""
    other = workload.condition.as_much_as
    if not other:
        return workload, []
    known = tuple(each for each in workload.unanswered if each.id in workload.budgets)
    unknown = [each.text for each in workload.unanswered if each.id not in workload.budgets]
    problems = [f"{text}: {other} gave no answer to take as much for" for text in unknown]
    return replace(workload, unanswered=known), problems


def _warm(engine: QueryEngine, workload: Workload, experiment: Experiment) -> None:
    if engine.writes and not experiment.retrieval_only:
        return
    try:
        engine.rehearse(workload.ask(workload.unanswered[0]))
    except GraphRAGError:
        return


def _ask_in_turn(
    engine: QueryEngine,
    workload: Workload,
    experiment: Experiment,
    keep_answer: Callable[[dict[str, Any]], None],
    note: Callable[[Question, GraphRAGError], None],
) -> None:
    ask = engine.retrieve if experiment.retrieval_only else engine.answer
    prices = all_prices(engine.index.settings)
    for question in workload.unanswered:
        try:
            with counting(prices) as taken:
                result = ask(workload.ask(question))
        except GraphRAGError as error:
            note(question, error)
        else:
            keep_answer(_row(engine, workload, question, result, taken))


def _ask_together(
    engine: QueryEngine,
    workload: Workload,
    keep_answer: Callable[[dict[str, Any]], None],
    note: Callable[[Question, GraphRAGError], None],
) -> None:
    prices = all_prices(engine.index.settings)

    async def ask(question: Question) -> None:
        try:
            with counting(prices) as taken:
                result = await engine.aanswer(workload.ask(question))
        except GraphRAGError as error:
            note(question, error)
        else:
            keep_answer(_row(engine, workload, question, result, taken))

    run_calls(lambda: work_through(workload.unanswered, ask, _AT_ONCE))


def _row(
    engine: QueryEngine,
    workload: Workload,
    question: Question,
    result: Answer | Retrieval,
    taken: AnswerSpending,
) -> dict[str, Any]:
    """Return an answer as a row of ``answers``, with what it took."""
    retrieval = result.retrieval if isinstance(result, Answer) else result
    context = retrieval.context
    row = {
        "answer_id": workload.answer_ids[question.id],
        "question": question.text,
        "document": question.document,
        "method": workload.condition.method,
        "parameters": workload.parameters_json,
        "release": workload.release,
        "model": "",
        "text": "",
        "context": context,
        "chunk_ids": list(dict.fromkeys(r.id for r in retrieval.records if r.kind == "chunk")),
        "citations": 0,
        "citations_resolved": 0,
        "context_tokens": count_tokens([context], engine.index.encoding)[0],
        **taken.columns(is_written=isinstance(result, Answer) and result.generated),
        **traces.trace_columns(retrieval),
        "retrieve_ms": retrieval.timings["total"] * _MILLISECONDS,
        "total_ms": retrieval.timings["total"] * _MILLISECONDS,
        "failures": [],
        "answered_at": datetime.now(UTC),
    }
    return {**row, **_answer_fields(engine, result)} if isinstance(result, Answer) else row


def _answer_fields(engine: QueryEngine, answer: Answer) -> dict[str, Any]:
    places = len(answer.citations)
    resolved = len({ref for c in answer.citations for ref in c.references}) or places
    return {
        "model": model_of(engine.index.settings, "answers") if answer.generated else "",
        "text": answer.text,
        "citations": resolved + answer.references_removed,
        "citations_resolved": resolved,
        "total_ms": answer.timings["total"] * _MILLISECONDS,
        "failures": list(answer.failures),
    }


_SCHEMA = {
    "chunk_ids": pl.List(pl.String),
    "failures": pl.List(pl.String),
    "cost": pl.Float64,
    **traces.SCHEMA,
}


def _forget(store: EvaluationStore, answers: Sequence[str]) -> None:
    """Remove answers that are to be made again, with what was found of them."""
    with store.transaction() as con:
        for table in ("answers", "scores", "claims", "claim_extractions"):
            con.execute(
                f"DELETE FROM {table} WHERE answer_id IN (SELECT unnest(?::VARCHAR[]))", [answers]
            )


def _begin(store: EvaluationStore, experiment: Experiment, set_name: str) -> None:
    # Answers made elsewhere are rows of ``answers``; who was asked what, too.
    plain = {condition.name: _as_named(condition) for condition in experiment.conditions}
    experiment = replace(experiment, conditions=tuple(plain.values()))
    spec = json.dumps(asdict(experiment), default=_plain, sort_keys=True)
    with store.transaction() as con:
        con.execute(
            "INSERT OR REPLACE INTO experiments VALUES (?, ?, ?, now(), NULL)",
            [experiment.name, set_name, spec],
        )


def _as_named(condition: Condition) -> Condition:
    """Return a condition as it was named: of no document in particular, without answers."""
    home = None if condition.document or condition.index else condition.home
    return replace(condition, given=None, home=home, document="", asks=None)


def _note_answers(
    store: EvaluationStore, experiment: Experiment, conditions: Sequence[Workload]
) -> None:
    """Write which conditions an experiment has now, and which answers; those that were made."""
    askable = [workload for workload in conditions if not workload.error]
    by_name = {workload.condition.name: workload for workload in askable}
    rows = [
        [experiment.name, name, n, workload.condition.method, workload.parameters_json,
         "" if workload.condition.document else workload.release]
        for n, (name, workload) in enumerate(by_name.items())
    ]  # fmt: skip
    answers = pl.DataFrame(
        [
            (experiment.name, workload.condition.name, question_id, answer_id)
            for workload in askable
            for question_id, answer_id in workload.answer_ids.items()
        ],
        schema=["experiment", "condition", "question_id", "answer_id"],
        orient="row",
    )
    with store.transaction() as con:
        for table in ("conditions", "experiment_answers"):
            con.execute(f"DELETE FROM {table} WHERE experiment = ?", [experiment.name])
        con.executemany("INSERT INTO conditions VALUES (?, ?, ?, ?, ?, ?)", rows)
        insert(con, "experiment_answers", answers)
        con.execute(
            "DELETE FROM experiment_answers WHERE answer_id NOT IN (SELECT answer_id FROM answers)"
        )


def _note_unanswered(
    store: EvaluationStore, experiment: Experiment, reasons: Mapping[str, tuple[int, str]]
) -> None:
    rows = [[experiment.name, name, *reason] for name, reason in reasons.items()]
    with store.transaction() as con:
        con.execute("DELETE FROM unanswered WHERE experiment = ?", [experiment.name])
        if rows:
            con.executemany("INSERT INTO unanswered VALUES (?, ?, ?, ?)", rows)


def _plain(value: object) -> object:
    return value.model_dump() if hasattr(value, "model_dump") else str(value)  # type: ignore[union-attr]
