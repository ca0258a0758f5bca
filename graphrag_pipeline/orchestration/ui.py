"""Dagster's UI: its servers, which end with the command, told of when they listen."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.extras import require_extra
from graphrag_pipeline.core.hardening.child_commands import guarded
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.orchestration.runs import dagster_home

_POLL_SECONDS = 0.2
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve(
    settings: Settings,
    config: Path | None,
    host: str,
    port: int,
    announce: Callable[[str], None],
) -> int:
    """Run Dagster's servers until they are stopped; return their exit code.

    They read the settings again, from the file ``config`` if one is named. ``announce`` is given
    the address as soon as a browser can open it. Raises InputError where the address cannot be
    listened on, and ConfigError where the extra ``ui`` is not installed.
    """
    require_extra("ui", "ui")
    _require_free(host, port)
    place = dagster_home(settings)
    environment = {"GRAPHRAG_HOME": str(settings.home_path), "DAGSTER_HOME": str(place)}
    if config:
        environment["GRAPHRAG_CONFIG"] = str(config)
    with _started(_command(place, host, port), environment) as servers:
        while servers.poll() is None and not _listens(host, port):
            time.sleep(_POLL_SECONDS)
        if servers.poll() is None:
            announce(f"http://{host}:{port}")
        return servers.wait()


def _command(place: Path, host: str, port: int) -> list[str]:
    # `dg dev`, which Dagster would rather have, wants to start in the folder of a project.
    quiet = "ignore:Function `dev_command` is superseded"
    command = [sys.executable, "-W", quiet, "-m", "dagster", "dev"]
    return [*command, "-w", str(place / "workspace.yaml"), "-h", host, "-p", str(port)]


@contextlib.contextmanager
def _started(
    command: list[str], environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the servers; whatever ends this process ends them, once.

    Out of reach of the terminal, they do not get a Ctrl-C beside the one passed on, which would
    break off their orderly end.
    """
    with guarded(command, env={**os.environ, **environment}) as servers:
        before = {
            number: signal.signal(number, lambda *_: servers.send_signal(signal.SIGINT))
            for number in _ENDING
        }
        try:
            yield servers
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _require_free(host: str, port: int) -> None:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            raise InputError(
                f"cannot listen on {host}:{port}: {error.strerror}; name another with --port"
            ) from None


def _listens(host: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1):
        return True
    return False
