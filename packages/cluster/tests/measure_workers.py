"""What 1, 2 and 4 workers make of work of five kinds, beside one machine (0 workers).

    python packages/cluster/tests/measure_workers.py model --workers 0 1 2 4 --latency 1
    python packages/cluster/tests/measure_workers.py model --requests 60
    python packages/cluster/tests/measure_workers.py rule
    python packages/cluster/tests/measure_workers.py pdf
    python packages/cluster/tests/measure_workers.py ocr
    python packages/cluster/tests/measure_workers.py embed --model all-MiniLM-L6-v2

It starts Postgres, Redis, a played S3 and a played model on loopback, and prints a line a number of
workers: seconds of the stage that workers make and of the whole index, and CPU seconds of all
workers since they were ready, of the coordinator (or the one machine), of Postgres, and of all.
Libraries compute with one thread, so that a worker uses one core.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pypdfium2
from reportlab.pdfgen.canvas import Canvas

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(Path(__file__).parent)]

from cluster_services import postgres, redis, s3, with_children  # noqa: E402
from strict_server import Rates, StrictServer  # noqa: E402

from benchmarks.played_answers import played_answer  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
CORPUS = sorted((ROOT / "examples/corpus/press").iterdir())
COLUMNS = "workers  stage s  index s  CPU s: workers  coordinator  Postgres     all  calls  load"
WORDS_OF_A_PAGE = 430


def main() -> None:
    """Measure each number of workers, in a new index, and print its line."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("work", choices=[*WORKS])
    asked.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2, 4])
    asked.add_argument("--files", type=int)
    asked.add_argument("--batch", type=int, help="files of a batch")
    asked.add_argument("--latency", type=float, default=1.0, help="seconds of a call")
    asked.add_argument("--concurrency", type=int, default=4, help="calls of a worker at once")
    asked.add_argument("--requests", type=int, help="what the provider allows a minute")
    asked.add_argument("--model", default="", help="embed: a model of sentence-transformers")
    options = asked.parse_args()
    # Workers and services are ended, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    work = WORKS[options.work]
    options.files, options.batch = options.files or work.files, options.batch or work.batch
    if options.work == "ocr" and not shutil.which("tesseract"):
        raise SystemExit("ocr needs tesseract (Debian: apt install tesseract-ocr)")
    if options.work == "embed" and not options.model:
        raise SystemExit("embed needs --model: a name or a folder for sentence-transformers")
    print(f"{options.files} files, {options.batch} a batch, {os.cpu_count()} cores\n{COLUMNS}")
    for n_workers in options.workers:
        print(measured(n_workers, work, options), flush=True)


