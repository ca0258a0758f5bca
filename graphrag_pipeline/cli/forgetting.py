"""`forget` and `purge`: what was removed, taken off the disk."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import prints, settings_for_runs
from graphrag_pipeline.cli.progress import progress
from graphrag_pipeline.cli.wording import megabytes, money
from graphrag_pipeline.core.errors import DeclinedError, InputError
from graphrag_pipeline.core.rows import one_line
from graphrag_pipeline.core.text import counted

if TYPE_CHECKING:
    from graphrag_pipeline.upkeep.purging import Purge

DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be removed, and change nothing.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
_MOST_NAMED = 10


def show_purge(purge: Purge) -> None:
    """Print what a purge does or did, and where other copies may be."""
    is_done = purge.release is not None
    for uri in purge.sources[:_MOST_NAMED]:
        state = "is in the index" if uri in purge.removed else "was removed before"
        console.say_whole(f"{one_line(uri)}  {'' if is_done else state}".rstrip())
    console.more(len(purge.sources) - _MOST_NAMED)
    for line in _lines(purge):
        console.say(f"  {line}")
    if is_done:
        before, after = (megabytes(size) for size in (purge.bytes_before, purge.bytes_after))
        console.say(f"The home takes {after}; it took {before}.")
        console.fact("published", f"release {purge.release}")
    console.say("Copies that this command cannot reach may be in:")
    for place in purge.elsewhere:
        console.say(f"  {place}")


def _lines(purge: Purge) -> list[str]:
    answers, experiments = purge.answers, purge.experiments
    releases = counted(len(purge.dropped_releases), "older release")
    lines = [f"{releases}, which nobody can go back to"] if purge.dropped_releases else []
    if answers.dropped:
        cost = "" if not answers.cost else f", which cost {money(answers.cost)}"
        least = "" if purge.release else "at least "
        lines.append(
            f"{least}{counted(answers.dropped, 'kept answer')} of models{cost}; "
            f"{answers.kept:,} stay"
        )
    if answers.vectors_dropped:
        lines.append(
            f"{counted(answers.vectors_dropped, 'kept vector')} of models; "
            f"{answers.vectors_kept:,} stay"
        )
    if answers.shared_dropped:
        shared = counted(answers.shared_dropped, "answer or vector", "answers and vectors")
        lines.append(f"{shared} of the folder that indexes share")
    if experiments.dropped:
        lines.append(
            f"{counted(experiments.dropped, 'evaluation')}, with questions and answers; "
            f"{experiments.kept:,} stay"
        )
    if purge.dropped_runs:
        lines.append(f"{counted(purge.dropped_runs, 'run')} of Dagster's history")
    if purge.dropped_files:
        lines.append(f"{', '.join(purge.dropped_files)}, which can be made again")
    return [f"gone: {line}" if purge.release else f"would go: {line}" for line in lines]


@prints(show_purge)
def forget(
    documents: Annotated[
        list[str],
        typer.Argument(
            help="Files or folders that were deleted, by path, or documents by uri or id."
        ),
    ],
    dry_run: DryRun = False,
    yes: Yes = False,
) -> Purge:
    """Remove documents from the index, and every trace of them from the disk.

    Delete their files first, or have them ignored: a file that is still there would come back
    with the next run. Documents that an earlier run has removed can be named too. Everything
    that `purge` removes goes as well. Descriptions and reports that rested on the documents are
    written again, by a model where one is configured.
    """
    return _purge(documents, dry_run=dry_run, yes=yes)


@prints(show_purge)
def purge(dry_run: DryRun = False, yes: Yes = False) -> Purge:
    """Delete everything from the disk that the index no longer uses.

    That is what is left of documents that were removed or changed: older releases and their
    vectors, answers of models that the index does not use, evaluations of what is gone, names
    in manifests, the history of Dagster's runs. No file of yours is touched.
    """
    return _purge((), dry_run=dry_run, yes=yes)


def _purge(documents: Sequence[str], *, dry_run: bool, yes: bool) -> Purge:
    from graphrag_pipeline.index import Index

    index = Index(settings_for_runs())
    act = partial(index.forget, *documents) if documents else index.purge
    if dry_run or not yes:
        plan = act(dry_run=True)
        if dry_run:
            return plan
        _ask(plan)
    with progress(f"Purging {index.home}"):
        return act()


def _ask(plan: Purge) -> None:
    """Show what would go, and ask. Raises InputError if the answer is no, or nobody is there."""
    if not sys.stdin.isatty():
        raise InputError("this cannot be undone: see --dry-run, then run it again with --yes")
    show_purge(plan)
    if not typer.confirm("This cannot be undone. Continue?", err=True):
        raise DeclinedError("nothing was changed")
