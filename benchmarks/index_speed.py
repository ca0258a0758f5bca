"""How long indexing takes: wall and CPU seconds of each stage, and peak memory, in a fresh process.

Run as ``python -m benchmarks.index_speed FOLDER HOME``; prints one JSON object.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import subprocess
import sys
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"


def podcast_files(data_dir: Path, target: Path) -> list[Path]:
    """Unpack the podcast corpus; return its files in a fixed order."""
    with zipfile.ZipFile(data_dir / "podcast" / "transcripts.zip") as archive:
        archive.extractall(target)
    return sorted(target.rglob("*.txt"))


def index_speed(
    folder: Path, home: Path, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Index a folder in a process of its own, under some settings, and measure it.

    CPU seconds are those of the process and all that it starts, from its first instruction. What it
    imports was compiled before, as an installer does.
    """
    inherited = {name: value for name, value in os.environ.items() if name != _NO_BYTECODE}
    _compile(frozenset(inherited.items()))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.index_speed", str(folder), str(home)],
        capture_output=True,
        text=True,
        check=False,
        env={**inherited, **(environment or {})},
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


@functools.cache
def _compile(environment: frozenset[tuple[str, str]]) -> None:
    what = "import benchmarks.index_speed, graphrag_pipeline.orchestration.runs, lancedb"
    subprocess.run([sys.executable, "-W", "ignore", "-c", what], check=True, env=dict(environment))


def _measure(folder: Path, home: Path) -> dict[str, Any]:
    os.environ["GRAPHRAG_HOME"] = str(home)
    began = time.perf_counter()
    from graphrag_pipeline.cli.app import set_up_memory

    set_up_memory()
    from graphrag_pipeline.core.progress import listening
    from graphrag_pipeline.core.settings import load_settings
    from graphrag_pipeline.planning.pending import look_at, nothing_to_do
    from graphrag_pipeline.planning.status import summarise
    from graphrag_pipeline.store.workspace import Workspace

    workspace = Workspace(load_settings())
    times = _Times()
    # As `graphrag-pipeline index` does: Dagster is imported where there is something to do.
    if not nothing_to_do(workspace, look_at(workspace, folder).changes):
        from graphrag_pipeline.orchestration.runs import index_folder

        with listening(times.hear):
            index_folder(workspace, folder)
    ended = time.perf_counter()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    summary = summarise(workspace)
    return {
        "stages": times.stages,
        "wall": ended - began,
        "cpu": sum(used.ru_utime + used.ru_stime for used in (usage, children)),
        "peak_mb": usage.ru_maxrss / 1024,
        "disk_mb": _bytes_under(home) / 1e6,
        "counts": {n: summary[n] for n in ("documents", "chunks", "entities", "relationships")},
        "levels": summary["levels"],
    }


def _bytes_under(folder: Path) -> int:
    """Return the bytes of all files in a folder; one with several names counts once."""
    stats = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return sum({(stat.st_dev, stat.st_ino): stat.st_size for stat in stats}.values())


class _Times:
    """Wall and CPU seconds between the two words of each part of a stage.

    A part's words are ``done`` and ``done + 1`` of one total, the first part's 0 and 1. All other
    words count answered calls, and are not heard.
    """

    def __init__(self) -> None:
        self.stages: dict[str, dict[str, float]] = {}
        self._open: dict[str, tuple[int, int, float, float]] = {}

    def hear(self, stage: str, done: int, total: int) -> None:
        if stage not in self._open:
            if done == 0 or stage in self.stages:
                self._open[stage] = (done + 1, total, time.perf_counter(), time.process_time())
        elif self._open[stage][:2] == (done, total):
            *_, wall, cpu = self._open.pop(stage)
            spent = self.stages.setdefault(stage, {"wall": 0.0, "cpu": 0.0})
            spent["wall"] += time.perf_counter() - wall
            spent["cpu"] += time.process_time() - cpu


if __name__ == "__main__":
    print(json.dumps(_measure(Path(sys.argv[1]), Path(sys.argv[2]))))
