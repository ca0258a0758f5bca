"""Settings, printing and ``--json``, which every command shares."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.core.rows import one_line

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings
    from graphrag_pipeline.ingest.sites import Fetched
    from graphrag_pipeline.store.workspace import Workspace

P = ParamSpec("P")
T = TypeVar("T")

CONFIG: ContextVar[Path | None] = ContextVar("config", default=None)
"""The settings file that ``--config`` names."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
OfRelease = Annotated[
    str | None,
    typer.Option("--release", help="A kept release: its id, or the first characters of it."),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        help="Only documents with this metadata, title or uri: --where year=2020, "
        "'uri=in/Harbour/*', 'sender=*@x.org', 'date>=2024-01-31'. A key may be given several "
        "times: any of its values counts. Different keys must all match."
    ),
]
AsLabels = Annotated[
    str | None,
    typer.Option(
        "--as-labels",
        help="Only what a caller with these labels may see (comma-separated; see [access]).",
    ),
]
Raw = Annotated[
    bool,
    typer.Option(
        "--raw",
        help="For csv: leave text unescaped, even if a spreadsheet would calculate it (=1+1).",
    ),
]
Documents = Annotated[
    Path | None, typer.Argument(help="Folder of documents (default: input.folder).")
]
Source = Annotated[
    str | None,
    typer.Argument(
        help="Folder of documents, or the address of a web page or sitemap (default: input.folder, "
        "and input.urls)."
    ),
]
Verify = Annotated[
    bool,
    typer.Option("--verify", help="Read all files, even those that look unchanged."),
]
_MOST_PROBLEMS = 10


def label_list(labels: str | None) -> list[str] | None:
    """Return labels that stand between commas; None where none were given at all."""
    if labels is None:
        return None
    return [label.strip() for label in labels.split(",") if label.strip()]


def documents_where(conditions: Sequence[str] | None) -> dict[str, list[str]]:
    """Return what KEY=VALUE conditions ask for; raises InputError for one that is none."""
    from graphrag_pipeline.query.limited_release import where_of

    return where_of(conditions or (), "--where")


def plain_values(result: Any) -> Any:
    """Return the result of a command as values that JSON can hold."""
    if isinstance(result, list | tuple):
        return [plain_values(item) for item in result]
    if hasattr(result, "to_dict"):
        return result.to_dict()
    return asdict(result) if is_dataclass(result) and not isinstance(result, type) else result


def prints(
    show: Callable[[T], None],
    values: Callable[[T], Any] = plain_values,
    *,
    fails: Callable[[T], object] = lambda result: False,
) -> Callable[[Callable[P, T]], Callable[..., None]]:
    """Give a command the option ``--json``, and print what it returns.

    ``show`` prints the result for a person; ``values`` returns what is printed as JSON. The exit
    code is 1 where the result ``fails``.
    """

    def declare(command: Callable[P, T]) -> Callable[..., None]:
        # The type of the result may be imported for the type checker only; typer reads the rest.
        command.__annotations__.pop("return", None)
        signature = inspect.signature(command, eval_str=True)
        as_json = inspect.Parameter(
            "as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=AsJson
        )
        parameters = [*signature.parameters.values(), as_json]

        @functools.wraps(command)
        def run(*arguments: P.args, **options: P.kwargs) -> None:
            as_json = options.pop("as_json", False)
            result = command(*arguments, **options)
            console.show_json(values(result)) if as_json else show(result)
            if fails(result):
                raise typer.Exit(1)

        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return declare


def passes_options(command: Callable[P, T]) -> Callable[P, T]:
    """Let a command have as arguments the options that it does not know itself."""
    command.context_settings = {"ignore_unknown_options": True}  # type: ignore[attr-defined]
    return command


def settings_here() -> Settings:
    """Return the settings of this folder and environment, or of the file of ``--config``."""
    from graphrag_pipeline.core.settings import load_settings

    settings = load_settings(CONFIG.get())
    if settings.storage.url:
        from graphrag_pipeline.core.sharing import sharing_of

        sharing_of(settings).follow()
    return settings


def settings_for_runs() -> Settings:
    """Return the settings of who makes an index, and so follows no release that others publish.

    The cron schedules are checked, which only Dagster can do.
    """
    from graphrag_pipeline.core.settings import (
        EvaluationSettings,
        ScheduleSettings,
        load_settings,
    )

    settings = load_settings(CONFIG.get())
    crons = (settings.schedule, settings.evaluation.cron)
    # Dagster takes over a second to import: the crons we deliver need no check.
    if crons != (ScheduleSettings(), EvaluationSettings().cron):
        from graphrag_pipeline.sensors import check_crons

        check_crons(settings)
    return settings


def folders_of(workspace: Workspace, source: str | None) -> list[Path]:
    """Return the folders of a source; that of web pages, which are fetched now, comes first.

    There are two where no source is named, and both a folder and addresses are configured.
    """
    folder, addresses = source_of(workspace.settings, source)
    if not addresses:
        return [folder]
    from graphrag_pipeline.ingest.sites import fetch_sites
    from graphrag_pipeline.store.snapshots import snapshot_folder

    show_fetched(fetch_sites(workspace.home, addresses, workspace.settings))
    pages = snapshot_folder(workspace.home)
    return [pages] if source is not None or not folder.is_dir() else [pages, folder]


def source_of(settings: Settings, source: str | None) -> tuple[Path, Sequence[str]]:
    """Return the folder and the addresses of web pages that a source names, or the settings."""
    from graphrag_pipeline.store.snapshots import is_address

    if source and is_address(source):
        return settings.input_path, (source,)
    folder = Path(source) if source else settings.input_path
    return folder, settings.input.urls if source is None else ()


def show_fetched(fetched: Fetched) -> None:
    """Tell what came of fetching pages."""
    console.note(
        f"Fetched {fetched.new} new and {fetched.changed} changed pages; "
        f"{fetched.unchanged} are unchanged, {fetched.gone} are gone."
    )
    for address, why in list(fetched.problems.items())[:_MOST_PROBLEMS]:
        console.note(f"  {one_line(address)[:200]}: {one_line(why)}")
    if len(fetched.problems) > _MOST_PROBLEMS:
        console.note(f"  and {len(fetched.problems) - _MOST_PROBLEMS} more")
