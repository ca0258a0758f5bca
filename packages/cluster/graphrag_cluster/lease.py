"""One coordinator for a shared index: a lease in Postgres, with a number that fences late ones off.

Who takes the lease gets the next number. A coordinator that slept, and finds that another has taken
its place, can therefore publish nothing any more. Times are those of Postgres' clock.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator

from graphrag_cluster.postgres import Postgres, Session
from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.settings import Settings

LEASE_SECONDS = 30.0
"""A coordinator that has not been heard of for so long has lost the lease."""

_TAKE = """
INSERT INTO lease AS l (fence, token, holder, since, renewed_at, expires)
VALUES (1, $1, $2, clock_timestamp(), clock_timestamp(),
        clock_timestamp() + make_interval(secs => $3))
ON CONFLICT (is_the_only_row) DO UPDATE SET
    fence = l.fence + 1, token = excluded.token, holder = excluded.holder, since = excluded.since,
    renewed_at = excluded.renewed_at, expires = excluded.expires
WHERE l.expires <= clock_timestamp() OR l.token = excluded.token
RETURNING fence
"""
_HELD = """
SELECT holder, to_char(since AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'),
       to_char(expires AT TIME ZONE 'UTC', 'HH24:MI:SS') FROM lease
"""
_RENEW = """
UPDATE lease SET renewed_at = clock_timestamp(),
                 expires = clock_timestamp() + make_interval(secs => $2)
WHERE fence = $1 RETURNING fence
"""
_LET_GO = "UPDATE lease SET expires = clock_timestamp() WHERE fence = $1 RETURNING fence"
_PUBLISH = """
UPDATE lease SET release = $2, published_at = clock_timestamp() WHERE fence = $1 RETURNING fence
"""
_WITHOUT = """
SELECT extract(epoch FROM clock_timestamp() - expires)::DOUBLE PRECISION FROM lease
"""
_RELEASE = "SELECT release FROM lease"
_leases: dict[str, Lease] = {}
"""The leases that this process holds, by the url of the index."""


class Lease:
    """A proof that this process alone coordinates: a row in Postgres, renewed in a thread.

    ``fence`` is greater than that of all before it.
    """

    def __init__(self, postgres: Postgres, seconds: float) -> None:
        self._seconds = seconds
        self._sure_until = time.monotonic() + seconds
        self._session = Session(postgres)
        self._renewing: Session | None = None
        try:
            self.fence = self._take()
            self._renewing = Session(postgres, lost_seconds=0.0)
        except BaseException:
            self._session.close()
            raise
        self._is_lost = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise StorageError where the lease is lost: another may coordinate by now."""
        if self._is_lost or time.monotonic() > self._sure_until:
            raise _lost()

    def publish(self, release_id: str) -> None:
        """Make a release the current one, if the lease is still held. Raises StorageError."""
        self.check()
        if not self._session.rows(_PUBLISH, (self.fence, release_id)):
            self._is_lost = True
            raise _lost()

    def let_go(self) -> None:
        """Let another coordinate; one who holds the lease meanwhile keeps it."""
        self._is_lost = True
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(StorageError):
            self._session.rows(_LET_GO, (self.fence,))
        self._session.close()
        if self._renewing is not None:
            self._renewing.close()

    def _take(self) -> int:
        token, holder = uuid.uuid4().hex, f"{socket.gethostname()}, pid {os.getpid()}"
        rows = self._session.rows(_TAKE, (token, holder, self._seconds))
        if not rows:
            (other, since, until), *_ = self._session.rows(_HELD)
            raise StorageError(
                f"another process coordinates {self._session.postgres.url}: {other}, since {since} "
                f"UTC; its lease runs until {until} UTC unless it is renewed: let it end, or run "
                "again after that"
            )
        return rows[0][0]

    def _renew(self) -> None:
        assert self._renewing is not None
        while not self._ended.wait(self._seconds / 3):
            asked = time.monotonic()
            # Where Postgres is away the next turn tries again; `check` knows how long that may be.
            with contextlib.suppress(StorageError):
                if not self._renewing.rows(_RENEW, (self.fence, self._seconds)):
                    self._is_lost = True
                    return
                self._sure_until = asked + self._seconds


@contextlib.contextmanager
def coordinating(settings: Settings, seconds: float = LEASE_SECONDS) -> Iterator[Lease]:
    """Hold the lease of the coordinator within this context, of so many seconds, renewed in time.

    Raises StorageError, which names who holds it, where another does, and where Postgres cannot be
    reached.
    """
    lease = Lease(Postgres.of(settings), seconds)
    try:
        yield lease
    finally:
        lease.let_go()


@contextlib.contextmanager
def holding_lease(settings: Settings) -> Iterator[Lease]:
    """Hold the lease of the coordinator; within such a context of this process, it is that one."""
    url = settings.storage.url
    if url in _leases:
        yield _leases[url]
        return
    with coordinating(settings) as lease:
        _leases[url] = lease
        try:
            yield lease
        finally:
            del _leases[url]


def seconds_without_coordinator(settings: Settings) -> float:
    """Return how long ago the last lease ended: 0 while one is held, infinite where none was."""
    with contextlib.closing(Session(Postgres.of(settings))) as session:
        rows = session.rows(_WITHOUT)
    return max(0.0, rows[0][0]) if rows else math.inf


def current_release(settings: Settings) -> str | None:
    """Return the release that was published last; None where none was."""
    with contextlib.closing(Session(Postgres.of(settings))) as session:
        rows = session.rows(_RELEASE)
    return rows[0][0] if rows else None


def _lost() -> StorageError:
    return StorageError(
        "the lease of the coordinator is lost, and another process may coordinate: nothing more "
        "was published; run again"
    )
