"""The answers of an experiment: each condition's to each question, those there are left alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_pipeline.core.errors import ConfigError, GraphRAGError, InputError
from graphrag_pipeline.core.progress import report
from graphrag_pipeline.core.settings import CONFIG_FILE, Settings, fingerprint, load_settings
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.evaluation.datasets import read_questions
from graphrag_pipeline.evaluation.experiment import Condition, Experiment
from graphrag_pipeline.evaluation.keeping import kept
from graphrag_pipeline.evaluation.questions import (
    Question,
    get_questions,
    put_questions,
    set_name_of,
)
from graphrag_pipeline.evaluation.store import EvaluationStore
from graphrag_pipeline.llm.configured import answered_by, prompts_folder
from graphrag_pipeline.llm.errors import ModelError
from graphrag_pipeline.llm.running import run_calls, work_through
from graphrag_pipeline.query import Answer, QueryEngine, Retrieval
from graphrag_pipeline.query.methods import method_named
from graphrag_pipeline.query.methods.method import as_mapping
from graphrag_pipeline.store.index_store import insert

_AT_ONCE = 4
"""So many questions at a time where a model answers; each may be several calls."""
_MILLISECONDS = 1000.0


class UnaskableError(GraphRAGError):
    """What one question meets, every other of the condition would meet too."""


@dataclass(frozen=True)
class Asked:
    """A condition's share of an experiment.

    ``wanted`` are the ids of its answers by question, ``missing`` those questions whose answer has
    to be made. ``error`` says why this condition cannot be asked at all.
    """

    condition: Condition
    release: str
    parameters: Mapping[str, Any]
    wanted: Mapping[str, str]
    missing: tuple[Question, ...]
    error: str = ""


@dataclass(frozen=True)
class Answered:
    """What a run of an experiment made.

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

    Raises InputError where there is neither a file nor a set of the name.
    """
    file = Path(experiment.questions)
    name = experiment.questions
    if file.is_file():
        found = read_questions(file)
        with store.transaction() as con:
            name = set_name_of(con, file)
            put_questions(con, name, found)
    with store.read() as con:
        found = get_questions(con, name)
    return name, found[: experiment.limit or None]


def look(
    store: EvaluationStore, experiment: Experiment, settings: Settings, asked: Sequence[Question]
) -> list[Asked]:
    """Return each condition with the answers that it wants and lacks; nothing is asked."""
    found = [
        _look_at(condition, experiment, settings, asked) for condition in experiment.conditions
    ]
    # One made while some of its calls failed is made again; those that did not are in the cache.
    with store.read() as con:
        rows = con.execute("SELECT answer_id FROM answers WHERE len(failures) = 0").fetchall()
    have = {answer_id for (answer_id,) in rows}
    return [_with_missing(one, asked, have) for one in found]


def answer_questions(
    store: EvaluationStore, experiment: Experiment, settings: Settings
) -> Answered:
    """Make the answers that are missing, and note which answers the experiment consists of.

    Whatever was made is kept if the run ends early. Raises InputError if no condition can be
    asked, and the model's error where every other call would meet it too.
    """
    set_name, asked = load_questions(store, experiment)
    conditions = look(store, experiment, settings, asked)
    if all(one.error for one in conditions):
        raise InputError(f"{conditions[0].condition.name}: {conditions[0].error}")
    _begin(store, experiment, set_name)
    _forget(store, [one.wanted[question.id] for one in conditions for question in one.missing])
    total = sum(len(one.missing) for one in conditions)
    failed: dict[str, tuple[int, str]] = {}
    unaskable = {one.condition.name: one.error for one in conditions if one.error}
    made = 0
    try:
        with kept(store, "answers", "answer_id", _SCHEMA) as keep:

            def done(answer: Mapping[str, Any]) -> None:
                nonlocal made
                keep(answer)
                made += 1
                report("answers", made, total)

            for one in conditions:
                try:
                    problems = _ask(one, experiment, settings, done)
                except UnaskableError as error:
                    unaskable[one.condition.name] = str(error)
                    continue
                if problems:
                    failed[one.condition.name] = (len(problems), problems[0])
    finally:
        _note_answers(store, experiment, conditions)
    wanted = sum(len(one.wanted) for one in conditions)
    return Answered(len(asked), made, wanted - total, unaskable, failed)


def evaluation_settings(settings: Settings, condition: Condition) -> Settings:
    """Return the settings that a condition is asked with, calls cached.

    Those beside the index of another home say how it was embedded; the model is the same for all.
    """
    home: dict[str, Any] = {}
    if condition.home:
        beside = condition.home / CONFIG_FILE
        other = load_settings(beside, home=condition.home) if beside.is_file() else settings
        home = {"home": str(condition.home), "embeddings": other.embeddings}
    llm = settings.llm.model_copy(
        update={"concurrency": max(1, settings.llm.concurrency // _AT_ONCE)}
    )
    query = settings.query.model_copy(update={"cache": True})
    return settings.model_copy(update={**home, "llm": llm, "query": query})


@contextmanager
def opened(condition: Condition, settings: Settings) -> Iterator[QueryEngine]:
    """Yield the engine that a condition is asked with.

    Each has its own: what another condition has loaded or embedded would make it look fast.
    """
    own = evaluation_settings(settings, condition)
    with QueryEngine(own.home_path, release=condition.release, settings=own) as engine:
        yield engine


def _look_at(
    condition: Condition, experiment: Experiment, settings: Settings, asked: Sequence[Question]
) -> Asked:
    try:
        with opened(condition, settings) as engine:
            method = method_named(condition.method)
            if not experiment.retrieval_only:
                engine.check(condition.method, condition.parameters)
            values = as_mapping(method.parametrise(condition.parameters, settings.query))
            release = engine.index.facts.id
    except GraphRAGError as error:
        return Asked(condition, "", {}, {}, (), str(error))
    made_by = [] if experiment.retrieval_only else _made_by(settings)
    key = (version("graphrag-pipeline"), condition.method, values, release, made_by)
    wanted = {question.id: fingerprint(question.text, *key) for question in asked}
    return Asked(condition, release, values, wanted, ())


def _made_by(settings: Settings) -> list[object]:
    """Return what, beside its context, an answer depends on."""
    if settings.query.answers != "llm":
        return ["extractive"]
    own = prompts_folder(settings)
    prompts = sorted(own.glob("*.txt")) if own else []
    texts = [path.read_text("utf-8") for path in prompts]
    return [settings.query.response_type, *answered_by(settings.llm), *texts]


def _with_missing(one: Asked, asked: Sequence[Question], have: set[str]) -> Asked:
    if one.error:
        return one
    missing = tuple(question for question in asked if one.wanted[question.id] not in have)
    return Asked(one.condition, one.release, one.parameters, one.wanted, missing)


def _ask(
    one: Asked, experiment: Experiment, settings: Settings, done: Callable[[dict[str, Any]], None]
) -> list[str]:
    """Make a condition's missing answers; return why some could not be made."""
    if not one.missing:
        return []
    problems: list[str] = []
    with opened(one.condition, settings) as engine:
        # What is loaded at the first question is no part of any answer's time.
        _warm(engine, one, experiment)

        def note(question: Question, error: GraphRAGError) -> None:
            if isinstance(error, ModelError) and error.stops_everything:
                raise error
            if isinstance(error, InputError | ConfigError):
                raise UnaskableError(str(error))
            problems.append(f"{question.text}: {error}")

        if engine.writes and not experiment.retrieval_only:
            _ask_together(engine, one, done, note)
        else:
            _ask_in_turn(engine, one, experiment, done, note)
    return problems


