"""As much of Kubernetes as one who launches jobs sees: an API server whose pods are processes.

A job that is created starts its pod's container at once, as the kubelet would: command and
arguments as the job says, with the variables that it names and no others.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import yaml


class Pod:
    """A container's process, and what its job's status says of it."""

    def __init__(
        self,
        job: dict[str, Any],
        secrets: Mapping[str, Mapping[str, str]],
        home: Path,
        instead: Sequence[str] | None,
    ) -> None:
        self.job = job
        (self.container,) = job["spec"]["template"]["spec"]["containers"]
        entrypoint = self.container.get("command", ["graphrag-pipeline"])
        command = instead or [*entrypoint, *self.container["args"]]
        environment = self._environment(secrets)
        home.mkdir()
        self.log = home / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=home,
                env={**environment, "GRAPHRAG_HOME": str(home / "index")},
            )

    def _environment(self, secrets: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
        given: dict[str, str] = {"PATH": str(Path(sys.executable).parent) + ":/usr/bin:/bin"}
        given["PYTHONPATH"] = str(Path(__file__).parents[3])
        for source in self.container.get("envFrom", []):
            given |= secrets[(source.get("secretRef") or source["configMapRef"])["name"]]
        for variable in self.container["env"]:
            if "value" in variable:
                given[variable["name"]] = variable["value"]
            else:
                key = variable["valueFrom"]["secretKeyRef"]
                given[variable["name"]] = secrets[key["name"]][key["key"]]
        return given

    @property
    def status(self) -> dict[str, int]:
        """The job's status, as the API says it."""
        code = self.process.poll()
        return {"active": 1} if code is None else {"failed" if code else "succeeded": 1}


class Kubernetes:
    """The API server, from ``with`` to the end of its block; no pod outlives it."""

    def __init__(
        self,
        folder: Path,
        secrets: Mapping[str, Mapping[str, str]],
        instead: Sequence[str] | None = None,
    ) -> None:
        """``secrets`` and config maps by name; ``instead``: what each pod runs for its command."""
        self.folder = folder
        self.instead = instead
        self.secrets = secrets
        self.pods: dict[str, Pod] = {}
        self.refuses = False
        """Whether no job may be created."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        for pod in self.pods.values():
            pod.process.kill()
            pod.process.wait()

    @property
    def kubeconfig(self) -> Path:
        """The file by which a client finds this server."""
        path = self.folder / "kubeconfig"
        place = {"server": f"http://127.0.0.1:{self._server.server_port}"}
        context = {"cluster": "here", "user": "me"}
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "here",
                    "clusters": [{"name": "here", "cluster": place}],
                    "users": [{"name": "me", "user": {}}],
                    "contexts": [{"name": "here", "context": context}],
                }
            )
        )
        return path

    def create(self, job: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Start the pod of a job."""
        if self.refuses:
            return 403, {"kind": "Status", "reason": "Forbidden", "message": "jobs is forbidden"}
        name = job["metadata"]["name"]
        home = self.folder / f"pod-{len(self.pods)}"
        self.pods[name] = Pod(job, self.secrets, home, self.instead)
        return 201, job

    def status_of(self, name: str) -> tuple[int, dict[str, Any]]:
        """Return a job with its status."""
        if name not in self.pods:
            return 404, {"kind": "Status", "reason": "NotFound"}
        pod = self.pods[name]
        return 200, {**pod.job, "status": pod.status}


def _handler_of(kubernetes: Kubernetes) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path.endswith("/jobs")
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(*kubernetes.create(json.loads(body)))

        def do_GET(self) -> None:
            *_, name, status = self.path.split("/")
            assert status == "status"
            self._answer(*kubernetes.status_of(name))

        def _answer(self, code: int, said: dict[str, Any]) -> None:
            body = json.dumps(said).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
