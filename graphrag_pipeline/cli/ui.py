"""`ui`: Dagster's pages."""

from __future__ import annotations

from typing import Annotated

import typer

from graphrag_pipeline.cli.command import CONFIG, settings_for_runs


def ui(
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Port of the web page.")] = 3000,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
) -> None:
    """Start Dagster's UI, with its sensors and the refresh schedule running."""
    from graphrag_pipeline.orchestration.ui import serve

    def announce(address: str) -> None:
        typer.echo(f"Dagster's UI: {address} (stop with Ctrl-C)")

    raise typer.Exit(serve(settings_for_runs(), CONFIG.get(), host, port, announce))
