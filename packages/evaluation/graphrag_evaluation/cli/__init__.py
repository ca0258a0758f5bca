"""`graphrag-pipeline eval`: experiments on the user's own corpus, and what comes of them."""

from __future__ import annotations

import typer

from graphrag_evaluation.cli import (
    experiments,
    index,
    labels,
    questions,
    results,
    submission,
    tables,
    win_rates,
)

app = typer.Typer(
    name="eval",
    help="Measure how good the answers on your own documents are, method by method.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

for _command in (
    experiments.run,
    experiments.plan,
    results.results,
    tables.tables,
    submission.submission,
    results.compare,
    index.index,
    questions.questions,
    labels.labels,
    win_rates.winrate,
    results.report,
):
    app.command()(_command)
