"""The formats a release can be exported to: a door."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline.core.addresses import links_of
from graphrag_pipeline.core.doors import Door, require_takes
from graphrag_pipeline.core.errors import ConfigError, InputError
from graphrag_pipeline.exchange.exporting.writing import Export, Exporter, Writer, write_export
from graphrag_pipeline.releases.older_releases import release_file

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings


def _check(name: str, exporter: Exporter) -> None:
    ways = (exporter.folder, exporter.file, exporter.tables)
    if sum(way is not None for way in ways) != 1:
        raise ConfigError("give one of folder, file and tables")
    if exporter.folder is not None:
        require_takes(exporter.folder, "writer")
    if exporter.file is not None:
        require_takes(exporter.file, "writer", "name")
    if exporter.tables is not None:
        require_takes(exporter.tables, "writer", "names", "raw")


EXPORTERS: Door[Exporter] = Door(
    "exporters",
    Exporter,
    "export format",
    own={
        "graphrag": "microsoft:GRAPHRAG",
        "graphml": "graphml:GRAPHML",
        "json": "graph:JSON",
        "neo4j": "neo4j:NEO4J",
        "rdf": "rdf:RDF",
        "obsidian": "obsidian:OBSIDIAN",
        "parquet": "tables:PARQUET",
        "csv": "tables:CSV",
    },
    beside=__name__,
    check=_check,
)
"""The formats by name."""


def export_release(
    home: Path,
    name: str,
    output: Path | None = None,
    *,
    release: str | None = None,
    tables: Sequence[str] = (),
    raw: bool = False,
    force: bool = False,
    settings: Settings | None = None,
) -> Export:
    """Write a release (default: the published one) in one of ``EXPORTERS``.

    ``output`` is the file or folder to make, by default in the current folder; ``tables`` are
    those that ``parquet`` and ``csv`` write (default: all). With ``raw``, ``csv`` has texts as they
    are, also what a spreadsheet would calculate. What is there already is only written over with
    ``force``. Where ``settings`` name the address of a server, graphs and notes have permanent
    links to it.

    Raises InputError for what cannot be done as asked, NothingPublishedError when there is no
    release, StorageError when it cannot be read or the export not be written.
    """
    exporter = EXPORTERS.find(name)
    if exporter is None:
        raise InputError(f"unknown format {name!r}: use one of {', '.join(EXPORTERS.names())}")
    if tables and not exporter.tables:
        takers = ", ".join(n for n, each in EXPORTERS.usable().items() if each.tables)
        raise InputError(f"--table is for {takers}; {name} writes what belongs to it")
    source = release_file(home, release)
    target = output or Path(exporter.output)
    exported = ""

    def fill(writer: Writer) -> None:
        nonlocal exported
        exported = writer.release()
        if exporter.file is not None:
            exporter.file(writer, target.name)
        elif exporter.folder is not None:
            exporter.folder(writer)
        elif exporter.tables is not None:
            exporter.tables(writer, tables, raw)

    links = settings and partial(links_of, settings, home=home)
    is_folder = exporter.file is None
    files = write_export(source, target, fill, is_folder=is_folder, force=force, links=links)
    return Export(
        format=name,
        release=exported,
        path=str(target),
        files=files,
        lost=exporter.lost,
        next=exporter.next.format(path=target),
    )
