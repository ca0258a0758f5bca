"""The real thing: Dagster's servers on loopback, a folder, a clock, and nobody at the keyboard."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import requests

from graphrag_pipeline.marts.build import manifest
from graphrag_pipeline.marts.sql import query_published
from graphrag_pipeline.query import answer
from graphrag_pipeline.releases.publishing import published_release

Found = TypeVar("Found")
PATIENCE = 420
PEOPLE = "Anna Berg works with Boris Claude at Orion Labs in Lyon. Boris Claude leads Orion Labs."
RIVERS = "Hanna Iversen sails the Jordan River. Kora Lund paints the Jordan River near Montreux."
RUNS = """query Runs($job: String!) { runsOrError(filter: {pipelineName: $job}) {
    ... on Runs { results { status } } } }"""
PARTITIONS = """{ assetNodes(assetKeys: [{path: ["documents"]}]) {
    partitionStats { numMaterialized numPartitions } } }"""
SENSOR = """query Sensor($name: String!) { sensorOrError(sensorSelector: {sensorName: $name,
    repositoryName: "__repository__", repositoryLocationName: "graphrag"}) {
    ... on Sensor { id } } }"""
STOP = """mutation Stop($id: String!) { stopSensor(id: $id) {
    ... on StopSensorMutationResult { instigationState { status } } } }"""
CHECKS = """query Checks($path: [String!]!) { assetNodeOrError(assetKey: {path: $path}) {
    ... on AssetNode { assetChecksOrError { ... on AssetChecks { checks { name
        executionForLatestMaterialization { status } } } } } } }"""


class Dagster:
    """A running ``graphrag-pipeline ui``, asked through GraphQL."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def is_up(self) -> bool:
        with contextlib.suppress(requests.ConnectionError):
            return requests.get(f"{self.url}/server_info", timeout=5).ok
        return False

    def ask(self, query: str, **variables: Any) -> Any:
        body = {"query": query, "variables": variables}
        reply = requests.post(f"{self.url}/graphql", json=body, timeout=30).json()
        assert "errors" not in reply, reply
        return reply["data"]

    def runs(self, job: str) -> list[str]:
        """Return the states of a job's runs, the newest first."""
        found = self.ask(RUNS, job=job)["runsOrError"]["results"]
        return [run["status"] for run in found]

    def stop_sensor(self, name: str) -> None:
        found = self.ask(SENSOR, name=name)["sensorOrError"]
        stopped = self.ask(STOP, id=found["id"])["stopSensor"]
        assert stopped["instigationState"]["status"] == "STOPPED", stopped

    def partitions(self) -> tuple[int, int]:
        """Return how many batches there are, and how many are materialised."""
        (node,) = self.ask(PARTITIONS)["assetNodes"]
        stats = node["partitionStats"]
        return stats["numPartitions"], stats["numMaterialized"]

    def checks(self, *path: str) -> dict[str, str]:
        """Return the states of an asset's checks by name."""
        node = self.ask(CHECKS, path=list(path))["assetNodeOrError"]
        return {
            check["name"]: check["executionForLatestMaterialization"]["status"]
            for check in node["assetChecksOrError"]["checks"]
            # The check of the whole index has a schedule of its own.
            if check["executionForLatestMaterialization"]
        }


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder, and an environment in which Dagster keeps everything under it."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GRAPHRAG_INPUT__FOLDER", str(tmp_path / "inbox"))
    monkeypatch.setenv("GRAPHRAG_INPUT__POLL_SECONDS", "1")
    monkeypatch.setenv("GRAPHRAG_INPUT__SETTLE_SECONDS", "1")
    monkeypatch.setenv("GRAPHRAG_SCHEDULE__REFRESH_CRON", "* * * * *")
    (tmp_path / "inbox").mkdir()
    manifest(tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def dagster(home: Path, tmp_path: Path) -> Iterator[Dagster]:
    """Dagster's servers; every process of theirs is gone afterwards, whatever happens."""
    port = free_port()
    command = [sys.executable, "-m", "graphrag_pipeline.cli", "ui", "--port", str(port)]
    with (tmp_path / "dagster.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=tmp_path, start_new_session=True
        )
        try:
            yield Dagster(port)
        finally:
            _end(process, tmp_path)


def _end(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Ask the servers to stop, then kill what is left of their session."""
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10)
    for pid in _started_in(process.pid, folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait(timeout=10)


def _started_in(session: int, folder: Path) -> list[int]:
    """Return the processes of a session, and those that left it but still work in the folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            here = os.getsid(int(place.name)) == session
            if here or (place / "cwd").readlink() == folder:
                found.append(int(place.name))
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _until(what: str, look: Callable[[], Found | None], deadline: float) -> Found:
    """Look again and again until something is there; fail by name at the deadline."""
    while not (found := look()):
        assert time.monotonic() < deadline, f"{what}: not seen in time"
        time.sleep(1)
    return found


@pytest.mark.live
@pytest.mark.waits
def test_files_dropped_in_the_inbox_become_releases_by_themselves(
    home: Path, dagster: Dagster, tmp_path: Path
) -> None:
    deadline = time.monotonic() + PATIENCE
    inbox = tmp_path / "inbox"
    (inbox / "people.txt").write_text(PEOPLE)
    _until("the server", dagster.is_up, deadline)
    # Marts take half of the processors meanwhile, and have tests of their own.
    dagster.stop_sensor("marts_sensor")
    _until("a batch that is done", lambda: dagster.partitions() == (1, 1), deadline)
    first = _until("a release", lambda: published_release(home), deadline)
    _until("the runs' end", lambda: dagster.runs("refresh_index") == ["SUCCESS"], deadline)
    assert dagster.runs("ingest_batch") == ["SUCCESS"]
    for asset in (
        "graph/entities",
        "graph/relationships",
        "communities/communities_level_0",
        "reports/reports_level_0",
        "embeddings/community_reports_vectors",
        "published_index",
    ):
        checks = dagster.checks(*asset.split("/"))
        assert checks, asset
        assert set(checks.values()) == {"SUCCEEDED"}, (asset, checks)
    assert answer("Where is Orion Labs?", "local", home=home).citations

    (inbox / "rivers.txt").write_text(RIVERS)
    _until("a second batch", lambda: dagster.partitions() == (2, 2), deadline)
    _until("a second release", lambda: published_release(home) != first, deadline)
    _until("its end", lambda: dagster.runs("refresh_index") == ["SUCCESS"] * 2, deadline)
    assert dagster.runs("ingest_batch") == ["SUCCESS"] * 2
    _, rows = query_published(home, "SELECT count(*), count(DISTINCT batch) FROM documents")
    assert rows == [(2, 2)]