def measured(n_workers: int, work: Work, options: argparse.Namespace) -> str:
    """Index with so many workers, or on one machine for 0; return the line of the table."""
    rates = Rates(requests=options.requests)
    with (
        tempfile.TemporaryDirectory(prefix="workers-") as place,
        StrictServer(played_answer, latency=options.latency, rates=rates) as server,
        postgres() as database, redis() as broker, s3() as bucket,
        contextlib.ExitStack() as stack,
    ):  # fmt: skip
        folder = Path(place)
        (folder / "documents").mkdir()
        for n in range(options.files):
            work.write(folder / "documents", n)
        environment = {**os.environ, **settings_of(work, options, server.base_url)}
        if n_workers:
            environment |= {
                **bucket.environment,
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
        of_workers = sum(map(cpu, (w.pid for w in workers))) - before[0]
        of_postgres = cpu(database.pid) - before[1]
    stage, whole = seconds_said(said, work, n_workers)
    return (
        f"{n_workers:7} {stage:8.1f} {whole:8.1f} {of_workers:15.1f} {coordinator:12.1f}"
        f" {of_postgres:9.1f} {of_workers + coordinator + of_postgres:7.1f}"
        f" {len(server.requests):6} {os.getloadavg()[0]:5.1f}"
    )


def settings_of(work: Work, options: argparse.Namespace, model_url: str) -> dict[str, str]:
    """Return the settings, as environment, that one machine and many workers have in common."""
    settings = {
        "GRAPHRAG_PROFILE": "embedded",
        "GRAPHRAG_LLM__BASE_URL": model_url,
        "GRAPHRAG_LLM__CONCURRENCY": str(options.concurrency),
        "GRAPHRAG_EMBEDDINGS__EMBEDDER": "hashing",
        "GRAPHRAG_BATCHES__MAX_FILES": str(options.batch),
        **{f"GRAPHRAG_{name}": value for name, value in work.settings.items()},
    }
    if options.model:
        settings["GRAPHRAG_EMBEDDINGS__MODEL"] = options.model
    return {"OPENAI_API_KEY": "none", "OMP_NUM_THREADS": "1", **settings}


def seconds_said(said: str, work: Work, n_workers: int) -> tuple[float, float]:
    """Return the seconds of the measured stages and of the whole index, as ``index`` tells."""
    whole = re.search(r"^seconds +([\d.]+)\n +(.*)", said, re.MULTILINE)
    by_workers = re.findall(rf"{work.unit} by workers .*?([\d.]+) s", said)
    if not whole or bool(by_workers) != bool(n_workers):
        raise SystemExit(said)
    seconds = dict(stage.rsplit(" ", 1) for stage in whole[2].split(", "))
    alone = sum(float(seconds.get(stage, 0)) for stage in work.stages)
    return float(by_workers[-1]) if n_workers else alone, float(whole[1])


def text_file(folder: Path, n: int) -> None:
    """Write a file of about 2.6 KB, with a line of its own."""
    text = CORPUS[n % len(CORPUS)].read_text()
    (folder / f"{n:04}.md").write_text(f"{text[:2600]}\n\nNote {n}.\n")


def words(n: int, n_words: int) -> list[str]:
    """Return words of the corpus in an order that no other ``n`` has."""
    every = " ".join(path.read_text() for path in CORPUS).split()
    return random.Random(n).choices(every, k=n_words)


def mixed_file(folder: Path, n: int) -> None:
    """Write a file of 430 words, of which no chunk stands in another."""
    (folder / f"{n:04}.txt").write_text(" ".join(words(n, WORDS_OF_A_PAGE)))


def pdf(n: int, n_pages: int) -> bytes:
    """Return a PDF of pages with 430 words each, as text."""
    file = io.BytesIO()
    canvas = Canvas(file)
    for page in range(n_pages):
        of_page = words(1000 * n + page, WORDS_OF_A_PAGE)
        text = canvas.beginText(60, 780)
        for start in range(0, WORDS_OF_A_PAGE, 10):
            text.textLine(" ".join(of_page[start : start + 10]))
        canvas.drawText(text)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def pdf_file(folder: Path, n: int) -> None:
    """Write a PDF of 25 pages of text."""
    (folder / f"{n:04}.pdf").write_bytes(pdf(n, 25))


def scanned_file(folder: Path, n: int) -> None:
    """Write a PDF of one page that is a picture at 150 dots an inch."""
    page = pypdfium2.PdfDocument(pdf(n, 1))[0]
    picture = page.render(scale=150 / 72, grayscale=True).to_pil()
    picture.save(folder / f"{n:04}.pdf", resolution=150)


@dataclass(frozen=True)
class Work:
    """Work of a kind: what writes its ``n``th file, and how many there are, also in a batch.

    Workers make it in units, "batches" or "slices"; one machine in ``stages``.
    """

    write: Callable[[Path, int], None]
    files: int
    batch: int
    settings: Mapping[str, str] = field(default_factory=dict)
    unit: str = "batches"
    stages: tuple[str, ...] = ("documents", "chunks", "extractions")


WORKS = {
    "model": Work(text_file, 48, 6, {"PROFILE": "llm"}),
    "rule": Work(text_file, 480, 60),
    "pdf": Work(pdf_file, 8, 1),
    "ocr": Work(scanned_file, 16, 2, {"INPUT__OCR": "true"}),
    "embed": Work(
        mixed_file,
        100,
        100,
        {
            "EMBEDDINGS__EMBEDDER": "local",
            "EMBEDDINGS__METHODS": '["basic"]',
            "CHUNKS__SIZE": "15",
            "CHUNKS__OVERLAP": "0",
        },
        unit="slices",
        stages=("embeddings", "chunks_vectors"),
    ),
}


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
