"""An import of pandas that is not installed fails at once: DuckDB tries it for every value given.

Looking through all of the path takes longer than a small statement.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_SECONDS = 1.0
_IMPORTS = "_find_and_load_unlocked"
"""The function of importlib that stands two calls above a finder where a module is imported."""


class _AbsentPandas(MetaPathFinder):
    """Looks for pandas once in a second.

    Whoever asks, without importing it, whether it is there is told by the other finders.
    """

    def __init__(self) -> None:
        self._looked = -_SECONDS

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "pandas" and sys._getframe(2).f_code.co_name == _IMPORTS:
            now = time.monotonic()
            if now < self._looked + _SECONDS:
                raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
            self._looked = now
        return None


def remember_absent_pandas() -> None:
    """Let an import of pandas fail at once where another failed less than a second ago."""
    if not any(isinstance(finder, _AbsentPandas) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AbsentPandas())
