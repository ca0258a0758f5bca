"""How long indexing takes: wall and CPU seconds of each stage, and peak memory, in a fresh process.

Run as ``python -m benchmarks.index_speed FOLDER HOME``; prints one JSON object.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any


def podcast_files(data_dir: Path, target: Path) -> list[Path]:
    """Unpack the podcast corpus; return its files in a fixed order."""
    with zipfile.ZipFile(data_dir / "podcast" / "transcripts.zip") as archive:
        archive.extractall(target)
    return sorted(target.rglob("*.txt"))


def index_speed(folder: Path) -> dict[str, Any]:
    """Index a folder in a process of its own, into an empty home, and measure it."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "benchmarks.index_speed", str(folder), home],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def _measure(folder: Path, home: Path) -> dict[str, Any]:
    os.environ["GRAPHRAG_HOME"] = str(home)
    began = time.perf_counter()
    from graphrag_pipeline.config import load_settings
    from graphrag_pipeline.progress import listening
    from graphrag_pipeline.runs import index_folder
    from graphrag_pipeline.summary import summarise

    settings = load_settings()
    times = _Times()
    with listening(times.hear):
        index_folder(settings, folder)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    summary = summarise(settings)
    return {
        "stages": times.stages,
        "wall": time.perf_counter() - began,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
        "disk_mb": sum(p.stat().st_size for p in home.rglob("*") if p.is_file()) / 1e6,
        "counts": {n: summary[n] for n in ("documents", "chunks", "entities", "relationships")},
        "levels": summary["levels"],
    }


class _Times:
    """Wall and CPU seconds between the words of each stage."""

    def __init__(self) -> None:
        self.stages: dict[str, dict[str, float]] = {}
        self._since: dict[str, tuple[float, float]] = {}

    def hear(self, stage: str, done: int, total: int) -> None:
        now = (time.perf_counter(), time.process_time())
        spent = self.stages.setdefault(stage, {"wall": 0.0, "cpu": 0.0})
        if stage in self._since:
            spent["wall"] += now[0] - self._since[stage][0]
            spent["cpu"] += now[1] - self._since[stage][1]
            del self._since[stage]
        else:
            self._since[stage] = now


if __name__ == "__main__":
    print(json.dumps(_measure(Path(sys.argv[1]), Path(sys.argv[2]))))
