"""The command line. Heavy modules are imported by the commands that need them."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.errors import GraphRAGError, InputError

if TYPE_CHECKING:
    from graphrag_pipeline.config import Settings

app = typer.Typer(
    name="graphrag-pipeline",
    help="Documents in, a knowledge-graph index in DuckDB and LanceDB out, and questions answered.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


class Format(StrEnum):
    """How `sql` prints rows."""

    table = "table"
    csv = "csv"
    json = "json"


@app.callback()
def _options(
    config: Annotated[
        Path | None, typer.Option(help="Settings file (default: graphrag.toml here).")
    ] = None,
) -> None:
    if config is not None:
        os.environ["GRAPHRAG_CONFIG"] = str(config)


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Where to write graphrag.toml.")] = Path("."),
    force: Annotated[bool, typer.Option(help="Overwrite a file that is there.")] = False,
) -> None:
    """Write a graphrag.toml with every setting, its meaning and its default."""
    from graphrag_pipeline.batches import write_beside
    from graphrag_pipeline.config import CONFIG_FILE, template

    target = folder / CONFIG_FILE
    if target.exists() and not force:
        raise InputError(f"{target} is there already: edit it, or use --force to start afresh")
    write_beside(target, template().encode())
    typer.echo(f"Wrote {target}. Next: graphrag-pipeline index FOLDER")


@app.command()
def index(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder of documents (default: input.folder).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Index what was added, changed or removed in a folder, and publish a new release."""
    from graphrag_pipeline import console
    from graphrag_pipeline.runs import index_folder

    settings = _settings()
    place = folder or settings.input_path
    if not place.is_dir():
        raise InputError(f"{place} is not a folder: name one that holds your documents")
    with console.progress(quiet=as_json) as seconds:
        outcome = index_folder(settings, place)
    summary = _summary(settings)
    summary["seconds"] = seconds.by_stage()
    summary["batches_run"] = len(outcome.batches)
    summary["runs"] = list(outcome.run_ids)
    console.show_json(summary) if as_json else console.show_index(summary)


@app.command()
def status(as_json: AsJson = False) -> None:
    """Say what is indexed, pending and quarantined, and what is published."""
    from graphrag_pipeline import console

    summary = _summary(_settings())
    console.show_json(summary) if as_json else console.show_status(summary)


@app.command()
def query(
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    method: Annotated[
        str,
        typer.Option("--method", "-m", help="basic, fulltext, hybrid, local or global."),
    ] = "local",
    level: Annotated[
        int | None, typer.Option(help="Community level to read reports of (global, local).")
    ] = None,
    top_k: Annotated[int | None, typer.Option(help="How many rows the search starts from.")] = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question from the published index, with citations."""
    from graphrag_pipeline import console
    from graphrag_pipeline.query import answer

    settings = _settings()
    given = {"level": level, "top_k": top_k}
    parameters: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    found = answer(question, method, home=settings.home_path, settings=settings, **parameters)
    console.show_json(found.to_dict()) if as_json else console.show_answer(found)


@app.command()
def sql(
    statement: Annotated[str, typer.Argument(help="One SQL statement.")],
    output: Annotated[
        Format, typer.Option("--format", "-f", help="How to print the rows.")
    ] = Format.table,
    as_json: AsJson = False,
) -> None:
    """Run SQL on the published index, read-only."""
    from graphrag_pipeline import console
    from graphrag_pipeline.publishing import query_published

    names, rows = query_published(_settings().home_path, statement)
    if as_json or output is Format.json:
        console.show_json([dict(zip(names, row, strict=True)) for row in rows])
    elif output is Format.csv:
        console.show_csv(names, rows)
    else:
        console.show_rows(names, rows)


@app.command()
def ui(
    port: Annotated[int, typer.Option(help="Port of the web page.")] = 3000,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
) -> None:
    """Start Dagster's UI, with the inbox sensor and the refresh schedule running."""
    from graphrag_pipeline.runs import dagster_home

    settings = _settings()
    place = dagster_home(settings)
    os.environ["GRAPHRAG_HOME"] = str(settings.home_path)
    typer.echo(f"Dagster's UI: http://{host}:{port} (stop with Ctrl-C)")
    command = [sys.executable, "-m", "dagster", "dev", "-w", str(place / "workspace.yaml")]
    os.execv(sys.executable, [*command, "-h", host, "-p", str(port)])


@app.command("import-graphrag")
def import_graphrag(
    directory: Annotated[Path, typer.Argument(help="microsoft/graphrag's output folder.")],
    as_json: AsJson = False,
) -> None:
    """Bring in an index made by microsoft/graphrag, and publish it; nothing is paid again."""
    from graphrag_pipeline.importing import import_graphrag as bring_in

    settings = _settings()
    _import(settings, as_json, bring_in(directory, settings.home_path, settings))


@app.command("import-extractions")
def import_extractions(
    file: Annotated[Path, typer.Argument(help="JSON Lines: text, entities and triples.")],
    as_json: AsJson = False,
) -> None:
    """Bring in entities and relationships that were extracted elsewhere, and publish."""
    from graphrag_pipeline.importing import import_extractions as bring_in

    settings = _settings()
    _import(settings, as_json, bring_in(file, settings.home_path, settings))


def _import(settings: Settings, as_json: bool, result: Any) -> None:
    from dataclasses import asdict

    from graphrag_pipeline import console
    from graphrag_pipeline.batches import BatchLog
    from graphrag_pipeline.runs import index_store, run_pending

    with console.progress(quiet=as_json) as seconds:
        run_pending(settings, index_store(settings), BatchLog(settings.home_path))
    summary = _summary(settings)
    summary["seconds"] = seconds.by_stage()
    summary["imported"] = asdict(result)
    console.show_json(summary) if as_json else console.show_index(summary)


def _settings() -> Settings:
    from graphrag_pipeline.config import load_settings

    return load_settings()


def _summary(settings: Settings) -> dict[str, Any]:
    from graphrag_pipeline.summary import summarise

    return summarise(settings)


def main() -> None:
    """Run the command line; errors made on purpose are one line each, with an exit code."""
    try:
        app()
    except GraphRAGError as error:
        for line in str(error).splitlines():
            sys.stderr.write(f"error: {line}\n")
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt:
        sys.stderr.write("stopped; what was finished is kept, run the command again to go on\n")
        raise SystemExit(130) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None



if __name__ == "__main__":
    main()
