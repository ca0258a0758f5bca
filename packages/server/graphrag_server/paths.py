"""Paths of the server's files in the home of an index."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ServerFiles:
    """The paths of the server's files in a home."""

    home: Path

    @property
    def keys(self) -> Path:
        """The keys by which callers of the server are known, as hashes."""
        return self.home / "keys.json"

    @property
    def keys_lock(self) -> Path:
        """The file that is held locked while keys are added or revoked."""
        return self.home / "keys.lock"

    @property
    def accounts(self) -> Path:
        """The file of what each key has taken: requests, tokens, dollars."""
        return self.home / "accounts.sqlite"

    @property
    def conversations(self) -> Path:
        """The file of what callers asked, the answers, and what people said of them."""
        return self.home / "conversations.sqlite"

    @property
    def audit(self) -> Path:
        """Log of who asked what, a line for each question; earlier files of it lie beside it."""
        return self.home / "audit" / "audit.jsonl"
