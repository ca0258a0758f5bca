"""The command line. Heavy modules are imported by the commands that need them.

Results go to standard output, everything else to standard error. Exit codes are in ``EXIT_CODES``.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from graphrag_pipeline.cli import evaluation as eval_cli
from graphrag_pipeline.core.errors import GraphRAGError, InputError

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings
    from graphrag_pipeline.exchange.importing import ImportResult

EXIT_CODES = (
    "Exit codes: 0 done; 1 a run failed; 2 wrong usage, input or setting; 3 nothing published "
    "yet; 4 another process holds the index; 5 the index cannot be written or read; "
    "6 the model gave an error; 7 the budget of model calls is used up; 130 interrupted."
)
_RESUMABLE = ("index", "import-graphrag", "import-extractions")
_INTERRUPTED = 130
_DUCKDB_INTERRUPTED = "Query interrupted"


class _Commands(TyperGroup):
    """Turns the project's own errors into one line each and an exit code."""

    def invoke(self, ctx: typer.Context) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except GraphRAGError as error:
            _fail(str(error), error.exit_code)
        except (KeyboardInterrupt, RuntimeError) as error:
            if isinstance(error, RuntimeError) and str(error) != _DUCKDB_INTERRUPTED:
                raise
            kept = "; what was finished is kept, run the command again to go on"
            resumable = ctx.invoked_subcommand in _RESUMABLE
            _fail(f"stopped{kept if resumable else ''}", _INTERRUPTED)
        except BrokenPipeError:
            _stop_writing()


