"""The formats a release can be exported to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.exchange.exporting import graph, graphml, microsoft, neo4j, rdf, tables
from graphrag_pipeline.exchange.exporting.writing import Export, Writer, write_export
from graphrag_pipeline.releases.kept import release_file


@dataclass(frozen=True)
class Format:
    """A format: where it goes unless told, what to do with it, what it cannot hold.

    One of ``folder``, ``file`` and ``tables`` writes it; ``tables`` is given names of tables, and
    whether texts are to be as they are.
    """

    output: str
    next: str
    folder: Callable[[Writer], None] | None = None
    file: Callable[[Writer, str], None] | None = None
    tables: Callable[[Writer, Sequence[str], bool], None] | None = None
    lost: tuple[str, ...] = ()


_GRAPH_ONLY = ("documents, text, claims and reports: it is the graph alone",)

FORMATS = {
    "graphrag": Format(
        "graphrag-output",
        "graphrag-pipeline import-graphrag {path}, or GraphRAG's own query",
        folder=microsoft.write_microsoft,
        lost=microsoft.LOST,
    ),
    "graphml": Format(
        "graph.graphml",
        'networkx.read_graphml("{path}")',
        file=graphml.write_graphml,
        lost=(*_GRAPH_ONLY, "control characters, which XML cannot hold"),
    ),
    "json": Format(
        "graph.json",
        'networkx.node_link_graph(json.load(open("{path}")))',
        file=graph.node_link_json,
        lost=_GRAPH_ONLY,
    ),
    "neo4j": Format(
        "neo4j-import",
        "sh {path}/import.sh, where neo4j-admin is installed",
        folder=neo4j.write_neo4j,
        lost=("findings as a list of their own (a report's text holds them)", "claims", "vectors"),
    ),
    "rdf": Format(
        "graph.nt",
        'rdflib.Graph().parse("{path}")',
        file=rdf.write_rdf,
        lost=("text, spans and findings: what is told of leads to its document", "claims"),
    ),
    "parquet": Format(
        "tables-parquet",
        "SELECT * FROM '{path}/NAME.parquet' in DuckDB, or polars.read_parquet",
        tables=partial(tables.write_tables, kind="parquet"),
    ),
    "csv": Format(
        "tables-csv",
        "any spreadsheet or BI tool opens them",
        tables=partial(tables.write_tables, kind="csv"),
    ),
}


def export_release(
    home: Path,
    name: str,
    output: Path | None = None,
    *,
    release: str | None = None,
    tables: Sequence[str] = (),
    raw: bool = False,
    force: bool = False,
) -> Export:
    """Write a release (default: the published one) in one of ``FORMATS``.

    ``output`` is the file or folder to make, by default in the current folder; ``tables`` are
    those that ``parquet`` and ``csv`` write (default: all). With ``raw``, ``csv`` has texts as they
    are, also what a spreadsheet would calculate. What is there already is only written over with
    ``force``.

    Raises InputError for what cannot be done as asked, NothingPublishedError when there is no
    release, StorageError when it cannot be read or the export not be written.
    """
    if name not in FORMATS:
        raise InputError(f"unknown format {name!r}: use one of {', '.join(FORMATS)}")
    format_of = FORMATS[name]
    if tables and not format_of.tables:
        takers = ", ".join(n for n, export in FORMATS.items() if export.tables)
        raise InputError(f"--table is for {takers}; {name} writes what belongs to it")
    source = release_file(home, release)
    target = output or Path(format_of.output)
    exported = ""

    def fill(writer: Writer) -> None:
        nonlocal exported
        exported = writer.release()
        if format_of.file is not None:
            format_of.file(writer, target.name)
        elif format_of.folder is not None:
            format_of.folder(writer)
        elif format_of.tables is not None:
            format_of.tables(writer, tables, raw)

    files = write_export(source, target, fill, is_folder=format_of.file is None, force=force)
    return Export(
        format=name,
        release=exported,
        path=str(target),
        files=files,
        lost=format_of.lost,
        next=format_of.next.format(path=target),
    )
