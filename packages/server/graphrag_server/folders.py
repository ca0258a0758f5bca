"""Folders of this machine, taken out of what SQL gives: it may ask for any of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphrag_server.collections import VisibleCollection


class Folders:
    """The folders that answers on a collection must not name.

    Those that were indexed, that of the project, and that of whoever runs the server.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        longest_first = sorted({*folders} - {"/", ""}, key=lambda folder: (-len(folder), folder))
        names = "|".join(map(re.escape, longest_first))
        # A whole path, or one below it, and no part of a longer name.
        self._place = re.compile(rf"(?<![\w.-])(?:{names})(?:/|(?![\w.-]))") if names else None

    @classmethod
    def around(cls, holder: VisibleCollection, indexed: Iterable[str]) -> Folders:
        """Return those of a collection; ``indexed`` are those that its documents are from."""
        project = holder.home.absolute().parent
        return cls([*indexed, *map(str, (project, project.resolve(), Path.home()))])

    def without(self, value: Any) -> Any:
        """Return a value in whose texts paths begin within these folders."""
        if isinstance(value, str):
            return self._place.sub("", value) if self._place else value
        if isinstance(value, list | tuple):
            return type(value)(map(self.without, value))
        if isinstance(value, dict):
            return {self.without(key): self.without(each) for key, each in value.items()}
        return value
