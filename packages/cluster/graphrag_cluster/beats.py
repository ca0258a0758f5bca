"""Heartbeats: which runs of workers are alive, by Postgres' clock.

A worker that is killed, or whose machine is gone, says nothing any more; Dagster would show its run
as started for ever.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence

from graphrag_cluster.lease import LEASE_SECONDS
from graphrag_cluster.postgres import Postgres, Session
from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.settings import Settings

_BEAT = """
INSERT INTO beats (run, holder, beat_at) VALUES ($1, $2, clock_timestamp())
ON CONFLICT (run) DO UPDATE SET holder = excluded.holder, beat_at = excluded.beat_at RETURNING run
"""
_AGES = """
SELECT run, extract(epoch FROM clock_timestamp() - beat_at)::DOUBLE PRECISION FROM beats
WHERE run = ANY($1)
"""
_FORGET = "DELETE FROM beats WHERE run = ANY($1) RETURNING run"


@contextlib.contextmanager
def beating(settings: Settings, run_id: str, seconds: float = LEASE_SECONDS) -> Iterator[None]:
    """Say, three times in so many seconds, that this process executes a run.

    Raises StorageError where Postgres cannot be reached at first; later it is asked again.
    """
    holder = f"{socket.gethostname()}, pid {os.getpid()}"
    session = Session(Postgres.of(settings), lost_seconds=0.0)
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(seconds / 3):
            with contextlib.suppress(StorageError):
                session.rows(_BEAT, (run_id, holder))

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    try:
        session.rows(_BEAT, (run_id, holder))
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
    finally:
        session.close()


def ages(session: Session, run_ids: Sequence[str]) -> Mapping[str, float]:
    """Return how many seconds ago each of these runs gave a sign of life; others gave none."""
    return dict(session.rows(_AGES, (list(run_ids),))) if run_ids else {}


def forget(session: Session, run_ids: Sequence[str]) -> None:
    """Forget the signs of life of runs that have ended."""
    session.rows(_FORGET, (list(run_ids),))
