"""What 1, 2 and 4 workers make of batches that ask a model, or that only compute.

    python packages/cluster/tests/measure_workers.py model --workers 1 2 4 --latency 1
    python packages/cluster/tests/measure_workers.py model --requests 240
    python packages/cluster/tests/measure_workers.py rule --files 480

It starts Postgres, Redis, a played S3 and a played model on loopback, and prints a line a number of
workers: seconds of the stage that workers make, and CPU seconds of all workers since they were
ready, of the coordinator, and of Postgres.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(Path(__file__).parent)]

from cluster_services import postgres, redis, s3, with_children  # noqa: E402
from strict_server import Rates, StrictServer  # noqa: E402

from benchmarks.played_answers import played_answer  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
STAGE = re.compile(r"batches by workers .*?([\d.]+) s")


def main() -> None:
    """Measure each number of workers, in a new index, and print its line."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("work", choices=["model", "rule"])
    asked.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    asked.add_argument("--files", type=int, default=48)
    asked.add_argument("--batch", type=int, default=2, help="files of a batch")
    asked.add_argument("--latency", type=float, default=1.0, help="seconds of a call")
    asked.add_argument("--concurrency", type=int, default=4, help="calls of a worker at once")
    asked.add_argument("--requests", type=int, help="what the provider allows a minute")
    options = asked.parse_args()
    print("workers  stage s  CPU s: workers  coordinator  Postgres  calls  load")
    for n_workers in options.workers:
        print(measured(n_workers, options), flush=True)


def measured(n_workers: int, options: argparse.Namespace) -> str:
    """Index with so many workers; return the line of the table."""
    rates = Rates(requests=options.requests)
    with (
        tempfile.TemporaryDirectory(prefix="workers-") as place,
        StrictServer(played_answer, latency=options.latency, rates=rates) as server,
        postgres() as database, redis() as broker, s3() as bucket,
        contextlib.ExitStack() as stack,
    ):  # fmt: skip
        folder = Path(place)
        write_documents(folder / "documents", options.files)
        environment = {
            **os.environ,
            **bucket.environment,
            "OPENAI_API_KEY": "none",
            "GRAPHRAG_PROFILE": "llm" if options.work == "model" else "embedded",
            "GRAPHRAG_LLM__BASE_URL": server.base_url,
            "GRAPHRAG_LLM__CONCURRENCY": str(options.concurrency),
            "GRAPHRAG_EMBEDDINGS__EMBEDDER": "hashing",
            "GRAPHRAG_BATCHES__MAX_FILES": str(options.batch),
            "GRAPHRAG_STORAGE__URL": f"{bucket.url}/index",
            "GRAPHRAG_POSTGRES_URL": database.address,
            "GRAPHRAG_BROKER_URL": broker.address,
            "GRAPHRAG_WORKERS__LAUNCHER": "celery",
        }
        workers = [
            stack.enter_context(running(folder / f"worker{n}", environment, "worker"))
            for n in range(n_workers)
        ]
        wait_until_idle(workers)
        before = [sum(map(cpu, (w.pid for w in workers))), cpu(database.pid)]
        said, coordinator = indexed(folder, environment)
        stages = STAGE.findall(said)
        if not stages:
            raise SystemExit(said)
        of_workers = sum(map(cpu, (w.pid for w in workers))) - before[0]
        of_postgres = cpu(database.pid) - before[1]
    return (
        f"{n_workers:7} {float(stages[-1]):8.1f} {of_workers:15.1f} {coordinator:12.1f}"
        f" {of_postgres:9.1f} {len(server.requests):6} {os.getloadavg()[0]:5.1f}"
    )


def write_documents(folder: Path, n_files: int) -> None:
    """Write files of about 2.6 KB, each with a line of its own."""
    folder.mkdir()
    texts = [path.read_text() for path in sorted((ROOT / "examples/corpus/press").iterdir())]
    for n in range(n_files):
        (folder / f"{n:04}.md").write_text(f"{texts[n % len(texts)][:2600]}\n\nNote {n}.\n")


@contextlib.contextmanager
def running(
    folder: Path, environment: dict[str, str], *arguments: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command with a home of its own; end it at last."""
    folder.mkdir()
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "graphrag_pipeline.cli", *arguments], cwd=folder,
            env={**environment, "GRAPHRAG_HOME": str(folder / "home")}, stdout=said, stderr=said,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def indexed(folder: Path, environment: dict[str, str]) -> tuple[str, float]:
    """Index as the coordinator; return what it said, and its CPU seconds."""
    place = folder / "coordinator"
    with running(place, environment, "index", "--yes", str(folder / "documents")) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    said = (place / "said").read_text()
    if process.returncode:
        raise SystemExit(said)
    return said, usage.ru_utime + usage.ru_stime


def wait_until_idle(workers: list[subprocess.Popen[bytes]]) -> None:
    """Wait until workers have loaded what they need: they compute nothing for three seconds."""
    spent, since = -1.0, time.monotonic()
    while spent < len(workers) or time.monotonic() - since < 3:
        time.sleep(0.5)
        if any(worker.poll() is not None for worker in workers):
            raise SystemExit("a worker ended")
        now = sum(cpu(worker.pid) for worker in workers)
        if now - spent > 0.05:
            spent, since = now, time.monotonic()


def cpu(pid: int) -> float:
    """Return the CPU seconds of a process, its children, and those of them that ended."""
    ticks = 0
    for each in with_children(pid):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS


if __name__ == "__main__":
    main()
