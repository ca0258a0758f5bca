"""`marts` and `dbt`: tables for analysts, made of the published index by dbt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import passes_options, prints, settings_here
from graphrag_pipeline.cli.progress import progress

if TYPE_CHECKING:
    from graphrag_pipeline.orchestration.runs import MartsOutcome


def show_marts(outcome: MartsOutcome) -> None:
    """Print what the marts hold, and whether they were built now."""
    if outcome.built:
        warned = f", {outcome.tests_warned} warned" if outcome.tests_warned else ""
        console.say(
            f"Built {len(outcome.rows)} marts; {outcome.tests_passed} data tests passed{warned}."
        )
    else:
        console.say(
            "Nothing new is published, evaluated or said of answers: the marts stay as they are."
        )
    console.fact("release", outcome.release)
    console.fact("file", outcome.file)
    console.table(("mart", "rows"), list(outcome.rows.items()))


@prints(show_marts)
def marts(
    force: Annotated[
        bool, typer.Option("--force", help="Build them even if nothing is new.")
    ] = False,
) -> MartsOutcome:
    """Build the marts: tested tables, in marts.duckdb, that answer the common questions.

    Profiles of entities, evidence of relationships down to the sentence, communities with their
    reports, coverage of documents, cost, quality, growth, results of experiments, and what people
    said of answers. Nothing is built if they already cover all of this. Query them
    with: graphrag-pipeline sql "FROM marts.entity_profile".
    """
    settings = settings_here()
    with progress("Building the marts"):
        from graphrag_pipeline.orchestration.runs import run_marts

        return run_marts(settings, force=force)


@passes_options
def dbt(
    arguments: Annotated[list[str], typer.Argument(help="dbt's own command and its options.")],
) -> None:
    """Run dbt on the project of the marts, from any folder.

    For those who write models: "dbt docs generate --static" makes the pages that describe them, and
    "dbt build" builds them in marts_dev.duckdb, beside the marts in use. What dbt makes is in the
    folder dbt/target of the home.
    """
    from graphrag_pipeline.marts.build import run_dbt

    if code := run_dbt(settings_here().home_path, arguments):
        raise typer.Exit(code)
