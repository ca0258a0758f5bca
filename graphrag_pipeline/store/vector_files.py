"""The files of vector tables: put on disk for good, and mended after a power cut.

LanceDB leaves it to the system when its files reach the disk. A power cut may therefore leave
versions whose names are there and whose content is not; LanceDB then opens no version of the table
at all, for it looks at the newest first. So a table is synced before anything relies on it, and
``synced.json`` says as of which version it was. What was written later is given up where it is
damaged: nothing relies on it, and the next run makes it again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from graphrag_pipeline.core.hardening.files import sync_folder, sync_tree, write_beside

_SYNCED = "synced.json"
_ENDS_WITH = {".lance": b"LANC", ".manifest": b"LANC", ".arrow": b"ARROW1", ".json": b"}"}
_VERSIONS, _TAGS, _HINT = "_versions", "_refs/tags", "latest_version_hint.json"
# Newer tables count the names of versions down from here, so that the newest is listed first.
_LAST = 2**64 - 1


def put_on_disk(vectors: Path, table: str, version: int) -> None:
    """Wait until a table is on disk as it is at this version, its newest, and write that down.

    Raises OSError, and StorageError where that cannot be written.
    """
    sync_tree(_folder(vectors, table))
    synced = _synced(vectors)
    if synced.get(table) != version:
        write_beside(vectors / _SYNCED, json.dumps({**synced, table: version}).encode())
    sync_folder(vectors)
    sync_folder(vectors.parent)


def mend(vectors: Path, table: str) -> None:
    """Give up what a power cut has damaged of what nothing relies on yet, for who writes next.

    Those are tags, and the versions after the one that was synced last. Raises OSError.
    """
    folder = _folder(vectors, table)
    for tag in folder.joinpath(_TAGS).glob("*.json"):
        if _is_damaged(tag):
            tag.unlink(missing_ok=True)
    last = _last_whole(vectors, table)
    late = [path for version, path in _versions(vectors, table) if version > last]
    if late and any(map(_is_damaged, folder.rglob("*"))):
        _drop(folder, late)


def drop_damaged(vectors: Path, table: str) -> bool:
    """Drop versions that a power cut has left empty, so that others can be opened.

    Any reader may do so: no program ever sees such a file that another one is still writing.
    Returns whether there were any. Raises OSError.
    """
    damaged = [path for _, path in _versions(vectors, table) if _is_damaged(path)]
    _drop(_folder(vectors, table), damaged)
    return bool(damaged)


def has_version(vectors: Path, table: str, version: int) -> bool:
    """Whether there is a file that says what a version of a table is made of."""
    return any(number == version for number, _ in _versions(vectors, table))


def _drop(folder: Path, versions: Iterable[Path]) -> None:
    for path in (*versions, folder / _VERSIONS / _HINT):
        path.unlink(missing_ok=True)


def _last_whole(vectors: Path, table: str) -> int:
    """Return the newest version that was synced; of an older index, the newest that is tagged."""
    tagged = [0]
    for path in _folder(vectors, table).joinpath(_TAGS).glob("*.json"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            tagged.append(int(json.loads(path.read_bytes())["version"]))
    return _synced(vectors).get(table, max(tagged))


def _synced(vectors: Path) -> dict[str, int]:
    try:
        synced = json.loads((vectors / _SYNCED).read_bytes())
        return {table: int(version) for table, version in synced.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _versions(vectors: Path, table: str) -> Iterator[tuple[int, Path]]:
    for path in _folder(vectors, table).joinpath(_VERSIONS).glob("*.manifest"):
        with contextlib.suppress(ValueError):
            number = int(path.stem)
            yield (_LAST - number if number > _LAST // 2 else number), path


def _is_damaged(path: Path) -> bool:
    ending = _ENDS_WITH.get(path.suffix)
    if ending is None or not path.is_file():
        return False
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - len(ending)))
        return file.read() != ending


def _folder(vectors: Path, table: str) -> Path:
    return vectors / f"{table}.lance"
