"""`init`, `index`, the imports and `status`: documents into the index."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import (
    Source,
    Verify,
    folders_of,
    prints,
    settings_for_runs,
    settings_here,
    show_fetched,
    source_of,
)
from graphrag_pipeline.cli.index_views import show_index, show_status
from graphrag_pipeline.cli.plan import plan_total
from graphrag_pipeline.cli.progress import progress
from graphrag_pipeline.core.errors import GraphRAGError, InputError, RemovalError
from graphrag_pipeline.core.text import counted
from graphrag_pipeline.store.sources import changed_files

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings
    from graphrag_pipeline.exchange.importing import ImportResult
    from graphrag_pipeline.index import Index, Update
    from graphrag_pipeline.ingest.sites import Fetched
    from graphrag_pipeline.planning.pending import Due
    from graphrag_pipeline.store.workspace import Workspace


_WATCHED = {
    "documents": ("document",),
    "entities": ("entity", "entities"),
    "relationships": ("relationship",),
}
_WHAT_TO_DO = "Fix the cause and run it again; until then readers keep the last release."


def init(
    folder: Annotated[Path, typer.Argument(help="Where to write graphrag.toml.")] = Path("."),
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a graphrag.toml with every setting, its meaning and its default."""
    from graphrag_pipeline.core.hardening.files import write_beside
    from graphrag_pipeline.core.settings import CONFIG_FILE
    from graphrag_pipeline.core.settings_template import template

    target = folder / CONFIG_FILE
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    if target.exists() and not force:
        raise InputError(f"{target} is there already: edit it, or use --force to start afresh")
    write_beside(target, template().encode())
    typer.echo(f"Wrote {target}. Next: graphrag-pipeline index FOLDER")


@prints(show_index)
def index(
    source: Source = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask about the cost.")] = False,
    recluster: Annotated[
        bool,
        typer.Option("--recluster", help="Cluster the whole graph again, not only what changed."),
    ] = False,
    remove_all: Annotated[
        bool,
        typer.Option(
            "--remove-all", help="Remove missing documents without asking, however many there are."
        ),
    ] = False,
    verify: Verify = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Keep running, and index again whenever files or web pages change.",
        ),
    ] = False,
) -> dict[str, Any]:
    """Index what was added, changed or removed in a folder, and publish a new release."""
    settings = _settings_for_model()
    if watch:
        _watch(settings, source, yes=yes, verify=verify)
    from graphrag_pipeline.pipeline.updating import cut_batches
    from graphrag_pipeline.planning.estimate_log import end_estimate
    from graphrag_pipeline.planning.pending import look_at, nothing_to_do
    from graphrag_pipeline.store.workspace import Workspace

    workspace = Workspace(settings)
    if verify:
        workspace.batches.verify()
    with _told_of(workspace), workspace.store.session():
        *pages, place = folders_of(workspace, source)
        for folder in pages:
            cut_batches(workspace, folder, remove_all=remove_all)
        if not place.is_dir():
            raise InputError(f"{place} is not a folder: name one that holds your documents")
        # To import Dagster, and to start a run in which each stage finds nothing to do, takes most
        # of the time of small runs.
        with progress(f"Looking for changes in {place}") as seconds:
            changes = look_at(workspace, place).changes
            if workspace.batches.is_empty() and not changes:
                raise InputError(
                    f"{place} holds no file that can be indexed, and the index is empty: add "
                    "documents, or name another folder"
                )
            _check_model(workspace, place)
            is_done = not recluster and nothing_to_do(workspace, changes)
        if is_done:
            end_estimate(workspace)
            times = seconds.by_stage()
            return _outcome(workspace, times, (), (), new_release=False, reclustered=False)
        return _index_changes(workspace, place, yes=yes, recluster=recluster, remove_all=remove_all)


