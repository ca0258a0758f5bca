"""Older releases: kept as the rows in which they differ, and made whole when they are asked for.

What is published and the newest release are whole files. Any other is ``releases/<id>.changes``
beside a newer one that is kept (:mod:`~graphrag_pipeline.releases.row_changes`), until somebody
opens it: then it is a file again, up to the next publish. A file of changes is written before the
whole one goes, and the other way round; where a kill leaves both, the whole one counts.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from graphrag_pipeline.core.errors import NothingPublishedError, StorageError
from graphrag_pipeline.core.hardening.files import (
    forbid_writing,
    private_temporary,
    replacing,
)
from graphrag_pipeline.core.hardening.temporary import process_folder, temporary_folder
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.releases.kept_releases import (
    UnknownReleaseError,
    changes_file,
    changing_releases,
    find_release,
    forget_files,
    is_whole,
    kept_file,
    list_releases,
    nothing_published,
    published_release,
    release_ids,
    whole_releases,
)
from graphrag_pipeline.releases.row_changes import (
    are_alike,
    base_of,
    side_by_side,
    undo_changes,
    write_changes,
)
from graphrag_pipeline.releases.table_diffs import as_json, compare
from graphrag_pipeline.store.index_store import copy_rows, told_of_files
from graphrag_pipeline.store.limits import DatabaseLimits

log = logging.getLogger("graphrag_pipeline")

MOST_NAMES = 10
"""Names of what changed that are kept, of each change, with an older release."""


def release_file(home: Path, prefix: str | None = None) -> Path:
    """Return the DuckDB file of a release, by the beginning of its id; None: what readers see.

    An older one is made whole first, which waits while somebody publishes; where the home cannot
    be written in, that is in a temporary folder of this process. Raises what :func:`find_release`
    raises, and StorageError where the release cannot be made whole.
    """
    if prefix is None:
        path = Home(home).published
        if not path.is_file():
            raise NothingPublishedError(nothing_published(home))
        return path
    release = find_release(home, prefix)
    if is_whole(home, release):
        return kept_file(home, release)
    if changes_file(home, release).is_file():
        return _made_whole(home, release)
    if published_release(home) != release:
        raise UnknownReleaseError(f"release {release} was deleted a moment ago: name another")
    return Home(home).published


def _made_whole(home: Path, release: str) -> Path:
    try:
        with changing_releases(home):
            return make_whole(home, release)
    except StorageError:
        if not changes_file(home, release).is_file():
            raise UnknownReleaseError(
                f"release {release} was deleted a moment ago: name another"
            ) from None
        return _whole_elsewhere(home, release)


@functools.lru_cache
def _whole_elsewhere(home: Path, release: str) -> Path:
    path = process_folder(private_temporary(), "releases") / f"{release}.duckdb"
    _write_whole(home, release, path)
    return path


def make_whole(home: Path, release: str) -> Path:
    """Make a release that is kept as changes a file of its own again, and return that.

    Call it while :func:`changing_releases`. Raises StorageError.
    """
    path = kept_file(home, release)
    if not path.is_file():
        with told_of_files(f"cannot write {path}"), replacing(path) as beside:
            _write_whole(home, release, beside)
    changes_file(home, release).unlink(missing_ok=True)
    return path


def _write_whole(home: Path, release: str, target: Path) -> None:
    source, steps = _way_back(home, release)
    with told_of_files(f"cannot make release {release} whole"):
        with temporary_folder(target.parent, target.name) as folder:
            changed, anew = folder / "changed", folder / "anew"
            shutil.copyfile(source, changed)
            for step in steps:
                undo_changes(step, changed, DatabaseLimits())
            # An older DuckDB cannot open every file in which rows were deleted.
            copy_rows(changed, anew)
            anew.replace(target)
        forbid_writing(target)


def _way_back(home: Path, release: str) -> tuple[Path, list[Path]]:
    """Return the whole release that one is made from, and the changes to undo, in order."""
    steps: list[Path] = []
    while not is_whole(home, release):
        step = changes_file(home, release)
        if step in steps or not step.is_file():
            raise StorageError(
                f"release {release} is not there, and others are kept as what differs from it: "
                "run graphrag-pipeline check"
            )
        steps.append(step)
        release = base_of(step)
    return kept_file(home, release), steps[::-1]


@dataclass(frozen=True)
class OpenedRelease:
    """A release that is kept: a whole file of it, or why there is none."""

    id: str
    path: Path | None
    fault: str = ""


def each_release(home: Path) -> Iterator[OpenedRelease]:
    """Yield each release that is kept, newest first.

    The files of those that are kept as changes are gone at the next step: one is made of the other.
    """
    with temporary_folder(_writable(home), "releases") as folder:
        file, held = folder / "release.duckdb", ""
        for release in release_ids(home):
            if not changes_file(home, release).is_file() or is_whole(home, release):
                path = kept_file(home, release)
                yield OpenedRelease(release, path if path.is_file() else Home(home).published)
                continue
            try:
                with told_of_files(f"cannot make release {release} whole"):
                    if held and base_of(changes_file(home, release)) == held:
                        undo_changes(changes_file(home, release), file, DatabaseLimits())
                    else:
                        _write_whole(home, release, file)
                        file.chmod(0o600)
                held = release
                opened = OpenedRelease(release, file)
            except StorageError as error:
                held = ""
                opened = OpenedRelease(release, None, str(error))
            yield opened


def _writable(home: Path) -> Path:
    """Return a folder for files as large as a release."""
    folder = Home(home).releases
    with contextlib.suppress(OSError), temporary_folder(folder, "room"):
        return folder
    return process_folder(private_temporary(), "releases")


def store_as_changes(home: Path, limits: DatabaseLimits) -> None:
    """Keep older releases as the rows in which they differ from the next newer whole one.

    What another version of the program has made stays whole. Where one cannot be stored that is
    logged and no error. Call it while :func:`changing_releases`.
    """
    whole = sorted(whole_releases(home))
    stay = {published_release(home), *release_ids(home)[:1]}
    for number, release in enumerate(whole):
        if release not in stay and number + 1 < len(whole):
            try:
                with told_of_files(f"cannot keep release {release} as changes"):
                    _store(home, release, whole[number + 1], limits)
            except StorageError as error:
                log.warning("%s: it stays a whole file", error)


def _store(home: Path, release: str, base: str, limits: DatabaseLimits) -> None:
    path = changes_file(home, release)
    with side_by_side(kept_file(home, release), kept_file(home, base), limits) as con:
        if not are_alike(con):
            return
        with replacing(path) as beside:
            write_changes(con, beside, as_json(compare(con, "older", "newer", most=MOST_NAMES)))
            forbid_writing(beside)
    kept_file(home, release).unlink(missing_ok=True)


def drop_old(home: Path, spared: Iterable[str | None], keep: int, keep_days: float) -> list[str]:
    """Remove the files of releases beyond ``keep`` or older than ``keep_days`` (0: any age).

    The newest two, the published one and those ``spared`` always stay. Returns the ids of all
    that are kept. Call it while :func:`changing_releases`.
    """
    listed = list_releases(home)
    oldest = datetime.now(UTC) - timedelta(days=keep_days) if keep_days else None
    stay = {release.id for release in listed[:2]} | {published_release(home), *spared}
    stay |= {
        release.id for release in listed[:keep] if oldest is None or release.created_at >= oldest
    }
    going = [release for release in release_ids(home) if release not in stay]
    set_free(home, going)
    forget_files(home, going)
    return release_ids(home)


def set_free(home: Path, going: Sequence[str]) -> None:
    """Make whole what stays and is kept as what differs from releases that go, or will change.

    Call it while :func:`changing_releases`. Raises StorageError.
    """
    for release in release_ids(home) if going else ():
        changes = changes_file(home, release)
        if release in going or is_whole(home, release) or not changes.is_file():
            continue
        if base_of(changes) in going:
            make_whole(home, release)
