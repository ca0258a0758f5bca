"""A container daemon of a test's own, and images that it makes without any registry of images.

The base is made of Debian's packages. Where this machine trusts an authority of its own, as the
variables of pip and OpenSSL say, that stands in the base alone, and never in the product's image.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BASE = "debian:bookworm-slim"
FOLDER_VARIABLE = "CONTAINER_TEST_FOLDER"
"""A folder that keeps base and layers from one run to the next; without it nothing is kept."""
_NEEDED = ("dockerd", "docker", "docker-compose", "debootstrap")
_MIRROR = "http://deb.debian.org/debian"
_AUTHORITIES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
_SLIM = ("man", "info", "locale", "doc")
_PATIENCE = 2400


@dataclass(frozen=True)
class Daemon:
    """A daemon that runs, by its socket."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which docker and docker-compose find it, and no other daemon."""
        own = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return {**own, "DOCKER_HOST": f"unix://{self.folder}/docker.sock"}

    def run(
        self, *command: str, check: bool = True, patience: float = 600, folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run docker or docker-compose; what it prints comes with the failure where it fails."""
        done = subprocess.run(
            command, env=self.environment, cwd=folder, capture_output=True, text=True,
            timeout=patience,
        )  # fmt: skip
        assert done.returncode == 0 or not check, f"{command}\n{done.stdout[-3000:]}{done.stderr}"
        return done

    def docker(self, *arguments: str, check: bool = True) -> str:
        """Run docker; return what it printed to standard output."""
        return self.run("docker", *arguments, check=check).stdout.strip()

    def build(self, tag: str, context: Path, *options: str) -> None:
        """Build the image of a folder's Dockerfile."""
        self.run("docker", "build", "--tag", tag, *options, str(context), patience=_PATIENCE)

    def make_base(self) -> None:
        """Make the image that the Dockerfile begins from, unless it is kept from before."""
        if self.docker("images", "--quiet", BASE):
            return
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            root = Path(name) / "root"
            made = ["debootstrap", "--variant=minbase", "bookworm", str(root), _MIRROR]
            subprocess.run(made, check=True, capture_output=True, timeout=_PATIENCE)
            _slim(root)
            _trust(root)
            packed = subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE)
            subprocess.run(
                ["docker", "import", "-", BASE],
                stdin=packed.stdout, env=self.environment, check=True, capture_output=True,
            )  # fmt: skip
            assert packed.wait() == 0


@contextlib.contextmanager
def daemon() -> Iterator[Daemon]:
    """Start a daemon whose images, containers, networks and sockets are this test's alone.

    The test is skipped where none can be had. All containers are removed at the end, and all that
    the daemon keeps unless ``CONTAINER_TEST_FOLDER`` is set.
    """
    missing = [name for name in _NEEDED if shutil.which(name) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"no container daemon can be had: needs root and {', '.join(_NEEDED)}")
    with contextlib.ExitStack() as stack:
        kept = os.environ.get(FOLDER_VARIABLE)
        worker = os.environ.get("PYTEST_XDIST_WORKER", "")
        folder = Path(kept or tempfile.mkdtemp(prefix="gr-", dir="/var/tmp")) / worker
        folder.mkdir(parents=True, exist_ok=True)
        if not kept:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        started = Daemon(folder)
        stack.callback(_end, folder / "docker.pid")
        _start(started)
        stack.callback(_remove_containers, started)
        yield started


def _start(started: Daemon) -> None:
    folder = started.folder
    options = {
        "--data-root": folder / "data", "--exec-root": folder / "exec",
        "--pidfile": folder / "docker.pid", "-H": f"unix://{folder}/docker.sock",
    }  # fmt: skip
    command: Sequence[str] = ["dockerd", *(str(part) for each in options.items() for part in each)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    deadline = time.monotonic() + 60
    while started.run("docker", "info", check=False).returncode != 0:
        if process.poll() is not None or time.monotonic() > deadline:
            *_, last = (folder / "log").read_text(errors="replace").splitlines() or ["no word"]
            pytest.skip(f"no container daemon can be had: {last}")
        time.sleep(0.5)


def _end(pid_file: Path) -> None:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        pid = int(pid_file.read_text())
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 60
        while pid_file.exists() and time.monotonic() < deadline:
            time.sleep(0.2)


def _remove_containers(started: Daemon) -> None:
    if ids := started.docker("ps", "--all", "--quiet").split():
        started.docker("rm", "--force", "--volumes", *ids)
    started.docker("volume", "prune", "--force")
    started.docker("network", "prune", "--force")


def _slim(root: Path) -> None:
    """Leave out what Debian's image of this name leaves out, now and when more is installed."""
    shutil.rmtree(root / "var/lib/apt/lists")
    shutil.rmtree(root / "var/cache/apt")
    for name in ("var/lib/apt/lists/partial", "var/cache/apt/archives/partial"):
        (root / name).mkdir(parents=True)
    for name in _SLIM:
        shutil.rmtree(root / "usr/share" / name, ignore_errors=True)
        (root / "usr/share" / name).mkdir()
    (root / "etc/dpkg/dpkg.cfg.d").mkdir(parents=True, exist_ok=True)
    excluded = "".join(f"path-exclude /usr/share/{name}/*\n" for name in _SLIM)
    (root / "etc/dpkg/dpkg.cfg.d/docker").write_text(excluded)


def _trust(root: Path) -> None:
    """Let pip trust in containers what it trusts here, where the environment says so."""
    for variable in _AUTHORITIES:
        if (given := os.environ.get(variable)) and Path(given).is_file():
            shutil.copy(given, root / "etc" / "authorities-of-tests.pem")
            (root / "etc" / "pip.conf").write_text(
                "[global]\ncert = /etc/authorities-of-tests.pem\n"
            )
            return
