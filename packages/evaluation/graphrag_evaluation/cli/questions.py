"""`eval questions`: question sets, taken from files or made by a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_evaluation.cli.stages import show_stages
from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import prints, settings_here
from graphrag_pipeline.cli.progress import progress
from graphrag_pipeline.cli.wording import money
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.text import counted

if TYPE_CHECKING:
    from graphrag_evaluation.question_writing.generating import Numbers
    from graphrag_evaluation.question_writing.kinds import WantedKinds
    from graphrag_evaluation.question_writing.question_sets import QuestionSet
    from graphrag_evaluation.step_models import StepModel
    from graphrag_pipeline.core.settings import Settings
    from graphrag_pipeline.llm.pricing import StagePlan

    Result = QuestionSet | StagePlan | Sequence[StagePlan] | Sequence[Mapping[str, object]]

QuestionFile = Annotated[
    Path | None,
    typer.Argument(help="A file of questions: JSON, JSON Lines, CSV, text, or a data set's own."),
]
Generate = Annotated[
    bool,
    typer.Option(
        "--generate", help="Let a model write them: GraphRAG's Algorithm 1, or those of --kind."
    ),
]
Kinds = Annotated[
    str,
    typer.Option(
        "--kind",
        help="Kinds to write, separated by commas: data-local, data-global, data-linked, "
        "activity-local, activity-global, or all. Each question has its assertions.",
    ),
]
Number = Annotated[int, typer.Option(help="How many questions of each kind.")]
Description = Annotated[
    str, typer.Option(help="What the documents are about (default: titles and passages of them).")
]
SetName = Annotated[
    str, typer.Option("--set", help="Name of the set (default: the file's, or generated).")
]
Model = Annotated[str, typer.Option(help="Model that writes them (default: that of [llm]).")]
BaseUrl = Annotated[str, typer.Option(help="Address of that model (default: that of [llm]).")]
KeyVariable = Annotated[
    str, typer.Option(help="Environment variable that holds the key of that address.")
]
Temperature = Annotated[
    float | None, typer.Option(help="Temperature of that model (default: that of [llm]).")
]
QuestionOutput = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the set here as JSON Lines, too.")
]


def _show(result: Result) -> None:
    from graphrag_evaluation.question_writing.question_sets import QuestionSet
    from graphrag_pipeline.llm.pricing import StagePlan

    if isinstance(result, StagePlan):
        _show_generation(result)
    elif isinstance(result, QuestionSet):
        _show_questions(result)
    elif result and isinstance(result[0], StagePlan):
        show_stages([stage for stage in result if isinstance(stage, StagePlan)])
    else:
        _show_sets([row for row in result if not isinstance(row, StagePlan)])


def _show_sets(sets: Sequence[Mapping[str, object]]) -> None:
    if sets:
        console.show_rows(tuple(sets[0]), [tuple(row.values()) for row in sets])
    else:
        console.say("There are no questions yet: name a file of them, or use --generate.")


def _show_questions(questions: QuestionSet) -> None:
    console.say(f"Question set {questions.name}: {len(questions.questions):,} questions")
    console.show_rows(
        ("type", "questions", "with answers", "with passages", "with assertions"),
        questions.by_type(),
    )
    if questions.duplicates:
        console.note(f"{questions.duplicates:,} left out that had been asked before")


def _show_generation(estimate: StagePlan) -> None:
    tokens = f"{estimate.prompt_tokens:,} tokens in, {estimate.completion_tokens:,} out"
    console.say(
        f"{estimate.calls:,} calls of {estimate.model}, about {tokens}, {money(estimate.cost)}"
    )


@prints(_show)
def questions(
    file: QuestionFile = None,
    generate: Generate = False,
    kind: Kinds = "",
    number: Number = 20,
    personas: Annotated[
        int, typer.Option(help="How many kinds of people ask (with --generate).")
    ] = 5,
    tasks: Annotated[int, typer.Option(help="Tasks of each person.")] = 5,
    questions_per_task: Annotated[
        int, typer.Option(help="Questions for each task (without --kind).")
    ] = 5,
    description: Description = "",
    model: Model = "",
    base_url: BaseUrl = "",
    api_key_env: KeyVariable = "",
    temperature: Temperature = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only show what --generate would cost.")
    ] = False,
    question_set: SetName = "",
    format: Annotated[str, typer.Option(help="Format of the file (default: by its fields).")] = "",
    output: QuestionOutput = None,
    documents: Annotated[
        Path | None,
        typer.Option(
            help="Write the documents of the file (nq, qmsum, squality, narrativeqa, "
            "ultradomain) into this folder, to be indexed."
        ),
    ] = None,
) -> Result:
    """Keep the questions of a file, let a model write some, or show the question sets.

    Formats: own, musique, hotpotqa, 2wikimultihopqa, multihop-rag, qmsum, squality, nq, novelqa,
    novelqa-generative, odsum, narrativeqa, ultradomain, rag-qa-arena. Of a folder all .json files.
    """
    from graphrag_evaluation.question_writing import question_sets
    from graphrag_evaluation.question_writing.generating import Numbers
    from graphrag_evaluation.question_writing.kinds import WantedKinds

    step = _step_model(model, base_url, api_key_env, temperature)
    _check_options(file, generate or plan, documents, has_step=bool(step), kind=kind)
    settings = settings_here()
    if generate or plan:
        numbers = Numbers(personas, tasks, questions_per_task)
        kinds = WantedKinds(_kinds(kind), number, personas, tasks) if kind else None
        order = QuestionOrder(question_set, numbers, kinds, description, step)
        if plan:
            return _planned(settings, order)
        questions = _generated(settings, order)
    elif file is not None:
        questions = question_sets.take(settings, file, question_set, format)
    elif question_set:
        questions = question_sets.show(settings, question_set)
    else:
        return question_sets.all_sets(settings)
    _write(questions, file, documents, format, output)
    return questions


@dataclass(frozen=True)
class QuestionOrder:
    """An order of questions from a model: by kind where ``wanted``, else by people and tasks."""

    question_set: str
    numbers: Numbers
    wanted: WantedKinds | None
    description: str
    step: StepModel | None


def _check_options(
    file: Path | None, is_made: bool, documents: Path | None, *, has_step: bool, kind: str
) -> None:
    if file is not None and is_made:
        raise InputError("give a file of questions, or --generate or --plan, not both")
    if documents is not None and file is None:
        raise InputError("--documents are those of a file of questions: name the file")
    if has_step and not is_made:
        raise InputError("a model is asked with --generate or --plan alone")
    if kind and not is_made:
        raise InputError("--kind says what --generate or --plan is about: add one of them")


def _planned(settings: Settings, order: QuestionOrder) -> Result:
    from graphrag_evaluation.question_writing import question_sets

    if order.wanted:
        return question_sets.plan_of_kinds(settings, order.wanted, order.description, order.step)
    return question_sets.plan(settings, order.numbers, order.description, order.step)


def _generated(settings: Settings, order: QuestionOrder) -> QuestionSet:
    from graphrag_evaluation.question_writing import question_sets

    rest = (order.question_set, order.description, order.step)
    with progress("asking for questions"):
        if order.wanted:
            return question_sets.make_kinds(settings, order.wanted, *rest)
        return question_sets.make(settings, order.numbers, *rest)


def _write(
    questions: QuestionSet,
    file: Path | None,
    documents: Path | None,
    format: str,
    output: Path | None,
) -> None:
    """Write a set's documents and questions where they are wanted, and tell what failed."""
    from graphrag_evaluation.questions.datasets import write_documents, write_questions

    if documents is not None and file is not None:
        written = write_documents(file, documents, format)
        console.note(f"Wrote {counted(len(written), 'document')} into {documents}")
    if output is not None:
        write_questions(output, questions.questions)
        console.note(f"Wrote {output}")
    for failure in questions.failures:
        console.note(f"warning: {failure}")


def _kinds(names: str) -> tuple[str, ...]:
    from graphrag_evaluation.question_writing.kinds import KINDS

    listed = tuple(dict.fromkeys(part.strip() for part in names.split(",") if part.strip()))
    return KINDS if listed == ("all",) else listed


def _step_model(
    model: str, base_url: str, api_key_env: str, temperature: float | None
) -> StepModel | None:
    """Return the model that the options name, None where they name none."""
    from pydantic import ValidationError

    from graphrag_evaluation.step_models import StepModel

    values = {"model": model, "base_url": base_url, "api_key_env": api_key_env}
    if not any(values.values()) and temperature is None:
        return None
    try:
        return StepModel.model_validate({**values, "temperature": temperature})
    except ValidationError as error:
        first = error.errors()[0]
        option = str(first["loc"][0]).replace("_", "-")
        reason = first["msg"].removeprefix("Value error, ")
        raise InputError(f"--{option}: {reason}") from None
