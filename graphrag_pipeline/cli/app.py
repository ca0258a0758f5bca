"""The command line. Heavy modules are imported by the commands that need them.

Results go to standard output, everything else to standard error. Exit codes are in ``EXIT_CODES``.
"""

from __future__ import annotations

import gc
import io
import os
import sys
import threading
import traceback
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import CONFIG
from graphrag_pipeline.cli.commands import COMMANDS, Commands, commands_to_be_had
from graphrag_pipeline.cli.memory_limit import run_in_child_if_limited
from graphrag_pipeline.core.doors import raised_outside
from graphrag_pipeline.core.errors import (
    DeclinedError,
    GraphRAGError,
    InputError,
    StorageError,
    is_interrupt,
)
from graphrag_pipeline.core.hardening.memory import (
    as_out_of_memory,
    memory_is_short,
    share_freed_memory,
)
from graphrag_pipeline.core.hardening.open_files import allow_open_files, require_open_files

EXIT_CODES = (
    "Exit codes: 0 done; 1 a run failed; 2 wrong usage, input or setting; 3 nothing published "
    "yet; 4 another process holds the index; 5 the index cannot be written or read, "
    "or memory ran out; 6 the model gave an error; 7 the budget of model calls is used up; "
    "130 interrupted."
)
_RESUMABLE = ("index", "import-graphrag", "import-extractions", "forget", "purge")
_INTERRUPTED = 130
_OBJECTS_BETWEEN_COLLECTIONS = 200_000
_COLLECTIONS_BETWEEN_DEEPER_ONES = 50


class _Commands(TyperGroup):
    """The commands; the project's own errors become one line each and an exit code."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands()

    def list_commands(self, ctx: typer.Context) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return [*COMMANDS.usable()]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Say last which commands extras would bring that are not installed."""
        self.epilog = "\n\n".join(filter(None, (EXIT_CODES, commands_to_be_had())))
        super().format_help(ctx, formatter)

    def invoke(self, ctx: typer.Context) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except GraphRAGError as error:
            failure = as_out_of_memory(error) or error
            is_error = not isinstance(failure, DeclinedError)
            _fail(str(failure), failure.exit_code, is_error=is_error)
        except (KeyboardInterrupt, RuntimeError) as error:
            if not is_interrupt(error):
                _fail_for_want_of_memory(error)
                _blame_package(error)
                raise
            advice = "; what was finished is kept: run the command again to continue"
            resumable = ctx.invoked_subcommand in _RESUMABLE
            _fail(f"stopped{advice if resumable else ''}", _INTERRUPTED, is_error=False)
        except BrokenPipeError:
            _stop_writing()
        except PermissionError as error:
            _fail(f"cannot use {error.filename}: permission denied", StorageError.exit_code)
        except BaseException as error:
            _fail_for_want_of_memory(error)
            _blame_package(error)
            raise


app = typer.Typer(
    name="graphrag-pipeline",
    cls=_Commands,
    help="Turn documents into a knowledge graph in DuckDB and LanceDB, and ask it questions.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    if config and not config.is_file():
        raise InputError(f"--config {config} is not a file")
    allow_open_files()
    require_open_files()
    CONFIG.set(config and config.resolve())


def _fail(message: str, code: int, *, is_error: bool = True) -> None:
    if is_error:
        console.note_error(message if message.strip() else "it failed")
    else:
        console.note(message)
    raise SystemExit(code)


def _fail_for_want_of_memory(error: BaseException) -> None:
    # What typer raises to end, well or not, says with which code.
    if not hasattr(error, "exit_code") and (failure := as_out_of_memory(error)):
        _fail(str(failure), failure.exit_code)


def _blame_package(error: BaseException) -> None:
    """Say last which package, and which line of it, has raised what the program did not expect."""
    # What typer raises to end is no mistake.
    is_mistake = isinstance(error, Exception) and not isinstance(error, typer.Abort)
    if is_mistake and not hasattr(error, "exit_code") and (outside := raised_outside(error)):
        traceback.print_exception(error)
        _fail(outside, 1)


def _hear_of_threads(failure: threading.ExceptHookArgs) -> None:
    """Be silent on a thread that got no memory: whoever waits for it is told."""
    if failure.exc_value is None or not as_out_of_memory(failure.exc_value):
        threading.__excepthook__(failure)


def _stop_writing() -> None:
    """End quietly: whoever read our output has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(0)


def set_up_memory() -> None:
    """Let threads share what they free, and look for garbage rarely.

    What is imported stays, and a sixth of its time goes to looking.
    """
    share_freed_memory(1)
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, _COLLECTIONS_BETWEEN_DEEPER_ONES)


def _open_what_is_closed() -> None:
    """Write nowhere what was started without: the next file that is opened would be written to."""
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")


def main() -> None:
    """Run the command line."""
    _open_what_is_closed()
    run_in_child_if_limited()
    set_up_memory()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    threading.excepthook = _hear_of_threads
    try:
        try:
            app(prog_name="graphrag-pipeline")
        finally:
            sys.stdout.flush()
            # Python takes apart what was imported, and looks through it for garbage: .6 s in vain.
            gc.freeze()
    except SystemExit as end:
        if isinstance(end.code, int) and memory_is_short():
            # To take a process apart takes memory, too: without, it may crash in the end.
            os._exit(end.code)
        raise
    except KeyboardInterrupt:
        _fail("stopped", _INTERRUPTED, is_error=False)
    except BrokenPipeError:
        _stop_writing()
