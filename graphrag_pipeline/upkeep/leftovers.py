"""Files of the home that can be made again, or that killed runs have left."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path

from graphrag_pipeline.core.hardening.files import told_of_disk
from graphrag_pipeline.core.hardening.temporary import sweep_home, temporary_folder
from graphrag_pipeline.ingest.documents import ocr_options
from graphrag_pipeline.ingest.reading.ocr import text_file
from graphrag_pipeline.releases.kept_releases import changing_releases
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.upkeep.home_files import files, purge_files

# What a repair has put aside.
_DAMAGED = "*.damaged-*"


def made_again(workspace: Workspace, removed: Collection[str] = ()) -> list[str]:
    """Return the paths in the home of files and folders that can be made again, or are damaged.

    What files of the home call outdated is among them; documents of ``removed`` files count as
    gone.
    """
    home = workspace.home
    damaged = (path.relative_to(home).as_posix() for path in home.rglob(_DAMAGED))
    there = [(name, file) for name, file in files().items() if (home / name).exists()]
    names = [name for name, file in there if file.is_made_again]
    outdated = [
        path for _, file in there if file.outdated for path in file.outdated(workspace, removed)
    ]
    names += sorted(damaged)
    return names + [path.relative_to(home).as_posix() for path in outdated]


def drop_leftovers(workspace: Workspace) -> list[str]:
    """Remove them; return the names of those that can be made again.

    What other packages keep in the home is left without what is gone.

    Marts that are being built meanwhile have lost their folder, and are not put in place. Raises
    StorageError where a file cannot be removed.
    """
    home = workspace.home
    with changing_releases(home):
        derived = made_again(workspace)
        sweep_home(home)
        for path in [*(home / name for name in derived), *_texts_of_gone_scans(workspace)]:
            _remove(path)
        purge_files(home, workspace.paths.published)
    return derived


def _texts_of_gone_scans(workspace: Workspace) -> Iterator[Path]:
    """Yield the texts of scanned pages of files that are no more, or not as they were."""
    folder = workspace.paths.ocr
    if not folder.is_dir():
        return
    used: set[Path] = set()
    for uri in workspace.batches.sources():
        if uri.lower().endswith(".pdf"):
            with contextlib.suppress(OSError):
                data = workspace.batches.path_of(uri).read_bytes()
                used.add(text_file(data, ocr_options(workspace.settings)))
    yield from sorted(set(folder.iterdir()) - used)


def _remove(path: Path) -> None:
    with told_of_disk(f"cannot remove {path}"):
        if path.is_dir() and not path.is_symlink():
            # Away in one step: whoever writes in it would make files while it is emptied.
            with temporary_folder(path.parent, path.name) as folder:
                path.rename(folder / path.name)
        else:
            path.unlink(missing_ok=True)
