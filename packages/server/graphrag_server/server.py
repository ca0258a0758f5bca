"""The process that listens: one worker, or several on one port."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from graphrag_pipeline.core.errors import GraphRAGError, InputError
from graphrag_pipeline.core.hardening.files import temporary_place
from graphrag_pipeline.core.hardening.memory import share_freed_memory
from graphrag_server.app import create_app
from graphrag_server.collections import Collections, open_collections
from graphrag_server.connections import H11_BYTES, Punctual
from graphrag_server.guard import is_loopback
from graphrag_server.keys import Keyring
from graphrag_server.metrics import WORKERS_FOLDER
from graphrag_server.paths import ServerFiles
from graphrag_server.uploads import clear_up, upload_folder

if TYPE_CHECKING:
    from fastapi import FastAPI

    from graphrag_pipeline.core.settings import Settings

_BACKLOG = 512
_MORE_SECONDS = 5
_ARENAS = 2


def serve(
    settings: Settings,
    *,
    host: str,
    port: int,
    workers: int,
    release: str | None,
    announce: Callable[[str], None],
) -> None:
    """Answer until SIGTERM or Ctrl-C; questions under way are finished, and no new one is taken.

    ``port`` 0 takes any that is free; ``release`` pins the default collection. ``announce`` is
    given each line to tell: collections that have no release yet, and the address. Raises
    ConfigError where a collection is missing, InputError where the address cannot be listened on.
    """
    share_freed_memory(_ARENAS)
    needs_keys = Keyring(ServerFiles(settings.home_path).keys).is_required
    if not is_loopback(host) and not needs_keys:
        raise InputError(
            f"cannot listen on {host}: there are no keys, so only this machine may ask; make one "
            "by graphrag-pipeline keys add NAME, or leave out --host"
        )
    with contextlib.closing(open_collections(settings, release=release)) as collections:
        for holder in collections.holders.values():
            if (folder := upload_folder(holder.settings)) is not None:
                clear_up(folder)
        listener = _listening(host, port)
        _tell_unready(collections, announce)
        if not needs_keys:
            _tell_unguarded(collections, announce)
    options = uvicorn.Config(
        functools.partial(worker_app, settings, release, needs_keys=needs_keys),
        factory=True,
        http=Punctual,
        h11_max_incomplete_event_size=H11_BYTES,
        workers=workers,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=round(settings.server.timeout_seconds) + _MORE_SECONDS,
    )
    if not is_loopback(host):
        announce("Keys and answers are sent in the clear: put a proxy with TLS before it")
    announce(f"Answering on {_address(listener)} (stop with Ctrl-C)")
    with contextlib.closing(listener), _ended_quietly():
        if workers == 1:
            uvicorn.Server(options).run(sockets=[listener])
        else:
            with _numbers_together():
                _Workers(options, sockets=[listener]).run()


class _Workers(Multiprocess):
    """Several workers, of which one that dies is replaced.

    uvicorn also kills one that says nothing for five seconds, and on a busy machine none would
    ever have started by then.
    """

    def terminate_all(self) -> None:
        """End every worker; who comes from now on is refused, and does not wait for nobody."""
        for listener in self.sockets:
            listener.close()
        super().terminate_all()

    def keep_subprocess_alive(self) -> None:
        """Start a worker in place of each that is dead; end where none can start."""
        for place, worker in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            if worker.process.is_alive():
                continue
            worker.join()
            if worker.exitcode == STARTUP_FAILURE:
                self.should_exit.set()
                return
            self.processes[place] = Process(self.config, self.sockets)
            self.processes[place].start()


def worker_app(settings: Settings, release: str | None, *, needs_keys: bool) -> FastAPI:
    """Return the application of one worker; ``needs_keys``: also where the keys are lost."""
    share_freed_memory(_ARENAS)
    keyring = Keyring(ServerFiles(settings.home_path).keys, required=needs_keys)
    return create_app(open_collections(settings, release=release), settings.server, keyring)


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens, so that nobody takes the port before the workers are ready."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise InputError(
            f"cannot listen on {host}:{port}: {error.strerror}; name another with --port"
        ) from None
    listener.set_inheritable(True)
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _tell_unready(collections: Collections, announce: Callable[[str], None]) -> None:
    """Say which collections cannot be asked yet. They can once a release is there."""
    for holder in collections.holders.values():
        try:
            with holder.lease():
                pass
        except GraphRAGError as error:
            announce(f"{holder.name}: {error}; until then /ready answers 503")


def _tell_unguarded(collections: Collections, announce: Callable[[str], None]) -> None:
    """Say which collections have rules of access that nobody is held to without a key."""
    for holder in collections.holders.values():
        if holder.settings.access.mode != "off":
            announce(
                f"{holder.name}: without keys everybody on this machine sees all of it, whatever "
                "[access] says; make one by graphrag-pipeline keys add NAME --labels ..."
            )


@contextlib.contextmanager
def _ended_quietly() -> Iterator[None]:
    """Take the signal that ends the server for its end: uvicorn raises it once more after that."""
    ending = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda *_: None) for number in ending}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _numbers_together() -> Iterator[None]:
    """Let the workers keep their numbers in one folder, so that each can tell those of all."""
    with tempfile.TemporaryDirectory(prefix="graphrag-metrics-", dir=temporary_place()) as folder:
        os.environ[WORKERS_FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[WORKERS_FOLDER]
