"""`plan` and `tune`: what a run would take, and prompts that fit the documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import (
    Documents,
    Source,
    Verify,
    folders_of,
    prints,
    settings_for_runs,
    settings_here,
)
from graphrag_pipeline.cli.index_views import show_left_out, show_unread
from graphrag_pipeline.cli.wording import amount, money
from graphrag_pipeline.core.progress import about
from graphrag_pipeline.core.rows import one_line
from graphrag_pipeline.core.text import counted
from graphrag_pipeline.store.sources import changed_files

if TYPE_CHECKING:
    from graphrag_pipeline.planning.plan import Plan
    from graphrag_pipeline.planning.rereading import Rereading
    from graphrag_pipeline.planning.tuning import Tuning


_TOTALS = (
    *("calls", "cached", "tokens", "cost", "seconds"),
    *("direct_cost", "batch_cost", "rounds", "repeated_tokens", "cached_cost"),
)


def plan_values(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain values."""
    models = [asdict(model) for model in plan.models]
    return {**asdict(plan), "unreadable": plan.unreadable, "models": models, **_totals(plan)}


def plan_total(plan: Plan) -> str:
    """Return in one line what a plan comes to."""
    return f"about {amount(_totals(plan))}"


def _totals(plan: Plan) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in _TOTALS}


def show_plan(plan: Plan) -> None:
    """Print what the next run would do, and on which assumptions."""
    from graphrag_pipeline.store.space import megabytes

    nothing = "No file was added, changed or removed since the last run."
    console.say(changed_files(plan.changes) or nothing)
    show_left_out([asdict(rule) for rule in plan.left_out])
    if not plan.is_due:
        console.say("There is nothing to do.")
        return
    if plan.question:
        console.say_whole(f"index will ask before it does this: {plan.question}")
    if plan.pending_batches:
        console.fact("pending", counted(plan.pending_batches, "batch", "batches"))
    if plan.reread:
        console.say_whole(reread_documents(plan.reread))
    show_unread(plan.quarantined, where="")
    if plan.documents or plan.unreadable:
        console.fact("documents", f"{plan.documents:,} to read")
        console.fact("chunks", f"{plan.chunks:,}, of which {plan.to_extract:,} to extract from")
    if plan.to_retry:
        console.fact("to retry", f"{plan.to_retry:,} that failed before, counted below")
    needed, free = megabytes(plan.space.needed), megabytes(plan.space.free)
    console.fact("disk", f"needs about {needed}, has {free}")
    if local := plan.local_vectors:
        took = about(local.seconds)
        console.fact("vectors", f"of about {local.texts:,} texts, made on this machine in {took}")
    if plan.without_model:
        console.fact("structures", f"{', '.join(plan.without_model)}, without a model")
    if not plan.stages:
        console.say("No model would be called, and nothing spent.")
        return
    cached = ("cached",) if plan.cached else ()
    console.table(
        ("stage", "model", "calls", *cached, "tokens in", "out", "cost"),
        [
            (s.stage, s.model, s.calls, *(s.cached for _ in cached), s.prompt_tokens,
             s.completion_tokens, money(s.cost))
            for s in plan.stages
        ],
    )  # fmt: skip
    if len(plan.models) > 1:
        names = ("by model", "at", "calls", "tokens", "cost")
        rows = [(m.model, m.endpoint, m.calls, m.tokens, money(m.cost)) for m in plan.models]
        console.table(names, rows)
    console.fact("total", plan_total(plan))
    if not plan.direct_cost or plan.cost == plan.direct_cost:
        console.fact("time", _time_of(plan))
    for name, text in _other_prices(plan):
        console.fact(name, text)
    console.say("Assumed:")
    for assumption in plan.assumptions:
        console.say(f"  {assumption}")


def _other_prices(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield what else the run may cost: of the other lane, and with the provider's cache."""
    direct, batch, cached = plan.direct_cost, plan.batch_cost, plan.cached_cost
    if not direct or batch is None or cached is None:
        return
    rounds = counted(plan.rounds, "round")
    time = f"about {rounds}, each answered within 24 hours, mostly sooner"
    if plan.cost == direct:
        if cached < direct:
            begun = f"{plan.repeated_tokens:,} tokens in that begin as a prompt before"
            yield "by caches", f"{money(cached)}, where the provider still has the {begun}"
        if batch < direct:
            yield "in batches", f'{money(batch)}, in {time} (llm.lane = "batch")'
    else:
        yield "in batches", f"{time}; what is asked later waits for what is asked first"
        yield "directly", f'{money(direct)}, as fast as the server is (llm.lane = "direct")'


def _time_of(plan: Plan) -> str:
    """Return in words how long the model's calls take, by those it has answered before."""
    if plan.seconds is not None:
        return f"{about(plan.seconds)} of model calls, by the speed of the last ones"
    models = dict.fromkeys(stage.model for stage in plan.stages if stage.seconds is None)
    have = "has" if len(models) == 1 else "have"
    return f"unknown: {' and '.join(models)} {have} answered no call of this index yet"


def reread_documents(reread: Rereading) -> str:
    """Return what is read again of files that have not changed, why, and what that costs."""
    read = counted(reread.documents, "document of a file", "documents of files")
    are, have = ("is", "has") if reread.documents == 1 else ("are", "have")
    said = f"{read} that {have} not changed {are} read again: {' and '.join(reread.reasons)}."
    if not reread.changed:
        return f"{said} Their text is the same as before, so nothing is extracted again."
    kinds = ", ".join(f"{one_line(kind) or 'no ending'} {n:,}" for kind, n in reread.kinds.items())
    cost = "" if reread.cost is None else f", for about {money(reread.cost)}"
    comes = "comes" if reread.changed == 1 else "come"
    extracted = "is" if reread.to_extract == 1 else "are"
    return (
        f"{said} {reread.changed:,} {comes} out differently ({kinds}): {reread.to_extract:,} of "
        f"{counted(reread.chunks, 'chunk')} {extracted} extracted again{cost}."
    )


def show_tuning(tuning: Tuning) -> None:
    """Print what a model proposed for the prompts, and where it was written."""
    console.say(f"field          {tuning.domain}")
    console.say(f"language       {tuning.language}")
    console.say(f"entity types   {', '.join(tuning.entity_types)}")
    console.say(f"persona        {tuning.persona}")
    console.say(f"rating         {tuning.report_rating}")
    console.say(f"examples       {tuning.n_examples}")
    for path in tuning.files:
        console.say(f"wrote          {path}")
    console.say("Read them, edit them, and copy the lines of settings.toml into graphrag.toml.")


@prints(show_plan, plan_values)
def plan(source: Source = None, verify: Verify = False) -> Plan:
    """Show what the next index run would do and cost. No model is asked; web pages are fetched."""
    from graphrag_pipeline.planning.plan import plan_run
    from graphrag_pipeline.store.workspace import Workspace

    workspace = Workspace(settings_for_runs())
    if verify:
        workspace.batches.verify()
    *pages, place = folders_of(workspace, source)
    for folder in pages:
        console.note(f"Web pages are planned apart: graphrag-pipeline plan {folder}")
    return plan_run(workspace, place)


@prints(show_tuning)
def tune(
    folder: Documents = None,
    output: Annotated[Path, typer.Option(help="Folder for the prompts.")] = Path("prompts"),
) -> Tuning:
    """Let a model read a sample of your documents and write prompts that suit them."""
    from graphrag_pipeline.planning.tuning import tune as propose

    settings = settings_here()
    return propose(settings, folder or settings.input_path, output)
