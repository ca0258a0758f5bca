"""The image, and what compose.yaml starts, run by a container daemon of the test's own."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml
from container_daemon import ROOT, Daemon, daemon

pytestmark = [pytest.mark.nightly, pytest.mark.waits]

IMAGE = "graphrag-pipeline"
MOST_BYTES = 1.25e9
"""What docs/how-to/docker.md says of the image, and a little."""
T = TypeVar("T")
_BY_ENTRYPOINT = ("--entrypoint", "sh")


@pytest.fixture(scope="module")
def host() -> Iterator[Daemon]:
    """The daemon, with the product's image."""
    with daemon() as started:
        started.make_base()
        started.build(IMAGE, ROOT)
        yield started


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """The folder beside the Compose file, with one document that is known."""
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "dam.md").write_text("Oskar Kovarna built the Orlen Dam in 1931.")
    return folder


@dataclass
class Project:
    """A project of docker-compose: a Compose file, and what more is set, in a folder of its own.

    docker-compose 1.29 knows no ``name``, and the newer one asks for no ``version``: the copy has
    neither. The server gets a port that is free here.
    """

    host: Daemon
    folder: Path
    file: str
    profile: str = "cluster"
    environment: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    port: int = 0

    def __post_init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        composed = yaml.safe_load((ROOT / self.file).read_text())
        self.name = composed.pop("name")
        services = composed["services"]
        services["server"]["ports"] = [f"127.0.0.1:{self.port}:8000"]
        for name in {"coordinator", "worker"} & set(services):
            services[name]["environment"] = {**services[name]["environment"], **self.settings}
        (self.folder / self.file).write_text(yaml.safe_dump(composed))
        given = "".join(f"{name}={value}\n" for name, value in self.environment.items())
        (self.folder / ".env").write_text(given)

    def compose(self, *arguments: str, check: bool = True) -> str:
        """Run docker-compose; return what it printed."""
        command = ["docker-compose", "-p", self.name, "-f", self.file, "--profile", self.profile]
        done = self.host.run(*command, *arguments, check=check, folder=self.folder)
        return done.stdout.strip()

    def containers(self, service: str) -> list[str]:
        """Return the containers of a service that run."""
        return self.compose("ps", "--quiet", service).split()

    def answer(self, question: str, key: str) -> dict[str, Any]:
        """Ask the server through the port that is published here."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/query",
            json.dumps({"question": question}).encode(),
            {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=120) as response:
            return json.load(response)

    def tries_to_answer(self, question: str, key: str) -> dict[str, Any] | None:
        """Ask; None where the server is not there yet, or has nothing to answer from."""
        try:
            return self.answer(question, key)
        except (OSError, urllib.error.URLError):
            return None

    def says(self, question: str, key: str) -> str:
        """Ask; return the text of the answer, empty where there is none yet."""
        return (self.tries_to_answer(question, key) or {"text": ""})["text"]


def wait_for(what: Callable[[], T], seconds: float = 900, every: float = 1.0) -> T:
    """Return what comes of a question once it is true."""
    deadline = time.monotonic() + seconds
    while not (given := what()):
        assert time.monotonic() < deadline, what
        time.sleep(every)
    return given


def key_in(printed: str) -> str:
    return next(word for word in printed.split() if word.startswith("grp_"))


def health_of(host: Daemon, container: str) -> str:
    return host.docker("inspect", "--format", "{{.State.Health.Status}}", container)


def test_the_image_indexes_a_folder_and_is_as_small_as_is_said(
    host: Daemon, documents: Path
) -> None:
    given = ("--rm", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "-v", "one:/data")
    host.docker("run", *given, "-v", f"{documents}:/documents:ro", IMAGE, "index")
    said = host.docker("run", *given, IMAGE, "query", "Who built the Orlen Dam?")
    assert "Oskar Kovarna" in said
    assert "dam.md" in said
    assert "llm_cost" in host.docker("run", *given, IMAGE, "marts")
    size = int(host.docker("image", "inspect", "--format", "{{.Size}}", IMAGE))
    assert size < MOST_BYTES
    refused = host.run("docker", "run", *given, IMAGE, check=False)
    assert refused.returncode == 2
    assert "there are no keys" in refused.stderr
    # Nothing of the machine that the base was made on, but what the base itself has.
    listed = host.docker("run", "--rm", *_BY_ENTRYPOINT, IMAGE, "-c", "env; ls /opt/graphrag")
    assert "PIP_" not in listed
    assert "pip.conf" not in listed


def test_compose_indexes_what_lies_in_the_folder_and_answers_with_a_key(
    host: Daemon, documents: Path
) -> None:
    project = Project(host, documents.parent, "compose.yaml")
    try:
        project.compose("up", "--detach", "--no-build")
        (server,) = wait_for(lambda: project.containers("server"))
        key = key_in(project.compose("run", "--rm", "server", "keys", "add", "me"))
        answer = wait_for(lambda: project.tries_to_answer("Who built the Orlen Dam?", key))
        assert "Kovarna" in answer["text"]
        assert any("dam.md" in json.dumps(citation) for citation in answer["citations"])
        wait_for(lambda: health_of(host, server) == "healthy", 120)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            project.answer("Who built the Orlen Dam?", "grp_wrong")
        # What is added is indexed without being told.
        (documents / "bridge.md").write_text("Ilse Marten built the Varn Bridge in 1940.")
        wait_for(lambda: "Marten" in project.says("Who built the Varn Bridge?", key), every=5)
    finally:
        project.compose("down", "--volumes", check=False)
