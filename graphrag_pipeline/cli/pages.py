"""`explore` and `report`: the published index as pages for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import OfRelease, prints, settings_here

if TYPE_CHECKING:
    from graphrag_pipeline.pages.explorer import WrittenPage
    from graphrag_pipeline.pages.overview import WrittenReport


def show_page(page: WrittenPage) -> None:
    """Print where the page of the graph is, and what it shows."""
    console.say_whole(
        f"Wrote {page.path} ({page.n_bytes / 1e6:.2f} MB) from release {page.release}"
    )
    console.say(
        f"{page.n_entities:,} entities, {page.n_relationships:,} relationships, "
        f"{page.n_communities:,} communities. Open it in a browser; it needs no network.",
        style="dim",
    )
    if page.n_untold:
        console.say(
            f"The page leaves out the texts of {page.n_untold:,} entities, but says where to "
            "find them. To read everything, run graphrag-pipeline serve and open /explorer.",
            style="dim",
        )


def show_report(report: WrittenReport) -> None:
    """Print where the overview of a corpus is."""
    console.say_whole(
        f"Wrote {report.path} ({report.n_bytes / 1e6:.2f} MB) from release {report.release}"
    )
    console.say("Open it in a browser; it needs no network and no other file.", style="dim")


@prints(show_page)
def explore(
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "graph.html"
    ),
    release: OfRelease = None,
) -> WrittenPage:
    """Write the graph as one HTML page to explore: search, zoom, communities, source text.

    An entity leads to its description, relationships and passages; a community to its report, its
    members, and the communities inside and above it. The page needs no network and no other file.
    """
    from graphrag_pipeline.pages.explorer import write_page

    return write_page(settings_here().home_path, output, release)


@prints(show_report)
def report(
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    title: Annotated[
        str | None, typer.Option(help="Title of the page (default: from the folder's name).")
    ] = None,
    release: OfRelease = None,
) -> WrittenReport:
    """Write an overview of the whole corpus as one HTML page, to read, print or send.

    Its chapters are the root communities; it has the key entities and
    relationships with the sentences that support them, what could not be
    read, what it cost, and what changed since the release before. It needs
    no network and no other file.
    """
    from graphrag_pipeline.pages.overview import write_report

    return write_report(settings_here().home_path, output, release, title=title)