def _watch(settings: Settings, source: str | None, *, yes: bool, verify: bool) -> NoReturn:
    """Follow a folder and web pages until the command is interrupted or told to end."""
    import signal
    import threading
    import time

    from graphrag_pipeline.core.notices import Notifier
    from graphrag_pipeline.core.service_settings import IN_PROCESS
    from graphrag_pipeline.index import Index
    from graphrag_pipeline.watching import watch

    folder, addresses = source_of(settings, source)
    is_followed = not addresses or (source is None and folder.is_dir())
    if is_followed and not folder.is_dir():
        raise InputError(f"{folder} is not a folder: name one that holds your documents")
    notifier = Notifier(settings)

    def show(update: Update) -> None:
        _say_unheard(notifier.mended("index"))
        changes = changed_files(update.changes) or "what was left from before"
        counts = ", ".join(counted(update.counts[name], *words) for name, words in _WATCHED.items())
        did = "published" if update.is_new else "nothing new in"
        console.say_whole(
            f"{time.strftime('%H:%M:%S')} {changes}: {did} {update.release}, {counts}"
        )

    def show_news(fetched: Fetched) -> None:
        if fetched.new or fetched.changed or fetched.gone or fetched.problems:
            show_fetched(fetched)

    def warn(error: GraphRAGError) -> None:
        console.note(f"{time.strftime('%H:%M:%S')} {error}")
        if not sys.stderr.isatty():
            _say_unheard(notifier.failed("index", f"{error}. {_WHAT_TO_DO}"))

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    every = settings.input.poll_seconds
    what = [f"{folder}, a look every {counted(every, 'second')}"] if is_followed else []
    if addresses:
        minutes = f"{settings.input.urls_every_minutes:g} minutes"
        what.append(f"{counted(len(addresses), 'web address', 'web addresses')}, every {minutes}")
    console.note(f"Following {'; '.join(what)}. Ctrl-C ends it.")
    index = Index(settings)
    if verify:
        index.batches.verify()
    watch(
        index,
        folder if is_followed else None,
        addresses=addresses,
        stop=threading.Event(),
        on_update=show,
        on_problem=warn,
        on_fetched=show_news,
        may_spend=yes,
        run=_by_workers() if settings.workers.launcher != IN_PROCESS else None,
    )
    raise AssertionError("it is only ever interrupted")


def _by_workers() -> Callable[[Index, Path], Update]:
    from graphrag_pipeline.orchestration.runs import update_by_runs

    return update_by_runs


def _index_changes(
    workspace: Workspace, folder: Path, *, yes: bool, recluster: bool, remove_all: bool
) -> dict[str, Any]:
    """Take in what has changed, once the user agrees to the cost and to what would go."""
    from graphrag_pipeline.planning.pending import due_besides

    due = due_besides(workspace)
    _estimate(workspace, folder, yes=yes, recluster=recluster)
    try:
        return _index(
            workspace, folder, due, recluster=recluster, remove_all=remove_all, as_looked=True
        )
    except RemovalError as error:
        console.confirm_removal(error)
        return _index(workspace, folder, due, recluster=recluster, remove_all=True)


def _index(
    workspace: Workspace,
    folder: Path,
    due: Due,
    *,
    recluster: bool,
    remove_all: bool,
    as_looked: bool = False,
) -> dict[str, Any]:
    with progress(f"Looking for changes in {folder}") as seconds:
        from graphrag_pipeline.orchestration.runs import index_folder
        from graphrag_pipeline.planning.estimate_log import end_estimate

        outcome = index_folder(
            workspace, folder, recluster=recluster, remove_all=remove_all, as_looked=as_looked
        )
    end_estimate(workspace)
    return _outcome(
        workspace,
        seconds.by_stage(),
        outcome.batches,
        outcome.run_ids,
        new_release=outcome.is_new,
        reclustered=recluster,
        because=list(due.because),
        again=due.again,
    )


@contextlib.contextmanager
def _told_of(workspace: Workspace) -> Iterator[None]:
    """Tell the hooks of a failure that nobody sees at a terminal; and when it is mended."""
    from graphrag_pipeline.core.notices import MODEL, Notifier
    from graphrag_pipeline.llm.errors import ModelError

    notifier = Notifier(workspace.settings)
    try:
        yield
    except GraphRAGError as error:
        if not sys.stderr.isatty():
            is_model = error.exit_code == ModelError.exit_code
            what = MODEL if is_model else "index"
            _say_unheard(notifier.failed(what, f"{error}. {_WHAT_TO_DO}"))
        raise
    for what in (MODEL, "index"):
        _say_unheard(notifier.mended(what))


def _say_unheard(errors: Sequence[str]) -> None:
    for error in errors:
        console.note(f"notice not sent: {error}; the next run tries again")


