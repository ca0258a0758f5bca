"""Accounts of the callers of a server: requests and tokens by the minute, dollars in all.

It stands in one small SQLite file, so that the limits of a key hold for all workers of a machine
together, and after a restart. A question reserves what it may take when it is let in, and what it
took is put in the place of that in the end.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.errors import GraphRAGError, StorageError
from graphrag_pipeline.core.hardening.files import make_private
from graphrag_server.keys import read_keys

if TYPE_CHECKING:
    from graphrag_pipeline.query.trace import Spending
    from graphrag_server.keys import Key
    from graphrag_server.paths import ServerFiles

_BUSY_SECONDS = 2.0
_MINUTE = 60.0
_SOON = 2.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS accounts (
    key_id TEXT PRIMARY KEY,
    requests REAL NOT NULL,
    tokens REAL NOT NULL,
    filled_at REAL NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    usd REAL NOT NULL,
    unpriced INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS largest (
    key_id TEXT PRIMARY KEY, tokens INTEGER NOT NULL, usd REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reservations (
    id TEXT PRIMARY KEY, key_id TEXT NOT NULL, tokens REAL NOT NULL, usd REAL NOT NULL,
    until REAL NOT NULL
) WITHOUT ROWID;
"""
_COLUMNS = "requests, tokens, filled_at, prompt_tokens, completion_tokens, usd, unpriced"
_FIND = f"SELECT {_COLUMNS} FROM accounts WHERE key_id = ?"
_PUT = (
    "INSERT OR REPLACE INTO accounts VALUES (:key_id, :requests, :tokens, :filled_at,"
    " :prompt_tokens, :completion_tokens, :usd, :unpriced)"
)
_RESERVED = (
    "SELECT coalesce(sum(tokens), 0), coalesce(sum(usd), 0) FROM reservations WHERE key_id = ?"
)
_GROW = (
    "INSERT INTO largest VALUES (?, ?, ?) ON CONFLICT (key_id) DO UPDATE SET"
    " tokens = max(tokens, excluded.tokens), usd = max(usd, excluded.usd)"
)


