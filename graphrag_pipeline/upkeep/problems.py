"""Problems that a check finds: where, what, how many, an example, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphrag_pipeline.core.errors import first_line
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.rows import one_line
from graphrag_pipeline.store.workspace import Workspace

REPAIR = "graphrag-pipeline check --repair"
RESTORE = "it cannot be made again here: restore it from a backup"

_LONGEST_EXAMPLE = 120
_LONGEST_REASON = 160
_CHECKSUM = pattern_of(
    r"computed checksum \d+ does not match stored checksum \d+ in block at location"
)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Something that does not hold of an index.

    ``where`` is a file of the home folder, with the table after a comma; ``remedy`` what to do
    about it, in words. ``number`` counts what is against the check, where that is countable,
    and ``example`` names one of these. What ``passes`` does no harm, and the next run clears it.
    """

    check: str
    where: str
    what: str
    number: int = 0
    example: str = ""
    remedy: str = ""
    can_repair: bool = True
    passes: bool = False

    @property
    def line(self) -> str:
        """All of it in one line."""
        number = f" ({self.number:,})" if self.number else ""
        example = one_line(self.example)[:_LONGEST_EXAMPLE]
        such_as = f", such as {example}" if example else ""
        remedy = self.remedy or (f"run {REPAIR}" if self.can_repair else RESTORE)
        return f"{self.where}: {self.what}{number}{such_as}; {remedy}"


def unreadable(path: Path, error: Exception) -> str:
    """Return what is wrong with a database that cannot be read, from what DuckDB says of it."""
    said = first_line(error).removeprefix(f"cannot open {path}: ")
    reason = said.removeprefix("IO Error: ").partition("; run graphrag-pipeline")[0]
    reason = _CHECKSUM.sub("what was written is not what is there, from byte", reason)
    return f"the file cannot be read ({reason[:_LONGEST_REASON]})"


def problem_of_some(
    names: Collection[str], *, check: str, where: str, what: str, **more: Any
) -> Iterator[Problem]:
    """Yield one problem for all of these, with the first as its example; none without any."""
    if names:
        first = min(names)
        yield Problem(check=check, where=where, what=what, number=len(names), example=first, **more)


@dataclass(frozen=True)
class Verification:
    """A verification of an index, and the repair of what it finds, where it can be.

    ``find`` changes nothing. ``repair`` is given what was found, and says in sentences what it
    did; it asks no model that has to be paid.
    """

    name: str
    find: Callable[[Workspace], Iterable[Problem]]
    repair: Callable[[Workspace, Sequence[Problem]], Sequence[str]] | None = None
