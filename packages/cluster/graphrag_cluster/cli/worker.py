"""`worker`: a process that makes parts of a shared index."""

from __future__ import annotations

from typing import Annotated

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import settings_for_runs


def worker(
    name: Annotated[
        str | None, typer.Option(help="Name of the worker; by default host and process.")
    ] = None,
    processes: Annotated[int, typer.Option(min=1, max=256, help="Batches to work on at once.")] = 1,
) -> None:
    """Read, chunk and extract batches for a shared index, until it is told to end."""
    from graphrag_cluster.working import check_worker, work

    settings = settings_for_runs()
    check_worker(settings)
    console.note(f"Worker of {settings.storage.url} is ready; Ctrl-C stops it.")
    work(settings, name, processes)