class OverLimitError(GraphRAGError):
    """A key has taken what it may; ``retry_after`` seconds later it may again, None: never."""

    def __init__(self, message: str, retry_after: float | None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(frozen=True)
class Account:
    """Account of a key: what it may take now (``requests``, ``tokens``), and has taken in all.

    ``unpriced`` counts the calls whose price is not known.
    """

    requests: float
    tokens: float
    filled_at: float
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0


class Accounts:
    """The accounts of all keys. Safe to use from several threads and processes.

    ``path`` None: there are no keys, and so nothing to account for. Each method raises StorageError
    where the file cannot be used: what cannot be counted is not given.
    """

    def __init__(self, path: Path | None, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._con: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    def take_request(self, key: Key | None) -> None:
        """Count a request of a key. Raises OverLimitError where it has had its share."""
        if key is None or key.requests_per_minute is None:
            return
        with self._changing(key) as change:
            account = change.account
            if account.requests < 1:
                wait = (1 - account.requests) * _MINUTE / key.requests_per_minute
                raise OverLimitError(
                    f"the key {key.id} may ask {key.requests_per_minute:,} times a minute: "
                    "come again later",
                    wait,
                )
            change.account = replace(account, requests=account.requests - 1)

    def reserve(self, key: Key | None, seconds: float, *, asks_model: bool = True) -> str:
        """Set aside what a question may take, for so many seconds at most; return its name.

        That is the most that any question of the key has taken, and all that is left before one has
        taken anything: so its first questions are answered one by one. One that asks no model
        takes nothing. Raises OverLimitError where
        there are no tokens left for now, or no dollars at all, those of the questions under way
        counted.
        """
        if key is None or (key.tokens_per_minute is None and key.budget_usd is None):
            return ""
        with self._changing(key) as change:
            account, con = change.account, change.con
            _check(key, account)
            if not asks_model:
                return ""
            con.execute("DELETE FROM reservations WHERE until < ?", [self._clock()])
            tokens, usd = con.execute(_RESERVED, [key.id]).fetchone()
            _check_reserved(key, account, tokens, usd)
            rest = (max(0.0, account.tokens), (key.budget_usd or 0.0) - account.usd)
            find = "SELECT tokens, usd FROM largest WHERE key_id = ?"
            most = con.execute(find, [key.id]).fetchone() or rest
            name = uuid.uuid4().hex
            until = self._clock() + seconds
            con.execute(
                "INSERT INTO reservations VALUES (?, ?, ?, ?, ?)", [name, key.id, *most, until]
            )
        return name

    def settle(self, key: Key | None, reservation: str, spending: Spending) -> None:
        """Count what a question has taken of a model in the place of what it had reserved."""
        if key is None or not (spending.model_calls or reservation):
            return
        tokens, usd = spending.prompt_tokens + spending.completion_tokens, spending.cost or 0.0
        with self._changing(key) as change:
            change.con.execute("DELETE FROM reservations WHERE id = ?", [reservation])
            if spending.model_calls:
                change.account = _charged(change.account, spending)
                change.con.execute(_GROW, [key.id, tokens, usd])

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._con is not None:
                self._con.close()
                self._con = None

    @contextlib.contextmanager
    def _changing(self, key: Key) -> Iterator[_Change]:
        """Yield the account of a key, filled up to now, that nobody else changes meanwhile."""
        with self._lock, self._transaction() as con:
            row = con.execute(_FIND, [key.id]).fetchone()
            account = _filled(Account(*row) if row else None, key, self._clock())
            change = _Change(account, con)
            yield change
            con.execute(_PUT, {"key_id": key.id, **asdict(change.account)})

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            con = self._opened()
            con.execute("BEGIN IMMEDIATE")
            try:
                yield con
                con.execute("COMMIT")
            finally:
                if con.in_transaction:
                    con.execute("ROLLBACK")
        except (sqlite3.Error, OSError) as error:
            raise StorageError(f"cannot count what callers take in {self._path}: {error}") from None

    def _opened(self) -> sqlite3.Connection:
        if self._con is None:
            assert self._path is not None
            make_private(self._path)
            self._con = sqlite3.connect(
                self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._con.execute("PRAGMA journal_mode = WAL")
            self._con.execute("PRAGMA synchronous = NORMAL")
            self._con.executescript(_SCHEMA)
        return self._con


@dataclass
class _Change:
    account: Account
    con: sqlite3.Connection


def keys_with_spending(files: ServerFiles) -> list[dict[str, Any]]:
    """Return what is known of the keys of a home, expired ones too, and what each has spent."""
    spent, nothing = spent_by(files.accounts), Account(0, 0, 0)
    return [
        {
            **key.to_dict(),
            "usd": spent.get(key.id, nothing).usd,
            "prompt_tokens": spent.get(key.id, nothing).prompt_tokens,
            "completion_tokens": spent.get(key.id, nothing).completion_tokens,
        }
        for key in read_keys(files.keys)
    ]


def spent_by(path: Path) -> dict[str, Account]:
    """Return the accounts by the ids of their keys; none where there is no file."""
    if not path.is_file():
        return {}
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=_BUSY_SECONDS)) as con:
            rows = con.execute(f"SELECT key_id, {_COLUMNS} FROM accounts").fetchall()
    except sqlite3.Error as error:
        raise StorageError(f"cannot read {path}: {error}") from None
    return {row[0]: Account(*row[1:]) for row in rows}


def _check(key: Key, account: Account) -> None:
    """Raise OverLimitError where a key has no tokens left for now, or no dollars at all."""
    if key.budget_usd is not None and account.unpriced:
        raise OverLimitError(
            f"the key {key.id} has a budget, and the price of the model is not known: name it "
            "in the file of llm.prices_file, or make a key without a budget",
            None,
        )
    if key.budget_usd is not None and account.usd >= key.budget_usd:
        raise OverLimitError(
            f"the budget of the key {key.id} (${key.budget_usd:,.2f}) is spent: ask whoever "
            "runs the server for another key",
            None,
        )
    if key.tokens_per_minute is not None and account.tokens <= 0:
        raise OverLimitError(
            f"the key {key.id} may take {key.tokens_per_minute:,} tokens a minute: come again "
            "later",
            (1 - account.tokens) * _MINUTE / key.tokens_per_minute,
        )


def _check_reserved(key: Key, account: Account, tokens: float, usd: float) -> None:
    """Raise OverLimitError where the questions under way may take all that is left."""
    has_dollars = key.budget_usd is None or account.usd + usd < key.budget_usd
    has_tokens = key.tokens_per_minute is None or tokens < account.tokens
    if not (has_dollars and has_tokens):
        what = "budget" if has_tokens else "tokens of this minute"
        raise OverLimitError(
            f"the questions of the key {key.id} that are under way may take the rest of its "
            f"{what}: wait for one of them",
            _SOON,
        )


def _charged(account: Account, spending: Spending) -> Account:
    return replace(
        account,
        tokens=account.tokens - spending.prompt_tokens - spending.completion_tokens,
        prompt_tokens=account.prompt_tokens + spending.prompt_tokens,
        completion_tokens=account.completion_tokens + spending.completion_tokens,
        usd=account.usd + (spending.cost or 0.0),
        unpriced=account.unpriced + (spending.cost is None),
    )


def _filled(account: Account | None, key: Key, now: float) -> Account:
    """Return an account with what the time since then has given."""
    requests, tokens = key.requests_per_minute or 0, key.tokens_per_minute or 0
    if account is None:
        return Account(requests, tokens, now)
    share = max(0.0, now - account.filled_at) / _MINUTE
    return replace(
        account,
        requests=min(requests, account.requests + share * requests),
        tokens=min(tokens, account.tokens + share * tokens),
        filled_at=now,
    )
