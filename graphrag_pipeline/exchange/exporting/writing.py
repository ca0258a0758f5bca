"""Common parts of every export: a release opened for copying out, and files put in place."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from graphrag_pipeline.core import showing
from graphrag_pipeline.core.addresses import PermanentLinks
from graphrag_pipeline.core.errors import InputError, StorageError, first_line
from graphrag_pipeline.core.hardening.files import replace_durably
from graphrag_pipeline.core.hardening.temporary import sweep, temporary_folder
from graphrag_pipeline.core.rows import sql_literal
from graphrag_pipeline.store.frames import value_of
from graphrag_pipeline.store.index_store import hide_progress
from graphrag_pipeline.store.older_files import add_what_older_lack

LinksOf = Callable[[str], PermanentLinks | None]
"""A function that gives the links to a release, None where nobody serves it."""

_BATCH_ROWS = 10_000
_NOTES = ".notes"
"""In a folder of notes, the names of those that an export wrote."""
_RELEASE = "SELECT id FROM releases ORDER BY created_at DESC, id DESC LIMIT 1"


@dataclass(frozen=True)
class WrittenFile:
    """A file of an export; ``rows`` by what they are, ``n_bytes`` on disk."""

    name: str
    rows: dict[str, int]
    n_bytes: int


@dataclass(frozen=True, kw_only=True)
class Export:
    """A written export: ``path`` is the file or folder, ``lost`` what the format cannot hold."""

    format: str
    release: str
    path: str
    files: tuple[WrittenFile, ...]
    lost: tuple[str, ...]
    next: str

    __repr__ = showing.brief


class Writer:
    """A release, open for reading, and the folder that files are written to first.

    ``links`` are the permanent links of a server to the things of the release, where one is known.
    """

    def __init__(
        self, con: duckdb.DuckDBPyConnection, folder: Path, links: LinksOf | None = None
    ) -> None:
        self.con = con
        self.links = links and links(self.release())
        self._folder = folder
        self._rows: dict[str, dict[str, int]] = {}

    def release(self) -> str:
        """Return the id of the release that is open."""
        return value_of(self.con, _RELEASE)

    def copy(self, name: str, query: str, options: str) -> None:
        """Write a query's rows to a file by DuckDB's COPY. Both are the project's own."""
        target = sql_literal(self._folder / name)
        self._rows[name] = {"rows": value_of(self.con, f"COPY ({query}) TO {target} ({options})")}

    def text(self, name: str, pieces: Sequence[str | tuple[str, str, str]]) -> None:
        """Write a text file from pieces: text as it is, or (what, query, separator).

        A query gives one text a row, in its column ``line``; rows are streamed.
        """
        counts: dict[str, int] = {}
        with (self._folder / name).open("w", encoding="utf-8", newline="") as file:
            for piece in pieces:
                if isinstance(piece, str):
                    file.write(piece)
                    continue
                part, query, separator = piece
                counts[part] = 0
                for batch in self.con.sql(query).to_arrow_reader(_BATCH_ROWS):
                    lines = batch.column("line").to_pylist()
                    file.write(separator if counts[part] else "")
                    file.write(separator.join(lines))
                    counts[part] += len(lines)
        self._rows[name] = counts

    def note(self, name: str, text: str) -> None:
        """Write a small text file that holds no rows."""
        (self._folder / name).write_text(text, encoding="utf-8")
        self._rows[name] = {}

    def notes(self, folder: str, notes: Iterable[tuple[str, str]]) -> None:
        """Write a folder of Markdown files from (name, text); a name is safe and has no ending."""
        (self._folder / folder).mkdir()
        names = []
        for name, text in notes:
            (self._folder / folder / f"{name}.md").write_text(text, encoding="utf-8", newline="")
            names.append(f"{name}.md\n")
        (self._folder / folder / _NOTES).write_text("".join(names), encoding="utf-8")
        self._rows[folder] = {"notes": len(names)}

    def files(self) -> tuple[WrittenFile, ...]:
        """Return what was written until now, in order."""
        sizes = {name: _size(self._folder / name) for name in self._rows}
        return tuple(WrittenFile(name, self._rows[name], sizes[name]) for name in self._rows)


