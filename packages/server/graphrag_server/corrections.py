"""Corrections of entities by callers: lines in the file of aliases, which the next run reads."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.hardening.files import write_beside
from graphrag_pipeline.core.hardening.locks import locked
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.graph.resolution.user_aliases import (
    DOCUMENTS,
    FIRST_LINE,
    parse_user_aliases,
)
from graphrag_server.problems import HttpProblem

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings

_DEFAULT = "aliases.csv"
_MOST_BYTES = 5_000_000
_MARK = "\ufeff"


def aliases_file(settings: Settings) -> Path:
    """Return the user's file of aliases, or where it is to be."""
    name = Path(settings.resolution.aliases_file or _DEFAULT).expanduser()
    for folder in (Path.cwd(), settings.home_path):
        if (folder / name).is_file():
            return (folder / name).resolve()
    return settings.home_path / name


def add_correction(settings: Settings, line: Mapping[str, str]) -> str:
    """Put a line (action, a, b, note, documents) at the end of the file, and return it.

    What is in the file stays as it is, but for a column that it lacks; a line that is its last
    already is not said twice. Raises
    a 409 Problem where the line contradicts it, and 507 where the file is full, ConfigError where
    it cannot be read, StorageError where it cannot be written.
    """
    path = aliases_file(settings)
    with locked(Home(settings.home_path).aliases_lock):
        before = _text_of(path)
        rows = parse_user_aliases(path, before.removeprefix(_MARK))
        names = _names(before)
        if line.get(DOCUMENTS) and DOCUMENTS not in names:
            first, end, others = before.partition("\n")
            before = f"{first.rstrip(chr(13))},{DOCUMENTS}{end}{others}"
            names = _names(before)
        added = _written(line, names)
        said = (line["action"], line["a"], line["b"], line.get(DOCUMENTS, ""))
        if rows and (rows[-1].action, rows[-1].a, rows[-1].b, rows[-1].documents) == said:
            return added
        end = "" if before.endswith("\n") else "\n"
        after = f"{before}{end}{added}\n"
        if len(after.encode()) > _MOST_BYTES:
            raise HttpProblem(
                507, "the file of aliases is full: whoever runs the server tidies it up"
            )
        try:
            parse_user_aliases(path, after.removeprefix(_MARK))
        except ConfigError:
            raise HttpProblem(
                409,
                f"{line['a']} and {line['b']} were said to be one before, or never to be: whoever "
                f"runs the server mends {path.name}",
            ) from None
        write_beside(path, after.encode())
        return added


def _text_of(path: Path) -> str:
    if not path.is_file():
        return FIRST_LINE + "\n"
    try:
        return path.read_bytes().decode() or FIRST_LINE + "\n"
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from None


def _names(text: str) -> list[str]:
    names = next(csv.reader(io.StringIO(text.removeprefix(_MARK))))
    return [name.strip().lower() for name in names]


def _written(line: Mapping[str, str], names: Sequence[str]) -> str:
    made = io.StringIO()
    csv.writer(made, lineterminator="").writerow([line.get(name, "") for name in names])
    return made.getvalue()
