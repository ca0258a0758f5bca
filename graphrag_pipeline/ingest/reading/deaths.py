"""Record of the files that have ended the process that read them: how often, and how."""

from __future__ import annotations

import json
from pathlib import Path

from graphrag_pipeline.core.hardening.files import write_beside

_MOST = 1_000


class Deaths:
    """A file of deaths by a key that says what was read, and by which reader with which limits."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def of(self, key: str) -> tuple[int, str]:
        """Return how often this ended its process, and what is said of it."""
        number, reason = self._all().get(key, (0, ""))
        return number, reason

    def add(self, key: str, number: int, reason: str) -> None:
        """Write down a death before anything else is read, so that it is counted whatever comes.

        Raises StorageError when it cannot be written.
        """
        deaths = self._all()
        deaths.pop(key, None)
        deaths[key] = (number, reason)
        write_beside(self._file, json.dumps(dict([*deaths.items()][-_MOST:]), indent=1).encode())

    def _all(self) -> dict[str, tuple[int, str]]:
        try:
            return {
                key: (int(n), str(why))
                for key, (n, why) in json.loads(self._file.read_bytes()).items()
            }
        except (OSError, ValueError, AttributeError, TypeError):
            return {}
