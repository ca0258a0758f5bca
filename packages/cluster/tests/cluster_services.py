"""Postgres, Redis and an S3 server of a test's own: each started by it, and ended with it.

A service is a child that its parent's death ends, too, whatever kills that. It has a port of its
own, keeps it over a restart, and writes to a temporary folder alone.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

BUCKET_VARIABLE = "TESTS_BUCKET"
"""A real bucket to test with, s3://bucket or s3://bucket/prefix; AWS_* say how to reach it."""
_SECONDS = 30.0
_POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))


@dataclass
class Service:
    """A server that a test may stop, start again with what it had on disk, and let hang."""

    command: Sequence[str]
    port: int
    folder: Path
    is_ready: Callable[[], bool]
    address: str
    end_by: signal.Signals = signal.SIGTERM
    environment: Mapping[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process, which runs."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                env={**os.environ, **self.environment},
            )  # fmt: skip
        deadline = time.monotonic() + _SECONDS
        while not self.is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError((self.folder / "log").read_text(errors="replace")[-2000:])
            time.sleep(0.05)

    def stop(self) -> None:
        """End the server in its own way."""
        if self._process is not None and self._process.poll() is None:
            self.resume()
            self._process.send_signal(self.end_by)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End the server at once, as ``kill -9`` does."""
        if self._process is not None:
            for pid in with_children(self._process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Let the server hang: connections are taken, and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a server go on that hangs."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        for pid in with_children(self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


@contextlib.contextmanager
def postgres() -> Iterator[Service]:
    """Start a Postgres with an empty database; ``address`` is its DSN, without a password.

    It takes any password, too. It is not safe from power cuts, which are not tested here.
    """
    if not _POSTGRES or not _setpriv() or importlib.util.find_spec("psycopg") is None:
        pytest.skip("no Postgres here (Debian: postgresql; pip: psycopg)")
    user = "postgres" if os.geteuid() == 0 else ""
    with _folder() as folder:
        if user:
            shutil.chown(folder, user)
        data = folder / "data"
        subprocess.run(
            [*_as(user), f"{_POSTGRES[-1]}/initdb", "-D", str(data), "-U", "graphrag", "-A",
             "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
            check=True, capture_output=True, cwd=folder, timeout=120,
        )  # fmt: skip
        options = {
            "listen_addresses": "127.0.0.1", "unix_socket_directories": str(folder),
            "fsync": "off", "full_page_writes": "off", "shared_buffers": "32MB",
            "max_connections": "60",
        }  # fmt: skip
        given = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]

        def made(port: int) -> Service:
            ready = [f"{_POSTGRES[-1]}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
            return Service(
                [*_as(user), f"{_POSTGRES[-1]}/postgres", "-D", str(data), "-p", str(port), *given],
                port,
                folder,
                lambda: subprocess.run(ready, check=False).returncode == 0,
                f"postgresql://graphrag@127.0.0.1:{port}/postgres",
                # A fast end: sessions are closed.
                signal.SIGINT,
            )

        with _running(made) as service:
            yield service


@contextlib.contextmanager
def redis() -> Iterator[Service]:
    """Start a Redis that keeps every write; ``address`` is its URL."""
    program = shutil.which("redis-server")
    if program is None or not _setpriv():
        pytest.skip("no Redis here (Debian: redis-server)")
    with _folder() as folder:

        def made(port: int) -> Service:
            options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
            kept = ["--appendonly", "yes", "--save", ""]
            return Service(
                [*_as(""), program, *options, *kept],
                port,
                folder,
                lambda: _answers(port, b"PING\r\n", b"+PONG"),
                f"redis://127.0.0.1:{port}/0",
            )

        with _running(made) as service:
            yield service


@dataclass(frozen=True)
class Bucket:
    """A bucket, or a folder in one, that nobody else writes to.

    ``service`` is the server where it is the test's own; what it holds is gone when it is stopped,
    so let it hang instead. ``environment`` says to all libraries how it is reached.
    """

    url: str
    endpoint: str | None
    environment: Mapping[str, str]
    service: Service | None


@contextlib.contextmanager
def s3() -> Iterator[Bucket]:
    """Start an S3 server (moto) with an empty bucket, or use the real one of the environment."""
    if real := os.environ.get(BUCKET_VARIABLE):
        url = f"{real.rstrip('/')}/{uuid.uuid4().hex}"
        own = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        yield Bucket(url, own.get("AWS_ENDPOINT_URL"), own, None)
        return
    if importlib.util.find_spec("moto") is None or not _setpriv():
        pytest.skip("no S3 server here (pip: moto[server])")
    with _folder() as folder:

        def made(port: int) -> Service:
            return Service(
                [*_as(""), sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
                port,
                folder,
                lambda: _answers(port, b"GET /moto-api/ HTTP/1.0\r\n\r\n", b"HTTP/"),
                f"http://127.0.0.1:{port}",
                signal.SIGKILL,
            )

        with _running(made) as service:
            put = urllib.request.Request(f"{service.address}/index", method="PUT")
            with urllib.request.urlopen(put, timeout=_SECONDS):
                pass
            environment = {
                "AWS_ACCESS_KEY_ID": "tests",
                "AWS_SECRET_ACCESS_KEY": "secret-of-tests",
                "AWS_ENDPOINT_URL": service.address,
                "AWS_REGION": "us-east-1",
                "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_ALLOW_HTTP": "true",
                "AWS_EC2_METADATA_DISABLED": "true",
            }
            yield Bucket("s3://index", service.address, environment, service)


@contextlib.contextmanager
def _running(made: Callable[[int], Service]) -> Iterator[Service]:
    """Run a service on a free port; another process may be quicker to take that."""
    for attempts_left in (2, 1, 0):
        service = made(_free_port())
        try:
            service.start()
            break
        except RuntimeError:
            if not attempts_left:
                raise
    try:
        yield service
    finally:
        service.stop()


def _as(user: str) -> list[str]:
    """Return what runs a program as a user, and ends it when this process ends."""
    groups = [f"--reuid={user}", f"--regid={user}", "--init-groups"] if user else []
    return [_setpriv(), *groups, "--pdeathsig", "QUIT" if user else "KILL", "--"]


def _setpriv() -> str:
    return shutil.which("setpriv") or ""


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Yield a folder with a short name, for a socket's path may have a hundred characters."""
    with tempfile.TemporaryDirectory(prefix="gr-", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _answers(port: int, question: bytes, beginning: bytes) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as link:
            link.sendall(question)
            return link.recv(100).startswith(beginning)
    except OSError:
        return False


def with_children(pid: int) -> list[int]:
    """Return a process and all that come from it."""
    pids = [pid]
    for parent in pids:
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
            pids += map(int, children)
    return pids