def _check_model(workspace: Workspace, folder: Path) -> None:
    """Raise ConfigError where a run by a model would stop for what the user gives it."""
    from graphrag_pipeline.store.spending import uses_model

    if uses_model(workspace.settings):
        from graphrag_pipeline.llm.configured import check_own_prompts
        from graphrag_pipeline.pipeline.updating import check_key

        check_own_prompts(workspace.settings)
        check_key(workspace, folder)


def _settings_for_model() -> Settings:
    """Return the settings of a run, once it is known whether a local model can extract."""
    settings = settings_for_runs()
    if settings.profile != "local":
        return settings
    from graphrag_pipeline.extraction.model.trial import learn_of_model
    from graphrag_pipeline.planning.windows import said_of_extractor

    if learn_of_model(settings):
        settings = settings_for_runs()
    for line in said_of_extractor(settings):
        console.note(line)
    return settings


def _estimate(workspace: Workspace, folder: Path, *, yes: bool, recluster: bool) -> None:
    """Say what a run by a model may cost, ask if it is much, and keep the estimate."""
    from graphrag_pipeline.store.spending import uses_model

    settings = workspace.settings
    if not uses_model(settings):
        return
    from graphrag_pipeline.planning.consent import why_ask
    from graphrag_pipeline.planning.estimate_log import begin_estimate
    from graphrag_pipeline.planning.plan import plan_run

    estimate = plan_run(workspace, folder, recluster=recluster)
    if estimate.calls:
        endpoints = dict.fromkeys(stage.endpoint for stage in estimate.stages if stage.calls)
        console.note(f"{plan_total(estimate)}, asked of {' and '.join(endpoints)}")
    if not yes and (why := why_ask(settings, estimate.stages)):
        console.confirm(why, "graphrag-pipeline plan")
    begin_estimate(workspace, estimate)


def notify() -> None:
    """Send a test message to everyone who is told of failed runs: webhook, e-mail, command."""
    from graphrag_pipeline.core.notices import Notifier

    hooks = Notifier(settings_here()).test()
    console.say(f"Sent by {' and '.join(hooks)}.")


@prints(show_status)
def status() -> dict[str, Any]:
    """Show what is indexed, pending, quarantined and published."""
    from graphrag_pipeline.planning.status import summarise
    from graphrag_pipeline.store.workspace import Workspace

    return summarise(Workspace(settings_here()))


@prints(show_index)
def import_graphrag(
    directory: Annotated[Path, typer.Argument(help="microsoft/graphrag's output folder.")],
) -> dict[str, Any]:
    """Import an index made by microsoft/graphrag and publish it. No model is asked again."""
    from graphrag_pipeline.exchange.importing import import_graphrag as bring_in

    return _import(directory, bring_in)


@prints(show_index)
def import_extractions(
    file: Annotated[Path, typer.Argument(help="JSON Lines: text, entities and triples.")],
) -> dict[str, Any]:
    """Import entities and relationships that were extracted elsewhere, and publish them."""
    from graphrag_pipeline.exchange.importing import import_extractions as bring_in

    return _import(file, bring_in)


def _import(source: Path, bring_in: Callable[[Path, Workspace], ImportResult]) -> dict[str, Any]:
    from graphrag_pipeline.store.workspace import Workspace

    workspace = Workspace(settings_for_runs())
    if not source.exists():
        raise InputError(f"{source} does not exist")
    with _told_of(workspace), progress(f"Reading {source}") as seconds:
        from graphrag_pipeline.orchestration.runs import run_pending

        result = bring_in(source, workspace)
        outcome = run_pending(workspace)
    return _outcome(
        workspace,
        seconds.by_stage(),
        outcome.batches,
        outcome.run_ids,
        imported=asdict(result),
    )


def _outcome(
    workspace: Workspace,
    seconds: dict[str, float],
    batches: Sequence[str],
    run_ids: Sequence[str],
    again: Collection[str] = (),
    **more: object,
) -> dict[str, Any]:
    """Return the state of the index, and what a run did to it."""
    from graphrag_pipeline.planning.status import changes_in, summarise

    return {
        **summarise(workspace),
        "changes": changes_in(workspace.batches, [key for key in batches if key not in again]),
        "seconds": seconds,
        "batches_run": len(batches),
        "batches": list(batches),
        "runs": list(run_ids),
        **more,
    }
