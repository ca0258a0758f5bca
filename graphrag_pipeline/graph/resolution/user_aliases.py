"""The user's own word on who is who: ``aliases.csv``."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.text import normalize_title

MERGE, NEVER, RENAME, TYPE, SPLIT = "merge", "never", "rename", "type", "split"
ACTIONS = (MERGE, NEVER, RENAME, TYPE, SPLIT)
"""What a line says: a and b are one; they are not; a is called b; a is of the type b; who is called
a in some documents is another, called b."""
FIRST_LINE = "action,a,b,note"
DOCUMENTS = "documents"
"""The column that only lines of the action split need."""
_COLUMNS = ("action", "a", "b")
_FIELDS = ("a", "b", "note", DOCUMENTS)


@dataclass(frozen=True)
class UserRow:
    """A line of the file; ``a_id`` and ``b_id`` are the ids of entities with these titles.

    One of line 0 says the same of a file that is linked to; ``note`` is its path.

    A line that says a type has it in ``b``, which is no title then. ``documents`` is the name of a
    document, the end of it, or a folder, in which a * stands for anything.
    """

    line: int
    action: str
    a: str
    b: str
    note: str
    documents: str = ""

    @property
    def is_file(self) -> bool:
        """Whether a link says so, not the user."""
        return not self.line

    @property
    def a_id(self) -> str:
        """The id of the entity that the title ``a`` names."""
        return make_id("entity", normalize_title(self.a))

    @property
    def b_id(self) -> str:
        """The id of the entity that the title ``b`` names."""
        return make_id("entity", normalize_title(self.b))

    @property
    def split_id(self) -> str:
        """The id under which mentions of ``a`` in these documents are kept apart from others."""
        return make_id("entity", normalize_title(self.a), normalize_title(self.b))

    @property
    def known(self) -> dict[str, str]:
        """The titles that documents are expected to mention, by their ids."""
        if self.action == SPLIT:
            return {self.split_id: f"{self.a} in {self.documents}"}
        other = {self.b_id: self.b} if self.action in (MERGE, NEVER) else {}
        return {self.a_id: self.a, **other}


def read_user_aliases(path: Path | None) -> list[UserRow]:
    """Return the rows of the user's file; none if there is no file.

    Raises
    ------
    ConfigError
        If it cannot be read, lacks a column, names an unknown action, or contradicts itself.
    """
    if path is None:
        return []
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"cannot read {path}: {reason}") from None
    return parse_user_aliases(path, text)


def parse_user_aliases(path: Path, text: str) -> list[UserRow]:
    """Return the rows of such a text, which is or is to be in a file; see above for errors."""
    try:
        rows = list(_rows(path, csv.DictReader(io.StringIO(text, newline=""))))
    except csv.Error as error:
        raise ConfigError(f"{path} is no CSV file: {error}") from None
    _check(path, rows)
    return rows


def _rows(path: Path, reader: csv.DictReader[str]) -> Iterator[UserRow]:
    names = [(name or "").strip().lower() for name in reader.fieldnames or ()]
    if absent := [name for name in _COLUMNS if name not in names]:
        raise ConfigError(
            f"{path}:1: column {absent[0]} is missing: the first line must be {FIRST_LINE}"
        )
    reader.fieldnames = names
    for row in reader:
        fields = {name: (row.get(name) or "").strip() for name in (*_COLUMNS, *_FIELDS)}
        if not any(fields.values()):
            continue
        action = fields["action"].lower()
        if action not in ACTIONS:
            raise ConfigError(
                f"{path}:{reader.line_num}: unknown action {fields['action']!r}: "
                f"write {', '.join(ACTIONS[:-1])} or {ACTIONS[-1]}"
            )
        for name in ("a", "b"):
            if not normalize_title(fields[name]):
                raise ConfigError(f"{path}:{reader.line_num}: {name} is empty: write a title")
        if action == SPLIT and not fields[DOCUMENTS].strip("/"):
            raise ConfigError(
                f"{path}:{reader.line_num}: {DOCUMENTS} is empty: write in which documents "
                f"{fields['a']!r} is another, in a column {DOCUMENTS}"
            )
        row = UserRow(reader.line_num, action, *(fields[name] for name in _FIELDS))
        if action == SPLIT and row.a_id == row.b_id:
            raise ConfigError(f"{path}:{row.line}: b is {row.a!r}, too: write another title")
        yield row


def connected(edges: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return, of each end of an edge, one end that stands for all it is connected with."""
    group: dict[str, str] = {}

    def root(id: str) -> str:
        while (parent := group.setdefault(id, id)) != id:
            group[id] = group[parent]
            id = parent
        return id

    for one, two in edges:
        group[root(one)] = root(two)
    return {id: root(id) for id in group}


def _check(path: Path, rows: Sequence[UserRow]) -> None:
    """Refuse lines that keep apart what other lines merge, directly or through others."""
    group = connected((row.a_id, row.b_id) for row in rows if row.action in (MERGE, RENAME))
    for row in rows:
        one, two = row.a_id, row.b_id
        if row.action in (NEVER, SPLIT) and group.get(one, one) == group.get(two, two):
            raise ConfigError(
                f"{path}:{row.line}: {row.action} {row.a!r} and {row.b!r} contradicts the lines "
                "that merge them: remove one"
            )