def _warm(engine: QueryEngine, one: Asked, experiment: Experiment) -> None:
    if engine.writes and not experiment.retrieval_only:
        return
    try:
        engine.retrieve(one.condition.ask(one.missing[0].text))
    except GraphRAGError:
        return


def _ask_in_turn(
    engine: QueryEngine,
    one: Asked,
    experiment: Experiment,
    done: Callable[[dict[str, Any]], None],
    note: Callable[[Question, GraphRAGError], None],
) -> None:
    ask = engine.retrieve if experiment.retrieval_only else engine.answer
    for question in one.missing:
        try:
            made = ask(one.condition.ask(question.text))
        except GraphRAGError as error:
            note(question, error)
        else:
            done(_row(engine, one, question, made))


def _ask_together(
    engine: QueryEngine,
    one: Asked,
    done: Callable[[dict[str, Any]], None],
    note: Callable[[Question, GraphRAGError], None],
) -> None:
    async def ask(question: Question) -> None:
        try:
            made = await engine.aanswer(one.condition.ask(question.text))
        except GraphRAGError as error:
            note(question, error)
        else:
            done(_row(engine, one, question, made))

    run_calls(lambda: work_through(one.missing, ask, _AT_ONCE))


def _row(
    engine: QueryEngine, one: Asked, question: Question, made: Answer | Retrieval
) -> dict[str, Any]:
    """Return an answer as a row of ``answers``."""
    found = made.retrieval if isinstance(made, Answer) else made
    context = found.context
    row = {
        "answer_id": one.wanted[question.id],
        "question": question.text,
        "method": one.condition.method,
        "parameters": json.dumps(one.parameters, sort_keys=True),
        "release": one.release,
        "model": "",
        "text": "",
        "context": context,
        "chunk_ids": list(dict.fromkeys(r.id for r in found.records if r.kind == "chunk")),
        "citations": 0,
        "citations_resolved": 0,
        "context_tokens": count_tokens([context], engine.index.settings.chunks.encoding)[0],
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "model_calls": 0,
        "cost": 0.0,
        "retrieve_ms": found.timings["total"] * _MILLISECONDS,
        "total_ms": found.timings["total"] * _MILLISECONDS,
        "failures": [],
        "answered_at": datetime.now(UTC),
    }
    return {**row, **_answer_fields(engine, made)} if isinstance(made, Answer) else row


