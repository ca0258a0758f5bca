"""`mcp`: the published index for an assistant that starts this command."""

from __future__ import annotations

from graphrag_pipeline.cli.command import OfRelease, settings_here


def mcp(release: OfRelease = None) -> None:
    """Serve an assistant by the Model Context Protocol on standard input and output.

    The assistant starts this command and ends it. Over HTTP it is at /mcp of serve. Needs the
    extra server.
    """
    from graphrag_pipeline.core.extras import require_extra

    require_extra("server", "mcp")
    from graphrag_server.stdio import serve_stdio

    serve_stdio(settings_here(), release=release)
