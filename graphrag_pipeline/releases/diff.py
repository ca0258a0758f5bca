"""Two releases that are kept, compared."""

from __future__ import annotations

from pathlib import Path

from graphrag_pipeline.core.errors import InputError, NothingPublishedError
from graphrag_pipeline.releases.kept_releases import (
    changes_files,
    find_release,
    nothing_published,
    published_release,
    release_before,
)
from graphrag_pipeline.releases.older_releases import MOST_NAMES, release_file
from graphrag_pipeline.releases.row_changes import base_of, differences_in
from graphrag_pipeline.releases.table_diffs import ReleaseDiff, compare_files, of_json
from graphrag_pipeline.store.limits import DatabaseLimits


def diff_releases(
    home: Path,
    before: str | None = None,
    after: str | None = None,
    *,
    most: int = MOST_NAMES,
    limits: DatabaseLimits | None = None,
) -> ReleaseDiff:
    """Compare two releases that are kept, each named by its id or the beginning of it.

    ``after`` defaults to the published release, ``before`` to the one before that. ``most`` names
    are given of each change; ``limits`` are those of a run that compares. Nothing waits for it.

    Raises InputError for an unknown release or when there is none before, NothingPublishedError
    when there is none at all, StorageError when a file cannot be read.
    """
    later = find_release(home, after) if after else published_release(home)
    if later is None:
        raise NothingPublishedError(nothing_published(home))
    earlier = find_release(home, before) if before else release_before(home, later)
    if earlier is None:
        raise InputError(f"no release is kept from before {later}: there is nothing to compare")
    if earlier == later:
        raise InputError(f"release {later} is named twice: name two releases to compare")
    changes = changes_files(home).get(earlier)
    if changes and most <= MOST_NAMES and base_of(changes) == later:
        # What was noted when the earlier was stored as what differs from the later.
        return ReleaseDiff(earlier, later, of_json(differences_in(changes), most))
    files = release_file(home, earlier), release_file(home, later)
    return ReleaseDiff(earlier, later, compare_files(*files, most=most, limits=limits))
