"""`ui`: Dagster's pages."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from graphrag_pipeline.cli.command import CONFIG, settings_for_runs


def ui(
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Port of the web page.")] = 3000,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
) -> None:
    """Start Dagster's UI, with its sensors and the refresh schedule running."""
    from graphrag_pipeline.orchestration.runs import dagster_home

    settings = settings_for_runs()
    place = dagster_home(settings)
    os.environ.update(GRAPHRAG_HOME=str(settings.home_path), DAGSTER_HOME=str(place))
    if config := CONFIG.get():
        os.environ["GRAPHRAG_CONFIG"] = str(config)
    typer.echo(f"Dagster's UI: http://{host}:{port} (stop with Ctrl-C)")
    # `dg dev`, which Dagster would rather have, wants to start in the folder of a project.
    quiet = "ignore:Function `dev_command` is superseded"
    command = [sys.executable, "-W", quiet, "-m", "dagster", "dev"]
    command += ["-w", str(place / "workspace.yaml")]
    os.execv(sys.executable, [*command, "-h", host, "-p", str(port)])