def _size(path: Path) -> int:
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


@dataclass(frozen=True)
class Exporter:
    """A format of other tools: what comes in by the door ``exporters``.

    Parameters
    ----------
    output
        The file or folder that is made unless another is named.
    next
        What to do with it; ``{path}`` stands for where it is.
    folder, file, tables
        One of them writes it: a folder of files, one file of this name, or a file for each of these
        tables (none named: all), where the last argument says whether texts are to be as they are.
    lost
        What of the index the format cannot hold.
    """

    output: str
    next: str
    folder: Callable[[Writer], None] | None = None
    file: Callable[[Writer, str], None] | None = None
    tables: Callable[[Writer, Sequence[str], bool], None] | None = None
    lost: tuple[str, ...] = ()


def write_export(
    release: Path,
    target: Path,
    fill: Callable[[Writer], None],
    *,
    is_folder: bool,
    force: bool,
    links: LinksOf | None = None,
) -> tuple[WrittenFile, ...]:
    """Let ``fill`` write files beside ``target``, then put them in place by renaming.

    A new folder appears whole. In a folder that holds something already, and with ``force``, each
    file is replaced for itself, notes of an earlier export that this one lacks are removed, and
    others are left alone.

    Raises InputError where something is in the way, StorageError when the disk gives trouble.
    """
    _refuse(target, is_folder=is_folder, force=force)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target.parent, target.name)
        with temporary_folder(target.parent, target.name) as beside:
            with _opened(release, beside) as con:
                writer = Writer(con, beside, links)
                fill(writer)
                files = writer.files()
            _put_in_place(beside, target, is_folder=is_folder)
            return files
    except (duckdb.CatalogException, duckdb.BinderException) as error:
        reason = first_line(error)
        raise StorageError(f"cannot export {release}: {reason}") from error
    except (OSError, duckdb.IOException) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        raise StorageError(f"cannot write {target}: {reason}") from error


@contextlib.contextmanager
def _opened(release: Path, folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a release for reading; besides it, the connection may touch only ``folder``."""
    config = {"python_enable_replacements": False, "temp_directory": str(folder / ".spill")}
    con = duckdb.connect(":memory:", config=config)
    try:
        con.execute(f"ATTACH {sql_literal(release)} AS published (READ_ONLY)")
        con.execute("USE published")
        add_what_older_lack(con)
        con.execute("SET TimeZone = 'UTC'")
        hide_progress(con)
        con.execute(f"SET allowed_directories = [{sql_literal(f'{folder}/')}]")
        con.execute("SET enable_external_access = false")
        yield con
    finally:
        con.close()
        shutil.rmtree(folder / ".spill", ignore_errors=True)


def _refuse(target: Path, *, is_folder: bool, force: bool) -> None:
    if is_folder and target.exists() and not target.is_dir():
        raise InputError(f"{target} is a file, and this format is a folder: name another --output")
    if not is_folder and target.is_dir():
        raise InputError(f"{target} is a folder, and this format is one file: name a file in it")
    is_taken = any(target.iterdir()) if is_folder and target.is_dir() else target.exists()
    if is_taken and not force:
        state = "is not empty" if is_folder else "is there already"
        raise InputError(f"{target} {state}: name another --output, or write over it with --force")


def _put_in_place(beside: Path, target: Path, *, is_folder: bool) -> None:
    if is_folder and not (target.is_dir() and any(target.iterdir())):
        replace_durably(beside, target)
        return
    for listed in beside.rglob(_NOTES):
        folder = target / listed.parent.relative_to(beside)
        for name in _names(folder / _NOTES).difference(_names(listed)):
            (folder / Path(name).name).unlink(missing_ok=True)
    for file in sorted(file for file in beside.rglob("*") if file.is_file()):
        place = target / file.relative_to(beside) if is_folder else target
        place.parent.mkdir(exist_ok=True)
        replace_durably(file, place)


def _names(listed: Path) -> set[str]:
    return set(listed.read_text(encoding="utf-8").split("\n")) if listed.is_file() else set()
