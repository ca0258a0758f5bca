"""What compose.cluster.yaml starts: one index, through a kill, a cut and a new image."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from container_daemon import ROOT, Daemon, daemon
from index_differences import differing_tables
from test_containers import Project, key_in, wait_for
from test_workers import OF_ITS_MACHINE

pytestmark = [pytest.mark.nightly, pytest.mark.waits]

STAND_INS = Path(__file__).with_name("stand_ins")
CLUSTER_IMAGE = "graphrag-pipeline:cluster"
SETTINGS = {"GRAPHRAG_BATCHES__MAX_FILES": "3"}
"""Sixty files are twenty batches, so that workers are at work when something is done to them."""
N_FILES, N_WORKERS = 60, 3
CUT_SECONDS = 20
_BY_ENTRYPOINT = ("--entrypoint", "sh")


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """The folder beside the Compose file, with one document that is known."""
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "dam.md").write_text("Oskar Kovarna built the Orlen Dam in 1931.")
    return folder


@pytest.fixture(scope="module")
def host() -> Iterator[Daemon]:
    """The daemon, with its base."""
    with daemon() as started:
        started.make_base()
        yield started


class Cluster(Project):
    """The project of compose.cluster.yaml, and what may be done to it."""

    def rows(self, query: str) -> str:
        """Ask the cluster's Postgres."""
        (store,) = self.containers("postgres")
        given = ("-e", f"PGPASSWORD={self.environment['POSTGRES_PASSWORD']}")
        psql = ("psql", "-h", "127.0.0.1", "-U", "graphrag", "-d", "graphrag", "-Atc", query)
        return self.host.docker("exec", *given, store, *psql, check=False)

    def parts_made(self) -> int:
        """Return how many runs of workers ended well; none where Postgres cannot say yet."""
        counted = self.rows("SELECT count(*) FROM runs WHERE status = 'SUCCESS'")
        return int(counted) if counted.isdigit() else 0

    def start_workers(self) -> list[str]:
        """Start the workers that are missing, by the image as it is now; return all."""
        scale = f"worker={N_WORKERS}"
        self.compose("up", "--detach", "--no-build", "--no-recreate", "--scale", scale, "worker")
        return self.containers("worker")

    def cut_off(self, container: str, seconds: float) -> None:
        """Take a container from the network of the stores for a while."""
        network = f"{self.name}_stores"
        self.host.docker("network", "disconnect", network, container)
        time.sleep(seconds)
        self.host.docker("network", "connect", network, container)

    def restart_in_turn(self) -> None:
        """Let the workers, one after the other, and then the coordinator begin in a new image."""
        for worker in self.containers("worker"):
            self.host.docker("stop", "--time", "5", worker)
            self.host.docker("rm", worker)
            self.start_workers()
        self.compose("up", "--detach", "--no-build", "--no-deps", "coordinator")

    def images(self) -> set[str]:
        """Return the images of coordinator and workers."""
        running = [*self.containers("coordinator"), *self.containers("worker")]
        return {self.host.docker("inspect", "--format", "{{.Image}}", each) for each in running}


@pytest.fixture
def cluster(host: Daemon, documents: Path) -> Iterator[Cluster]:
    """The project, with images of its own for the stores, and sixty documents."""
    corpus = sorted((ROOT / "examples" / "corpus").rglob("*.md"))
    for number in range(N_FILES - 1):
        source = corpus[number % len(corpus)]
        text = f"{source.read_text()}\n\nNumber {number} was copied by Jan Orlik in Brno.\n"
        (documents / f"{number:02}-{source.name}").write_text(text)
    host.build(CLUSTER_IMAGE, ROOT, "--build-arg", "EXTRAS=evaluation,server,cluster,marts")
    services = yaml.safe_load((ROOT / "compose.cluster.yaml").read_text())["services"]
    for name in ("postgres", "redis", "s3"):
        host.build(services[name]["image"], STAND_INS / name)
    passwords = {f"{name}_PASSWORD": f"{name}OfTests1" for name in ("POSTGRES", "REDIS", "S3")}
    project = Cluster(
        host, documents.parent, "compose.cluster.yaml", environment=passwords, settings=SETTINGS
    )
    yield project
    project.compose("down", "--volumes", check=False)


def build_alone(cluster: Cluster, batches: Path) -> Path:
    """Build, of the same batches, what one container makes of them; return the index file."""
    host, documents, home = cluster.host, cluster.folder / "documents", cluster.folder / "alone"
    shutil.copytree(batches, home / "index" / "batches")
    host.docker("run", "--rm", "-v", f"{home}:/data", "--user", "0:0", *_BY_ENTRYPOINT,
                CLUSTER_IMAGE, "-c", "chown -R 10001:10001 /data")  # fmt: skip
    settings = [part for each in SETTINGS.items() for part in ("-e", "=".join(each))]
    host.docker("run", "--rm", "-v", f"{home}:/data", "-v", f"{documents}:/documents:ro",
                *settings, CLUSTER_IMAGE, "index")  # fmt: skip
    return home / "index" / "index.duckdb"


def test_a_cluster_makes_the_index_of_one_machine_through_a_kill_a_cut_and_a_new_image(
    cluster: Cluster,
) -> None:
    host = cluster.host
    scale = f"worker={N_WORKERS}"
    cluster.compose("up", "--detach", "--no-build", "--scale", scale)
    key = key_in(cluster.compose("run", "--rm", "server", "keys", "add", "me"))
    wait_for(lambda: cluster.parts_made() > 0, every=0.5)
    killed, cut, _ = cluster.containers("worker")
    host.docker("kill", killed)
    made_before = cluster.parts_made()
    cluster.cut_off(cut, CUT_SECONDS)
    host.docker("rm", killed)
    (old_image,) = cluster.images()
    newer = cluster.folder / "newer"
    newer.mkdir()
    (newer / "Dockerfile").write_text(f"FROM {CLUSTER_IMAGE}\nLABEL made-by=the-next-release\n")
    host.build(CLUSTER_IMAGE, newer)
    assert made_before < cluster.parts_made() + 1 <= N_FILES
    cluster.restart_in_turn()
    (new_image,) = cluster.images()
    assert new_image != old_image
    assert len(cluster.containers("worker")) == N_WORKERS
    answer = wait_for(lambda: cluster.tries_to_answer("Who built the Orlen Dam?", key), every=2)
    assert "Kovarna" in answer["text"]
    (coordinator,) = cluster.containers("coordinator")
    host.docker("stop", "--time", "60", coordinator)
    home = cluster.folder / "cluster"
    home.mkdir()
    host.docker("cp", f"{coordinator}:/data/index", str(home))
    assert len(list((home / "index" / "batches").glob("*.json"))) >= N_FILES // 3
    alone = build_alone(cluster, home / "index" / "batches")
    assert set(differing_tables(alone, home / "index" / "index.duckdb")) <= OF_ITS_MACHINE
