"""`export`: the published index in the formats of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import OfRelease, Raw, prints, settings_here

if TYPE_CHECKING:
    from graphrag_pipeline.exchange.exporting import Export


def show_export(export: Export) -> None:
    """Print what was written, what the format could not hold, and how to use it."""
    for file in export.files:
        counts = ", ".join(f"{n:,} {kind}" for kind, n in file.rows.items())
        console.say_whole(f"{file.name:<28}{file.n_bytes / 1e6:>8.2f} MB  {counts}".rstrip())
    console.say_whole(f"Wrote {export.path} from release {export.release}")
    if export.lost:
        console.say(f"Not in it: {'; '.join(export.lost)}.", style="dim")
    console.say_whole(f"Use it with: {export.next}", style="dim")


@prints(show_export)
def export(
    format: Annotated[
        str,
        typer.Argument(
            help="One of graphrag, graphml, json, neo4j, rdf, obsidian, parquet, csv, or one that "
            "an installed package brings."
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File or folder to make (default: here).")
    ] = None,
    release: OfRelease = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table", help="For parquet and csv: a table. Repeat it for more (default: all)."
        ),
    ] = None,
    raw: Raw = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
) -> Export:
    """Write the published release in a format of another tool.

    graphrag: microsoft/graphrag's parquet files; import-graphrag reads them.
    graphml, json (node-link): the graph, for networkx, Gephi, D3.
    neo4j: CSV for neo4j-admin, with a script that loads it.
    obsidian: a vault of linked notes.
    rdf: N-Triples (SKOS). parquet, csv: tables.
    """
    from graphrag_pipeline.exchange.exporting import export_release

    settings = settings_here()
    return export_release(
        settings.home_path, format, output, release=release, tables=table or (), raw=raw,
        force=force, settings=settings,
    )  # fmt: skip
