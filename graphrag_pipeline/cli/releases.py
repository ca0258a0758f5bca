"""`releases`, `rollback` and `diff`: the releases that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import prints, settings_here
from graphrag_pipeline.core.rows import one_line
from graphrag_pipeline.core.text import counted

if TYPE_CHECKING:
    from graphrag_pipeline.releases.kept_releases import KeptRelease
    from graphrag_pipeline.releases.rollback import Rollback
    from graphrag_pipeline.releases.table_diffs import ReleaseDiff


_COUNTED_IN_RELEASES = (
    ("document", "documents"),
    ("entity", "entities"),
    ("relationship", "relationships"),
    ("report", "reports"),
)


def show_releases(releases: Sequence[KeptRelease]) -> None:
    """Print the releases that are kept, newest first, the published one pointed out."""
    for release in releases:
        state = "published" if release.is_current else "withdrawn" if release.is_withdrawn else ""
        created = release.created_at.strftime("%Y-%m-%d %H:%M UTC")
        counts = [
            counted(release.counts[plural], noun, plural) for noun, plural in _COUNTED_IN_RELEASES
        ]
        console.say_whole(f"{release.id}  {state}".rstrip())
        console.say_whole(
            f"  {created}, {', '.join(counts)}, {release.n_bytes / 1e6:.1f} MB", style="dim"
        )
        if len(releases) == 1 and release.path:
            console.say_whole(f"  {release.path}", style="dim")


def show_rollback(rollback: Rollback) -> None:
    """Print what a rollback did, and how to undo it."""
    console.say(f"Release {rollback.now} is published again; it stays until the index changes.")
    if rollback.before:
        console.say_whole(f"To take this back: graphrag-pipeline rollback {rollback.before}")


def show_diff(diff: ReleaseDiff) -> None:
    """Print what entered, left and changed between two releases."""
    console.fact("before", diff.before)
    console.fact("after", diff.after)
    console.table(
        ("", "before", "after", "entered", "left", "changed", "renamed"),
        [
            (name.replace("_", " "), t.before, t.after, t.entered, t.left, t.changed, t.renamed)
            for name, t in diff.tables.items()
        ],
    )
    for name, table in diff.tables.items():
        for change, first in table.first.items():
            if first:
                console.say_whole(f"{name.replace('_', ' ')} {change}:")
                for title in first:
                    console.say_whole(f"  {one_line(title)}")
                console.more(getattr(table, change) - len(first))


@prints(show_releases)
def releases(
    release: Annotated[
        str | None,
        typer.Argument(help="Make this one a file that DuckDB opens, and list it alone."),
    ] = None,
) -> list[KeptRelease]:
    """List the kept releases: when each was made, what it holds, and which one is published.

    An older release is kept as the rows in which it differs from a newer one. Named here, it is a
    file of its own until the next one is published.
    """
    from graphrag_pipeline.releases.kept_releases import find_release, list_releases
    from graphrag_pipeline.releases.older_releases import release_file

    home = settings_here().home_path
    named = find_release(home, release) if release else None
    if named:
        release_file(home, named)
    return [each for each in list_releases(home) if named in (None, each.id)]


@prints(show_rollback)
def rollback(
    release: Annotated[
        str | None,
        typer.Argument(
            help="A release: its id, or the first characters of it (default: the one before)."
        ),
    ] = None,
) -> Rollback:
    """Publish an older release again. Readers see it from their next question on.

    The index itself does not change. The older release stays published until documents or
    settings change the index: until then neither `index` nor the schedule publishes anything.
    Name the newer release to return to it.
    """
    from graphrag_pipeline.releases.rollback import rollback as go_back
    from graphrag_pipeline.store.workspace import Workspace

    return go_back(Workspace(settings_here()), release)


@prints(show_diff)
def diff(
    before: Annotated[
        str | None, typer.Argument(help="A release (default: the one before the published).")
    ] = None,
    after: Annotated[
        str | None, typer.Argument(help="Another release (default: the published one).")
    ] = None,
) -> ReleaseDiff:
    """Show what entered, left and changed between two releases, the most important first."""
    from graphrag_pipeline.releases.diff import diff_releases

    return diff_releases(settings_here().home_path, before, after)
