"""``graphrag-pipeline worker``: a process that makes parts until it is told to end."""

from __future__ import annotations

import os
import socket
import sys

from graphrag_cluster.addresses import check_services, queue_of
from graphrag_cluster.lease import seconds_without_coordinator
from graphrag_cluster.objects import ObjectStore
from graphrag_cluster.slices import SWEPT_AFTER_SECONDS, sweep_slices
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.orchestration.runs import dagster_home
from graphrag_pipeline.resources.index import ON_A_WORKER

_APP = "graphrag_cluster.celery_app"


def check_worker(settings: Settings) -> None:
    """Raise ConfigError where the settings are not those of a worker of Celery.

    Raises what :func:`check_services` raises, too.
    """
    if settings.workers.launcher != "celery":
        raise ConfigError(
            f'workers.launcher = "{settings.workers.launcher}": a worker needs "celery", and the '
            "storage.url, Postgres and Redis of the coordinator"
        )
    check_services(settings)


def work(settings: Settings, name: str | None, processes: int) -> None:
    """Become a worker of Celery, after :func:`check_worker`: this never returns."""
    if seconds_without_coordinator(settings) > SWEPT_AFTER_SECONDS:
        sweep_slices(ObjectStore(settings.storage.url))
    os.environ["DAGSTER_HOME"] = str(dagster_home(settings))
    os.environ["GRAPHRAG_HOME"] = str(settings.home_path)
    os.environ[ON_A_WORKER] = "1"
    worker = name or f"graphrag-{os.getpid()}@{socket.gethostname()}"
    # In a container everybody is.
    as_root = ["-W", "ignore:You're running the worker with superuser"]
    command = [
        *as_root,
        "-m",
        "celery",
        "--quiet",
        "-A",
        _APP,
        "worker",
        "-Q",
        queue_of(settings),
        "-n",
        worker,
    ]
    options = ["-c", str(processes), "--prefetch-multiplier", "1", "--loglevel", "WARNING"]
    quiet = ["--without-gossip", "--without-mingle"]
    os.execv(sys.executable, [sys.executable, *command, *options, *quiet])