def _answer_fields(engine: QueryEngine, made: Answer) -> dict[str, Any]:
    places = len(made.citations)
    resolved = len({ref for c in made.citations for ref in c.references}) or places
    return {
        "model": engine.index.settings.llm.model if made.generated else "",
        "text": made.text,
        "citations": resolved + made.references_removed,
        "citations_resolved": resolved,
        "prompt_tokens": made.prompt_tokens,
        "completion_tokens": made.completion_tokens,
        "model_calls": made.model_calls,
        "cost": made.cost,
        "total_ms": made.timings["total"] * _MILLISECONDS,
        "failures": list(made.failures),
    }


_SCHEMA = {
    "chunk_ids": pl.List(pl.String),
    "failures": pl.List(pl.String),
    "cost": pl.Float64,
}


def _forget(store: EvaluationStore, answers: Sequence[str]) -> None:
    """Remove answers that are to be made again, with what was found of them."""
    with store.transaction() as con:
        for table in ("answers", "scores", "claims", "claim_extractions"):
            con.execute(
                f"DELETE FROM {table} WHERE answer_id IN (SELECT unnest(?::VARCHAR[]))", [answers]
            )


def _begin(store: EvaluationStore, experiment: Experiment, set_name: str) -> None:
    spec = json.dumps(asdict(experiment), default=_plain, sort_keys=True)
    with store.transaction() as con:
        con.execute(
            "INSERT OR REPLACE INTO experiments VALUES (?, ?, ?, now(), NULL)",
            [experiment.name, set_name, spec],
        )


def _note_answers(
    store: EvaluationStore, experiment: Experiment, conditions: Sequence[Asked]
) -> None:
    """Write which conditions an experiment has now, and which answers; those that were made."""
    asked = [one for one in conditions if not one.error]
    rows = [
        [experiment.name, one.condition.name, n, one.condition.method,
         json.dumps(one.parameters, sort_keys=True), one.release]
        for n, one in enumerate(asked)
    ]  # fmt: skip
    answers = pl.DataFrame(
        [
            (experiment.name, one.condition.name, question_id, answer_id)
            for one in asked
            for question_id, answer_id in one.wanted.items()
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


def _plain(value: object) -> object:
    return value.model_dump() if hasattr(value, "model_dump") else str(value)  # type: ignore[union-attr]
