"""`serve`: the published index over HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import OfRelease, settings_here


def serve(
    host: Annotated[str, typer.Option(help="Address of this machine to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0 picks a free one.")] = 8000,
    workers: Annotated[
        int,
        typer.Option(min=1, max=64, help="Number of server processes, each with the index open."),
    ] = 1,
    release: OfRelease = None,
) -> None:
    """Answer questions over HTTP: /openapi.json describes it (needs the extra server)."""
    from graphrag_pipeline.core.extras import require_extra

    require_extra("server", "serve")
    from graphrag_server.server import serve as serve_http

    serve_http(
        settings_here(),
        host=host,
        port=port,
        workers=workers,
        release=release,
        announce=console.note,
    )
