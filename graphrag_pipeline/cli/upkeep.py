"""`check`, `backup` and `restore`: an index verified, repaired, and kept elsewhere."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import CONFIG, plain_values, prints, settings_here
from graphrag_pipeline.cli.progress import progress
from graphrag_pipeline.core.text import counted

if TYPE_CHECKING:
    from graphrag_pipeline.index import Restoration
    from graphrag_pipeline.upkeep.backups import Backup
    from graphrag_pipeline.upkeep.checking import Checked


def show_checked(checked: Checked) -> None:
    """Print what was repaired and what is wrong, a line each, and the verdict."""
    for line in checked.repairs:
        console.say_whole(f"repaired: {line}")
    for problem in checked.problems:
        console.say_whole(problem.line)
    for line in checked.notes:
        console.note(line)
    console.say(checked.verdict)


def checked_values(checked: Checked) -> dict[str, Any]:
    """Return the outcome of a check as values that JSON can hold."""
    names = ("check", "where", "what", "number", "example", "can_repair", "line")
    return {
        "ok": not checked.problems,
        "problems": [
            {name: getattr(problem, name) for name in names} for problem in checked.problems
        ],
        "repairs": list(checked.repairs),
        "notes": list(checked.notes),
    }


@prints(show_checked, checked_values, fails=lambda checked: checked.problems)
def check(
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Rebuild what can be rebuilt from a release, the cache or the index.",
        ),
    ] = False,
) -> Checked:
    """Verify index, vectors, releases, manifests and answers against each other.

    Each problem is one line: where, what, how many, an example, what to do. The exit code is 1
    where there are any. Nothing is changed without --repair, and no model is asked in any case:
    what was replaced stays beside its place, with `damaged` in its name. What cannot be made again,
    as a manifest, is left alone: restore it from a backup.
    """
    from graphrag_pipeline.index import Index

    index = Index(settings_here())
    with progress("Checking") if sys.stderr.isatty() else contextlib.nullcontext():
        return index.check(repair=repair)


def show_backup(made: Backup) -> None:
    """Print where a backup is and what it holds."""
    what = f"release {made.release}" if made.release else "no release yet"
    console.say_whole(
        f"Wrote {made.archive}: {counted(made.n_files, 'file')}, {made.n_bytes / 1e6:,.1f} MB, "
        f"as {made.size / 1e6:,.1f} MB; {what}."
    )
    for name in made.left_out:
        console.note(f"left out: {name} (it may hold a key; back it up yourself)")
    if made.document_indexes:
        indexes = counted(made.document_indexes, "index", "indexes")
        console.note(
            f"left out: {indexes} of single documents; experiments make them again, from the "
            "answers that were paid"
        )


@prints(show_backup)
def backup(
    archive: Annotated[Path, typer.Argument(help="The file to write, such as index.tar.zst.")],
    with_history: Annotated[
        bool, typer.Option("--with-history", help="Include the history of Dagster's runs.")
    ] = False,
) -> Backup:
    """Write index, releases, vectors, manifests and paid answers to one archive (tar, zstd).

    You can make one while a run goes on: in the archive, that run looks as if it had been
    stopped. The archive holds no documents, no keys, no pictures and nothing that dbt parsed.
    """
    from graphrag_pipeline.index import Index

    return Index(settings_here()).backup(archive, with_history=with_history)


def show_restored(restored: Restoration) -> None:
    """Print what was restored, and what a check of it has found."""
    made = restored.made_at.replace("T", " ").replace("+00:00", " UTC")
    console.say_whole(
        f"Restored {restored.home}: {counted(restored.n_files, 'file')}, "
        f"{restored.n_bytes / 1e6:,.1f} MB, backed up {made}."
    )
    show_checked(restored.checked)


def restored_values(restored: Restoration) -> dict[str, Any]:
    """Return what was restored, and what a check of it has found, as values that JSON can hold."""
    values = plain_values(restored)
    del values["checked"]
    return {**values, **checked_values(restored.checked)}


@prints(show_restored, restored_values, fails=lambda restored: restored.checked.problems)
def restore(
    archive: Annotated[Path, typer.Argument(help="A file that `backup` has written.")],
    home: Annotated[
        Path | None, typer.Option(help="An empty folder, or none yet (default: the home).")
    ] = None,
) -> Restoration:
    """Restore an archive to an empty home folder, and check what was restored.

    Each file is compared with its hash first; the folder is there whole or not at all.
    """
    from graphrag_pipeline.core.settings import load_settings
    from graphrag_pipeline.index import Index

    config = CONFIG.get()
    settings = load_settings(config) if config else None
    return Index.restore(archive, home or settings_here().home_path, settings)
