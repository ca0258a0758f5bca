"""What reading costs: CPU seconds and peak memory, each in a fresh process.

Run as ``python -m benchmarks.reading read|stages FOLDER HOME``; prints one JSON object. ``read`` is
from files to documents in memory, ``stages`` the three stages of ingestion. Peak memory is that of
the process so far, with its libraries.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.index_speed import podcast_files

PAGES = 200
TEXT_BYTES = 33_000_000
ROWS = 1_000_000
_COUNTED = ("documents", "chunks", "entity_mentions", "relationship_mentions")


def web_pages(data: Path, target: Path, n: int = PAGES) -> None:
    """Write so many pages: those of the technical corpus again and again, each a little changed."""
    pages = sorted((data / "technical").rglob("*.html"))
    for number in range(n):
        page = pages[number % len(pages)]
        copy = number // len(pages)
        marked = page.read_bytes().replace(b"</body>", b"<p>Copy %d.</p></body>" % copy)
        (target / f"{page.parent.name}-{page.stem}-{copy}.html").write_bytes(marked)


def long_text(data: Path, target: Path, size: int = TEXT_BYTES) -> None:
    """Write one plain text of so many bytes: the podcast's transcripts, shuffled by lines."""
    with tempfile.TemporaryDirectory() as place:
        files = podcast_files(data, Path(place))
        lines = [line for file in files for line in file.read_text("utf-8").splitlines() if line]
    shuffled = random.Random(7)
    written = 0
    with (target / "long.txt").open("w", encoding="utf-8") as out:
        while written < size:
            shuffled.shuffle(lines)
            for line in lines:
                written += len(f"{line}\n\n".encode())
                out.write(f"{line}\n\n")
                if written >= size:
                    break


def many_rows(target: Path, n: int = ROWS) -> None:
    """Write a table of so many rows with two columns of one character each."""
    values = random.Random(7)
    rows = (f"{values.randrange(10)},{values.choice('abcdefgh')}\n" for _ in range(n))
    (target / "rows.csv").write_text("n,k\n" + "".join(rows))


def reading_costs(data: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield for each corpus what it costs to read it, and to ingest it.

    The table is only read: a million documents are for a quiet evening.
    """
    makers = {
        f"{PAGES} web pages": lambda target: web_pages(data, target),
        f"a text of {TEXT_BYTES / 1e6:g} MB": lambda target: long_text(data, target),
        f"a table of {ROWS:,} rows": many_rows,
    }
    for name, make in makers.items():
        with tempfile.TemporaryDirectory() as place:
            folder, home = Path(place) / "files", Path(place) / "home"
            folder.mkdir()
            make(folder)
            yield f"{name}: read", measured("read", folder, home)
            if make is not many_rows:
                yield f"{name}: ingested", measured("stages", folder, home)


def measured(what: str, folder: Path, home: Path) -> dict[str, Any]:
    """Read or ingest a folder in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.reading", what, str(folder), str(home)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def _read(folder: Path) -> dict[str, Any]:
    from graphrag_pipeline.ingest.reading import ReadingOptions, read_file

    options = ReadingOptions()
    read_file(Path("warm.html"), options, data=b"<p>Warm.")
    began = time.process_time()
    documents = sum(len(read_file(file, options).documents) for file in sorted(folder.iterdir()))
    return {"counts": {"documents": documents}, "cpu": time.process_time() - began, "stages": {}}


def _ingest(folder: Path, home: Path) -> dict[str, Any]:
    os.environ["GRAPHRAG_HOME"] = str(home)
    from graphrag_pipeline.core.settings import load_settings
    from graphrag_pipeline.ingest.stages import INGESTION
    from graphrag_pipeline.pipeline.stages import ingest
    from graphrag_pipeline.pipeline.updating import cut_batches
    from graphrag_pipeline.store.index_store import count_rows
    from graphrag_pipeline.store.workspace import Workspace

    workspace = Workspace(load_settings())
    spent: dict[str, dict[str, float]] = {}
    began = time.process_time()
    for key in cut_batches(workspace, folder):
        for name in INGESTION:
            cpu, wall = time.process_time(), time.perf_counter()
            ingest(workspace, name, key)
            stage = spent.setdefault(name, {"cpu": 0.0, "wall": 0.0, "peak_mb": 0.0})
            stage["cpu"] += time.process_time() - cpu
            stage["wall"] += time.perf_counter() - wall
            stage["peak_mb"] = _peak_mb()
    cpu = time.process_time() - began
    with workspace.store.read() as con:
        counts = {table: count_rows(con, f"staging.{table}") for table in _COUNTED}
    return {"counts": counts, "cpu": cpu, "stages": spent}


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def describe(name: str, cost: Mapping[str, Any]) -> str:
    """Return what one measurement found, with a line for each stage."""
    counts = ", ".join(f"{n:,} {counted}" for counted, n in cost["counts"].items())
    lines = [f"{name} ({counts}): {cost['cpu']:.2f} s CPU, {cost['peak_mb']:,.0f} MB"]
    for stage, spent in cost["stages"].items():
        peak = f" {spent['peak_mb']:7,.0f} MB" if "peak_mb" in spent else ""
        lines.append(f"    {stage:<13}{spent['cpu']:7.2f} s CPU{peak}")
    return "\n".join(lines)


def main(data: Path) -> None:
    """Print all measurements."""
    for name, cost in reading_costs(data):
        print(describe(name, cost), flush=True)


if __name__ == "__main__":
    task, given = sys.argv[1], Path(sys.argv[2])
    cost = _read(given) if task == "read" else _ingest(given, Path(sys.argv[3]))
    print(json.dumps({**cost, "peak_mb": _peak_mb()}))
