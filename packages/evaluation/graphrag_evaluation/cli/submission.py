"""`eval submission`: answers as the competition of a data set takes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import prints, settings_here
from graphrag_pipeline.cli.wording import counted

if TYPE_CHECKING:
    from graphrag_evaluation.questions.novelqa import Submission


def _show(written: Submission) -> None:
    answers, books = counted(written.questions, "answer"), counted(len(written.answers), "book")
    console.say(
        f"Wrote {written.path}: {answers} of {written.condition} to {books}, in "
        f"{written.task}/{written.task}.json"
    )
    if written.unanswered:
        console.note(f"left empty, as they have no answer: {written.unanswered:,}")
    if written.unread:
        console.note(f"left empty, as they choose no option or several: {written.unread:,}")


@prints(_show)
def submission(
    files: Annotated[Path, typer.Argument(help="NovelQA's file of questions, or their folder.")],
    experiment: Annotated[
        str | None, typer.Option(help="An experiment that asked them (default: the latest).")
    ] = None,
    condition: Annotated[
        str, typer.Option(help="Whose answers (default: the only condition's).")
    ] = "",
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path(
        "submission.zip"
    ),
) -> Submission:
    """Write answers to NovelQA as its competition on Codabench takes them: its gold is secret.

    Options where the questions showed some, else whole answers (`--format novelqa-generative`).
    """
    from graphrag_evaluation import results
    from graphrag_evaluation.questions.novelqa import write_submission
    from graphrag_evaluation.store import EvaluationStore

    with EvaluationStore(settings_here().home_path).read() as con:
        name = results.named_experiment(con, experiment)
        return write_submission(con, name, condition, files, output)
