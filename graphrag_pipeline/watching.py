"""Follow folders and web pages without Dagster: an update whenever something has changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event

from graphrag_pipeline.core.errors import GraphRAGError, InputError
from graphrag_pipeline.index import Index, Update
from graphrag_pipeline.ingest.sites import Fetched, fetch_sites
from graphrag_pipeline.planning.consent import may_cost, why_ask
from graphrag_pipeline.store.snapshots import snapshot_folder

_LONGEST_WAIT = 300.0


def watch(
    index: Index,
    folder: Path | None,
    *,
    addresses: Sequence[str] = (),
    stop: Event,
    on_update: Callable[[Update], None],
    on_problem: Callable[[GraphRAGError], None],
    on_fetched: Callable[[Fetched], None] = lambda fetched: None,
    may_spend: bool = False,
    run: Callable[[Index, Path], Update] | None = None,
) -> None:
    """Update an index whenever files of a folder, or pages, change, until ``stop`` is set.

    The folder is looked at every ``input.poll_seconds``; a file that was changed in the last
    ``input.settle_seconds`` is left for a later look. ``addresses`` of web pages and sitemaps are
    fetched at first and every ``input.urls_every_minutes``, between two looks. What stops an
    update, a folder that is gone among it, is told once, and tried again ever more seldom, at least
    every 300 seconds; nothing
    that was finished is lost. Documents are not removed where :meth:`Index.update` would ask. An
    update that may cost more than ``llm.confirm_cost`` is not begun, unless ``may_spend``. ``run``
    does an update; by default :meth:`Index.update`.
    """
    poll = float(index.settings.input.poll_seconds)
    pages = [snapshot_folder(index.home)] if addresses else []
    folders = [*pages, *([folder] if folder else [])]
    problem = ""
    failures = 0
    is_due, next_fetch = True, 0.0
    while not stop.is_set():
        try:
            if addresses and time.monotonic() >= next_fetch:
                next_fetch = time.monotonic() + 60 * index.settings.input.urls_every_minutes
                on_fetched(fetch_sites(index.home, addresses, index.settings))
            for place in folders:
                if _has_changed(index, place) or (is_due and index.batches.batches()):
                    _check_cost(index, place, may_spend=may_spend)
                    update = (run or _run)(index, place)
                    if update.is_new or update.batches:
                        on_update(update)
            problem, failures, is_due = "", 0, False
        except GraphRAGError as error:
            if str(error) != problem:
                on_problem(error)
            problem, is_due = str(error), True
            failures = min(failures + 1, 30)
        stop.wait(max(poll, min(poll * 2**failures, _LONGEST_WAIT)) if failures else poll)


def _has_changed(index: Index, folder: Path) -> bool:
    files = index.settings.input
    look = index.batches.look(
        folder, max_bytes=files.max_file_bytes, settle_seconds=files.settle_seconds
    )
    return bool(look.changes)


def _check_cost(index: Index, folder: Path, *, may_spend: bool) -> None:
    if may_spend or not may_cost(index.settings):
        return
    if why := why_ask(index.settings, index.plan(folder).stages):
        raise InputError(
            f"{why}, and nothing is started: see graphrag-pipeline plan, then run "
            "graphrag-pipeline index --yes, or raise llm.confirm_cost and start again"
        )


def _run(index: Index, folder: Path) -> Update:
    return index.update(folder, settle_seconds=index.settings.input.settle_seconds)
