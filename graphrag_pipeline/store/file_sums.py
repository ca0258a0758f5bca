"""Hashes of the files of vectors, by which a change of one is noticed.

LanceDB writes a file once and never changes it. So each is hashed once, when a release is
published, and what has another hash later was damaged. The hashes are in ``releases/vectors.sums``.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.hardening.files import write_beside
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.identity import json_hash

_NAME = "vectors.sums"
_WRITTEN_ONCE = frozenset({"data", "_versions", "_deletions", "_indices", "_transactions"})
_HINT = "latest_version_hint.json"


def sums_file(home: Path) -> Path:
    """Return where the hashes are."""
    return Home(home).releases / _NAME


def record_sums(home: Path) -> None:
    """Hash the files of vectors that are new, and forget those that are gone.

    Raises StorageError where the hashes cannot be written.
    """
    try:
        before = _of_same_tables(home, read_sums(home))
    except StorageError:
        before = {}
    now = {name: before.get(name) or _sum_of(home / name) for name in _files(home)}
    now = {name: value for name, value in now.items() if value}
    if now != before or not sums_file(home).is_file():
        text = json.dumps({"digest": json_hash(now), "files": now}, indent=0)
        write_beside(sums_file(home), text.encode())


def read_sums(home: Path) -> Mapping[str, str]:
    """Return the SHA-256 of each file that was hashed, by its path in the home; none without any.

    Raises StorageError where the hashes themselves are damaged.
    """
    path = sums_file(home)
    if not path.is_file():
        return {}
    try:
        raw = json.loads(path.read_bytes())
        sums = raw["files"]
        if raw["digest"] != json_hash(sums):
            raise ValueError("it is not what was written")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(f"{path} cannot be read: {error}") from error
    return sums


def changed_files(home: Path) -> list[str]:
    """Return the files of vectors that are not as they were written. Raises StorageError."""
    sums = _of_same_tables(home, read_sums(home))
    there = [name for name in sums if (home / name).is_file()]
    return [name for name in there if _sum_of(home / name) not in (sums[name], "")]


def _of_same_tables(home: Path, sums: Mapping[str, str]) -> dict[str, str]:
    """Leave out the hashes of tables that were made anew since: names of versions begin again.

    Files of rows have names of their own. Of a table made anew none is there that was before.
    """
    rows = [name for name in sums if name.split("/")[2] == "data" and (home / name).is_file()]
    same = {name.split("/")[1] for name in rows}
    return {name: value for name, value in sums.items() if name.split("/")[1] in same}


def _files(home: Path) -> Iterator[str]:
    for table in sorted((home / "vectors").glob("*.lance")):
        for folder, _, names in os.walk(table):
            inside = Path(folder).relative_to(table).parts
            if inside and inside[0] in _WRITTEN_ONCE:
                for name in sorted(names):
                    if name != _HINT:
                        yield Path(folder, name).relative_to(home).as_posix()


def _sum_of(path: Path) -> str:
    """Return the SHA-256 of a file; nothing where it is gone, as after LanceDB has cleaned up."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""
    except OSError:
        return "unreadable"
