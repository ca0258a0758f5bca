"""Experiments from beginning to end, with the indexes made that they ask for.

Those are indexes by other settings, or one for each document.

The index of a document is made of the rows of the index that has all: its text, its chunks and what
was extracted from them. Graph, communities, reports and vectors are its own. What a model writes
for them is looked up among the paid answers of the home, and added to them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from graphrag_evaluation import evaluate
from graphrag_evaluation.documents import (
    Apart,
    calls_by_chunk,
    documents_asked,
    outdated_indexes,
    remove_indexes,
    spread_over,
)
from graphrag_evaluation.evaluate import Evaluated, ExperimentPlan
from graphrag_evaluation.experiment import Experiment
from graphrag_evaluation.part import stage_part
from graphrag_evaluation.preset_runs import fitted
from graphrag_evaluation.questions.question import Question
from graphrag_evaluation.running import load_questions
from graphrag_evaluation.scoring import check_metrics
from graphrag_evaluation.store import EvaluationStore
from graphrag_evaluation.variants import (
    document_folders,
    make_variants,
    plan_variants,
    settings_apart,
    variant_of,
)
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.hardening.locks import locked
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.progress import report
from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.core.text import counted
from graphrag_pipeline.llm.configured import (
    all_prices,
    calls_place,
    prompts_folder,
    spending_since,
)
from graphrag_pipeline.llm.pricing import StagePlan
from graphrag_pipeline.pipeline.updating import run_stages
from graphrag_pipeline.query.release import open_release
from graphrag_pipeline.releases.older_releases import release_file
from graphrag_pipeline.releases.publishing import config_hash
from graphrag_pipeline.store.index_store import make_small
from graphrag_pipeline.store.spending import ledger_position, needs_model
from graphrag_pipeline.store.workspace import Workspace

_MARK = "made_with"


@dataclass(frozen=True)
class Made:
    """Counts of the indexes of single documents.

    ``made`` were made or brought up to date now; ``removed`` were of documents that have gone or
    changed; ``unasked`` are of other documents, and stay for experiments that ask of them.
    """

    documents: int
    made: int
    removed: int
    unasked: int

    @property
    def line(self) -> str:
        """One line about them."""
        parts = [
            f"{counted(self.documents, 'document')} with an index each, {self.made:,} made now"
        ]
        if self.removed:
            parts.append(f"{self.removed:,} removed, whose documents have gone or changed")
        if self.unasked:
            parts.append(f"{self.unasked:,} of documents not asked about stay")
        return "; ".join(parts)


@dataclass(frozen=True)
class _Fitted:
    """An experiment as it can be run here, its questions, and what was changed about it."""

    store: EvaluationStore
    experiment: Experiment
    questions: Sequence[Question]
    notes: tuple[str, ...]


def run_experiment(settings: Settings, experiment: Experiment) -> Evaluated:
    """Make what indexes are missing, and answer, score and judge what has not been yet.

    What was done is kept if it ends early, and the next run goes on from there. The budget is of
    the whole run. Raises InputError where no condition can be asked, or a question of an experiment
    that asks documents apart names none; what an update raises; and the model's error where no
    further call can succeed.
    """
    ready = _fitted(settings, experiment)
    with spending_since(calls_place(settings), ledger_position(settings)):
        prepared, notes = _prepared(settings, ready)
        outcome = evaluate.run_fitted(ready.store, prepared, settings)
    return replace(outcome, notes=notes)


def plan_experiment(settings: Settings, experiment: Experiment) -> ExperimentPlan:
    """Return what a run would do and cost; no model is asked, and no index made.

    The reports and vectors of an index that a document lacks are taken to cost what those of the
    index of all did, chunk by chunk; extraction costs nothing again. Raises InputError as a run.
    """
    ready = _fitted(settings, experiment)
    stages: Sequence[StagePlan] = ()
    experiment, about = ready.experiment, ()
    if variants := experiment.variants:
        stages = plan_variants(settings, variants)
        experiment, n_missing = _asked_of_variants(settings, experiment)
        about = (_about_variants(len(variants), n_missing),)
    if experiment.per_document:
        with open_release(settings.home_path, settings=settings) as release:
            documents = documents_asked(release, ready.questions, experiment.questions, settings)
            missing = [document for document in documents if not _is_made(document, settings)]
            stages = _stages(settings, calls_by_chunk(release), missing)
        experiment = spread_over(experiment, documents)
        about = (_about(len(documents), len(missing)),)
    plan = evaluate.plan_fitted(ready.store, experiment, settings, ready.questions)
    return replace(plan, stages=(*stages, *plan.stages), notes=(*about, *ready.notes, *plan.notes))


def prepare(settings: Settings, experiment: Experiment) -> tuple[Experiment, tuple[str, ...]]:
    """Make the indexes that an experiment asks for; return it asked of them, and a line on each.

    None is made, and it is returned as it is, where it asks one index. Raises as
    :func:`run_experiment`.
    """
    return _prepared(settings, _fitted(settings, experiment))


def _fitted(settings: Settings, experiment: Experiment) -> _Fitted:
    store = EvaluationStore(settings.home_path)
    _, questions = load_questions(store, experiment)
    experiment, notes = fitted(experiment, settings, questions)
    check_metrics(experiment.metrics, settings)
    if experiment.variants:
        experiment = _without_variants(settings, experiment)
    return _Fitted(store, experiment, questions, notes)


def _without_variants(settings: Settings, experiment: Experiment) -> Experiment:
    """Return an experiment without the conditions whose indexes cannot be made here.

    Raises InputError where none is left.
    """
    try:
        document_folders(settings)
    except InputError as error:
        left = tuple(condition for condition in experiment.conditions if not condition.index)
        if not left:
            raise
        reasons = [(each.name, str(error)) for each in experiment.conditions if each.index]
        return replace(experiment, conditions=left, lacking=(*experiment.lacking, *reasons))
    return experiment


def _asked_of_variants(settings: Settings, experiment: Experiment) -> tuple[Experiment, int]:
    """Return an experiment asked of its indexes by other settings, and how many there are not.

    Of one that is not there yet, as while it is planned, the usual one is asked.
    """
    conditions, missing = [], set[Path]()
    for condition in experiment.conditions:
        home = variant_of(settings, condition.index).home_path if condition.index else None
        if home and not Home(home).published.is_file():
            missing.add(home)
        conditions.append(
            replace(condition, home=home) if home and home not in missing else condition
        )
    return replace(experiment, conditions=tuple(conditions)), len(missing)


def _prepared(settings: Settings, ready: _Fitted) -> tuple[Experiment, tuple[str, ...]]:
    experiment = ready.experiment
    if variants := experiment.variants:
        line = make_variants(settings, variants)
        return _asked_of_variants(settings, experiment)[0], (line,)
    if not experiment.per_document:
        return experiment, ()
    place = Home(settings.home_path).document_indexes
    with open_release(settings.home_path, settings=settings) as release:
        documents = documents_asked(release, ready.questions, experiment.questions, settings)
        spread_over(experiment, documents)
        place.mkdir(mode=0o700, exist_ok=True)
        with locked(place / "lock"):
            outdated = outdated_indexes(release, Home(settings.home_path).indexes_of_documents())
            remove_indexes(outdated)
            n_made = _make(settings, documents, release.facts.id)
    asked = {document.folder for document in documents}
    unasked = [
        folder for folder in Home(settings.home_path).indexes_of_documents() if folder not in asked
    ]
    made = Made(len(documents), n_made, len(outdated), len(unasked))
    return spread_over(experiment, documents), (made.line,)


def _about_variants(n_variants: int, n_missing: int) -> str:
    to_make = f"{n_missing:,} to make, whose answers are planned as those of yours"
    return f"{n_variants:,} indexes by other settings: {to_make if n_missing else 'all are there'}"


def _about(n_documents: int, n_missing: int) -> str:
    to_make = f"{n_missing:,} to make, from what was extracted before"
    documents = counted(n_documents, "document")
    return f"{documents} with an index each: {to_make if n_missing else 'all are there'}"


def _make(settings: Settings, documents: Sequence[Apart], release: str) -> int:
    """Make the indexes that are missing or were made with other settings; return how many."""
    due = [document for document in documents if not _is_made(document, settings)]
    for number, document in enumerate(due):
        report("document indexes", number, len(due))
        workspace = Workspace(settings_apart(settings, document.folder))
        began = ledger_position(workspace.settings)
        with spending_since(calls_place(workspace.settings), began), workspace.turn():
            make_small(workspace.paths.index)
            # A run that publishes meanwhile stores the release in another way.
            stage_part(workspace, release_file(settings.home_path, release), document.id)
            run_stages(workspace)
        (document.folder / _MARK).write_text(_made_with(settings), "utf-8")
    if due:
        report("document indexes", len(due), len(due))
    return len(due)


def _is_made(document: Apart, settings: Settings) -> bool:
    mark = document.folder / _MARK
    try:
        return document.is_there and mark.read_text("utf-8") == _made_with(settings)
    except OSError:
        return False


def _made_with(settings: Settings) -> str:
    """Return a hash of the program and of all settings, prompts and aliases that shape an index."""
    prompts, aliases = prompts_folder(settings), settings.aliases_path
    files = [*(sorted(prompts.glob("*.txt")) if prompts else ()), *([aliases] if aliases else ())]
    texts = [file.read_text("utf-8", "replace") for file in files]
    return fingerprint(texts, config_hash(settings), version("graphrag-pipeline"))


def _stages(
    settings: Settings,
    by_chunk: Sequence[tuple[str, str, float, float, float]],
    documents: Sequence[Apart],
) -> list[StagePlan]:
    """Return what the indexes of documents take that have none, by what the whole one took."""
    chunks = sum(document.n_chunks for document in documents)
    if not chunks or not needs_model(settings):
        return []
    prices = all_prices(settings)
    stages = []
    for stage, model, *values in by_chunk:
        calls, prompt, completion = (math.ceil(chunks * value) for value in values)
        stages.append(
            StagePlan(
                stage=f"document indexes: {stage}",
                model=model,
                calls=calls,
                cached=0,
                prompt_tokens=prompt,
                completion_tokens=completion,
                cost=prices.cost(model, prompt, completion),
            )
        )
    return stages