app = typer.Typer(
    name="graphrag-pipeline",
    cls=_Commands,
    help="Documents in, a knowledge-graph index in DuckDB and LanceDB out, and questions answered.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(eval_cli.app)

OfRelease = Annotated[
    str | None,
    typer.Option("--release", help="A release that is kept: its id, or how that begins."),
]
Documents = Annotated[
    Path | None, typer.Argument(help="Folder of documents (default: input.folder).")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


ResponseType = Annotated[
    str | None, typer.Option(help="Length and form, such as 'one paragraph' (with a model).")
]
History = Annotated[
    Path | None,
    typer.Option(help="The conversation so far: JSON list of {role, content} (with a model)."),
]
_OF_METHODS = "Options of some methods"
Level = Annotated[
    str | None,
    typer.Option(
        help="Community level to read reports of: C0 (or 0) is the root; what is not split at a "
        "level is read there too.",
        rich_help_panel=_OF_METHODS,
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(help="How many rows the search starts from.", rich_help_panel=_OF_METHODS),
]
Dynamic = Annotated[
    bool,
    typer.Option(
        "--dynamic", help="global: let the model choose the reports.", rich_help_panel=_OF_METHODS
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(help="global, text_summary: shuffle by this.", rich_help_panel=_OF_METHODS),
]
Depth = Annotated[
    int | None, typer.Option(help="drift: rounds of questions.", rich_help_panel=_OF_METHODS)
]
Width = Annotated[
    int | None, typer.Option(help="drift: questions in a round.", rich_help_panel=_OF_METHODS)
]


class Format(StrEnum):
    """How `sql` prints rows."""

    table = "table"
    csv = "csv"
    json = "json"


class ExportFormat(StrEnum):
    """What `export` writes."""

    graphrag = "graphrag"
    graphml = "graphml"
    json = "json"
    neo4j = "neo4j"
    rdf = "rdf"
    parquet = "parquet"
    csv = "csv"


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("graphrag-pipeline"))
        raise typer.Exit


@app.callback()
def _options(
    config: Annotated[
        Path | None,
        typer.Option(help="Settings file (default: graphrag.toml here, then in the home)."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, help="Print the version.")
    ] = False,
) -> None:
    if config is None:
        return
    if not config.is_file():
        raise InputError(f"--config {config} is not a file")
    os.environ["GRAPHRAG_CONFIG"] = str(config.resolve())


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Where to write graphrag.toml.")] = Path("."),
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
) -> None:
    """Write a graphrag.toml with every setting, its meaning and its default."""
    from graphrag_pipeline.core.settings import CONFIG_FILE, template
    from graphrag_pipeline.ingest.batches import write_beside

    target = folder / CONFIG_FILE
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    if target.exists() and not force:
        raise InputError(f"{target} is there already: edit it, or use --force to start afresh")
    write_beside(target, template().encode())
    typer.echo(f"Wrote {target}. Next: graphrag-pipeline index FOLDER")


@app.command()
def index(
    folder: Documents = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask, whatever it costs.")
    ] = False,
    recluster: Annotated[
        bool,
        typer.Option("--recluster", help="Cluster the whole graph anew, not only repair it."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Index what was added, changed or removed in a folder, and publish a new release."""
    from graphrag_pipeline.cli import console

    settings = _settings()
    place = folder or settings.input_path
    if not place.is_dir():
        raise InputError(f"{place} is not a folder: name one that holds your documents")
    _estimate(settings, place, yes=yes, recluster=recluster)
    with console.progress(f"Looking for changes in {place}") as seconds:
        from graphrag_pipeline.orchestration.runs import index_folder, index_store
        from graphrag_pipeline.planning.estimate_log import end_estimate
        from graphrag_pipeline.releases.publishing import published_release

        before = published_release(settings.home_path)
        outcome = index_folder(settings, place, recluster=recluster)
    end_estimate(index_store(settings), settings)
    _show_outcome(
        settings,
        as_json,
        seconds.by_stage(),
        outcome.batches,
        outcome.run_ids,
        new_release=published_release(settings.home_path) != before,
        reclustered=recluster,
    )


@app.command()
def plan(
    folder: Documents = None,
    as_json: AsJson = False,
) -> None:
    """Say what the next index run would do and cost; nothing is written or spent."""
    from graphrag_pipeline.cli import console
    from graphrag_pipeline.planning.plan import plan_run

    settings = _settings()
    found = plan_run(settings, folder or settings.input_path)
    console.show_json(console.plan_values(found)) if as_json else console.show_plan(found)


def _estimate(settings: Settings, folder: Path, *, yes: bool, recluster: bool) -> None:
    """Say what a run by a model may cost, ask if it is much, and keep the estimate."""
    from graphrag_pipeline.store.spending import uses_model

    if not uses_model(settings):
        return
    from graphrag_pipeline.cli import console
    from graphrag_pipeline.planning.estimate_log import begin_estimate
    from graphrag_pipeline.planning.plan import plan_run
    from graphrag_pipeline.store.index_store import IndexStore

    expected = plan_run(settings, folder, recluster=recluster)
    if expected.calls:
        console.note(console.plan_total(expected))
    most = settings.llm.confirm_cost
    if not yes and most and (expected.cost or 0.0) > most:
        console.confirm(expected.cost or 0.0, most, "graphrag-pipeline plan")
    begin_estimate(IndexStore(settings.home_path / "index.duckdb"), settings, expected)


@app.command()
def tune(
    folder: Documents = None,
    output: Annotated[Path, typer.Option(help="Folder for the prompts.")] = Path("prompts"),
    as_json: AsJson = False,
) -> None:
    """Let a model read a sample of the documents and propose prompts for them, as files."""
    from dataclasses import asdict

    from graphrag_pipeline.cli import console
    from graphrag_pipeline.planning.tuning import tune as propose

    settings = _settings()
    found = propose(settings, folder or settings.input_path, output)
    console.show_json(asdict(found)) if as_json else console.show_tuning(found)


@app.command()
def status(as_json: AsJson = False) -> None:
    """Say what is indexed, pending and quarantined, and what is published."""
    from graphrag_pipeline.cli import console
    from graphrag_pipeline.planning.status import summarise

    summary = summarise(_settings())
    console.show_json(summary) if as_json else console.show_status(summary)


@app.command()
def query(
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            help="Such as local, global, bm25, auto; with a parameter: kg_triplets:hops=1. "
            "The README lists them all.",
        ),
    ] = "local",
    release: OfRelease = None,
    response_type: ResponseType = None,
    history: History = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Print the answer while it is written.")
    ] = False,
    level: Level = None,
    top_k: TopK = None,
    dynamic: Dynamic = False,
    seed: Seed = None,
    depth: Depth = None,
    width: Width = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question from the published index, with citations."""
    from graphrag_pipeline.cli import console
    from graphrag_pipeline.query import answer, read_history, read_method, stream_answer
    from graphrag_pipeline.query.methods.method import read_level

    if stream and as_json:
        raise InputError("--stream prints text as it comes: use it without --json")
    given = {"level": None if level is None else read_level(level), "top_k": top_k}
    given |= {"seed": seed, "depth": depth, "width": width}
    method, written = read_method(method)
    options = _taken(method, {**given, "dynamic": dynamic or None}) | written
    options |= {"history": read_history(history) if history else ()}
    options |= {"response_type": response_type}
    settings = _settings()
    if (history or response_type) and settings.query.answers != "llm":
        console.note("no model writes the answer: --history and --response-type do not count")
    options |= {"settings": settings, "home": settings.home_path, "release": release}
    if stream:
        console.show_stream(stream_answer(question, method, **options))
        return
    found = answer(question, method, **options)
    console.show_json(found.to_dict()) if as_json else console.show_answer(found)


@app.command()
def compare(
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    methods: Annotated[
        str,
        typer.Option(
            "--methods",
            "-m",
            help="Methods, with commas between; parameters as in kg_triplets:hops=1.",
        ),
    ] = "basic,bm25,local,global",
    retrieval_only: Annotated[
        bool, typer.Option("--retrieval-only", help="What each finds, with no answer made of it.")
    ] = False,
    release: OfRelease = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question by several methods: their answers, citations, tokens, cost and time."""
    from graphrag_pipeline.cli import console
    from graphrag_pipeline.query import compare as compare_methods

    settings = _settings()
    found = compare_methods(
        question,
        methods.split(","),
        retrieval_only=retrieval_only,
        home=settings.home_path,
        release=release,
        settings=settings,
    )
    if as_json:
        console.show_json([each.to_dict() for each in found])
    else:
        console.show_compared(found)


def _taken(method: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given; InputError where the method does not take one."""
    from graphrag_pipeline.query import methods_taking

    parameters = {name: value for name, value in given.items() if value is not None}
    for name in parameters:
        takers = methods_taking(name)
        if method not in takers:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} is for {', '.join(takers)}; {method} does not take it")
    return parameters


@app.command()
def sql(
    statement: Annotated[str, typer.Argument(help="One SQL statement.")],
    release: OfRelease = None,
    output: Annotated[
        Format, typer.Option("--format", "-f", help="How to print the rows.")
    ] = Format.table,
    as_json: AsJson = False,
) -> None:
    """Run SQL on the published index, read-only; its marts are there as marts.NAME.

    Macros answer the common questions by a name: "FROM neighbors('X')", "FROM evidence('X', 'Y')".
    "FROM macros" lists them, each with an example.
    """
    from graphrag_pipeline.cli import console
    from graphrag_pipeline.marts.build import marts_behind
    from graphrag_pipeline.sql import query_published

    home = _settings().home_path
    names, rows = query_published(home, statement, release)
    if behind := marts_behind(home, statement):
        console.note(behind)
    if as_json or output is Format.json:
        console.show_records(names, rows)
    elif output is Format.csv:
        console.show_csv(names, rows)
    else:
        console.show_rows(names, rows)


@app.command()
def marts(
    force: Annotated[
        bool, typer.Option("--force", help="Build them also if nothing is new.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Build the marts: tables that answer the common questions, each tested, in marts.duckdb.

    Profiles of entities, evidence of relationships down to the sentence, communities with their
    reports, coverage of documents, cost, quality, growth, and results of experiments. Nothing is
    built when they tell of the published release and of all experiments that are done. Ask them
    with: graphrag-pipeline sql "FROM marts.entity_profile".
    """
    from dataclasses import asdict

    from graphrag_pipeline.cli import console

    settings = _settings()
    with console.progress("Building the marts"):
        from graphrag_pipeline.orchestration.runs import run_marts

        done = run_marts(settings, force=force)
    console.show_json(asdict(done)) if as_json else console.show_marts(done)


@app.command()
def releases(as_json: AsJson = False) -> None:
    """List the releases that are kept: when each was made, what it holds, which is published."""
    from dataclasses import asdict

    from graphrag_pipeline.cli import console
    from graphrag_pipeline.releases.kept import list_releases

    found = list_releases(_settings().home_path)
    if as_json:
        console.show_json([asdict(release) for release in found])
    else:
        console.show_releases(found)


@app.command()
def rollback(
    release: Annotated[
        str | None, typer.Argument(help="A release, by how its id begins (default: the one before)")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Publish an older release again, in one step; readers see it from their next question on.

    The index itself stays as it is, and so does the older release: until documents or settings
    change what is in the index, neither `index` nor the schedule publishes anything. Name the
    newer release to go back to it.
    """
    from dataclasses import asdict

    from graphrag_pipeline.cli import console
    from graphrag_pipeline.orchestration.runs import index_store
    from graphrag_pipeline.releases.kept import rollback as go_back

    settings = _settings()
    done = go_back(index_store(settings), settings.home_path, release)
    console.show_json(asdict(done)) if as_json else console.show_rollback(done)


@app.command()
def diff(
    before: Annotated[
        str | None, typer.Argument(help="A release (default: the one before the published).")
    ] = None,
    after: Annotated[
        str | None, typer.Argument(help="Another release (default: the published one).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what entered, left and changed between two releases, the most important first."""
    from dataclasses import asdict

    from graphrag_pipeline.cli import console
    from graphrag_pipeline.releases.diff import diff_releases

    found = diff_releases(_settings().home_path, before, after)
    console.show_json(asdict(found)) if as_json else console.show_diff(found)


@app.command()
def export(
    format: Annotated[ExportFormat, typer.Argument(help="What to write.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File or folder to make (default: here).")
    ] = None,
    release: OfRelease = None,
    table: Annotated[
        list[str] | None,
        typer.Option("--table", help="parquet, csv: a table; again for more (default: all)."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over what is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the published index in a format of another tool.

    graphrag: microsoft/graphrag's parquet files; import-graphrag reads them.
    graphml, json (node-link): the graph, for networkx, Gephi, D3.
    neo4j: CSV for neo4j-admin, with a script that loads it.
    rdf: N-Triples (SKOS). parquet, csv: tables.
    """
    from dataclasses import asdict

    from graphrag_pipeline.cli import console
    from graphrag_pipeline.exchange.exporting import export_release

    home = _settings().home_path
    done = export_release(
        home, format.value, output, release=release, tables=table or (), force=force
    )
    console.show_json(asdict(done)) if as_json else console.show_export(done)


@app.command()
def explore(
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "graph.html"
    ),
    release: OfRelease = None,
    as_json: AsJson = False,
) -> None:
    """Write the graph as one HTML page to look around in: search, zoom, communities, source text.

    An entity leads to its description, relationships and passages; a community to its report, its
    members, and the communities inside and above it. The page needs no network and no other file.
    """
    from dataclasses import asdict

    from graphrag_pipeline.cli import console
    from graphrag_pipeline.pages.explorer import write_page

    done = write_page(_settings().home_path, output, release)
    console.show_json(asdict(done)) if as_json else console.show_page(done)


@app.command()
def report(
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    title: Annotated[
        str | None, typer.Option(help="What heads the page (default: from the folder's name).")
    ] = None,
    release: OfRelease = None,
    as_json: AsJson = False,
) -> None:
    """Write an overview of the whole corpus as one HTML page, to read, print or send.

    Its chapters are the root communities; it has the key entities and
    relationships with the sentences that support them, what could not be
    read, what it cost, and what changed since the release before. It needs
    no network and no other file.
    """
    from dataclasses import asdict

    from graphrag_pipeline.cli import console
    from graphrag_pipeline.pages.overview import write_report

    done = write_report(_settings().home_path, output, release, title=title)
    console.show_json(asdict(done)) if as_json else console.show_report(done)


@app.command()
def ui(
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Port of the web page.")] = 3000,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
) -> None:
    """Start Dagster's UI, with its sensors and the refresh schedule running."""
    from graphrag_pipeline.orchestration.runs import dagster_home

    settings = _settings()
    place = dagster_home(settings)
    os.environ.update(GRAPHRAG_HOME=str(settings.home_path), DAGSTER_HOME=str(place))
    typer.echo(f"Dagster's UI: http://{host}:{port} (stop with Ctrl-C)")
    # `dg dev`, which Dagster would rather have, wants to start in the folder of a project.
    quiet = "ignore:Function `dev_command` is superseded"
    command = [sys.executable, "-W", quiet, "-m", "dagster", "dev"]
    command += ["-w", str(place / "workspace.yaml")]
    os.execv(sys.executable, [*command, "-h", host, "-p", str(port)])


@app.command("import-graphrag")
def import_graphrag(
    directory: Annotated[Path, typer.Argument(help="microsoft/graphrag's output folder.")],
    as_json: AsJson = False,
) -> None:
    """Bring in an index made by microsoft/graphrag, and publish it; nothing is paid again."""
    from graphrag_pipeline.exchange.importing import import_graphrag as bring_in

    settings = _settings()
    _import(settings, as_json, directory, bring_in)


@app.command("import-extractions")
def import_extractions(
    file: Annotated[Path, typer.Argument(help="JSON Lines: text, entities and triples.")],
    as_json: AsJson = False,
) -> None:
    """Bring in entities and relationships that were extracted elsewhere, and publish."""
    from graphrag_pipeline.exchange.importing import import_extractions as bring_in

    settings = _settings()
    _import(settings, as_json, file, bring_in)


def _import(
    settings: Settings,
    as_json: bool,
    source: Path,
    bring_in: Callable[[Path, Path, Settings], ImportResult],
) -> None:
    from dataclasses import asdict

    from graphrag_pipeline.cli import console
    from graphrag_pipeline.ingest.batches import BatchLog

    if not source.exists():
        raise InputError(f"{source} does not exist")
    with console.progress(f"Reading {source}") as seconds:
        from graphrag_pipeline.orchestration.runs import index_store, run_pending

        result = bring_in(source, settings.home_path, settings)
        outcome = run_pending(settings, index_store(settings), BatchLog(settings.home_path))
    _show_outcome(
        settings,
        as_json,
        seconds.by_stage(),
        outcome.batches,
        outcome.run_ids,
        imported=asdict(result),
    )


def _show_outcome(
    settings: Settings,
    as_json: bool,
    seconds: dict[str, float],
    batches: Sequence[str],
    run_ids: Sequence[str],
    **more: object,
) -> None:
    from graphrag_pipeline.cli import console
    from graphrag_pipeline.ingest.batches import BatchLog
    from graphrag_pipeline.planning.status import changes_in, summarise

    summary = {
        **summarise(settings),
        "changes": changes_in(BatchLog(settings.home_path), batches),
        "seconds": seconds,
        "batches_run": len(batches),
        "runs": list(run_ids),
        **more,
    }
    console.show_json(summary) if as_json else console.show_index(summary)


def _settings() -> Settings:
    from graphrag_pipeline.core.settings import load_settings

    return load_settings()


def _fail(message: str, code: int) -> None:
    lines = [line for line in message.splitlines() if line.strip()] or ["it failed"]
    prefix = "" if code == _INTERRUPTED else "error: "
    sys.stderr.write("".join(f"{prefix}{line}\n" for line in lines))
    raise SystemExit(code)


def _stop_writing() -> None:
    """End quietly: whoever read our output has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(0)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        try:
            app(prog_name="graphrag-pipeline")
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        _fail("stopped", _INTERRUPTED)
    except BrokenPipeError:
        _stop_writing()
