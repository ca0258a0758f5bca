"""What small things cost: CPU seconds, medians, on the sample corpus.

Run as ``python -m benchmarks.small``. The first run of each is not counted.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

CORPUS = Path(__file__).resolve().parents[1] / "examples" / "corpus"
TWO_FILES = ("institute/research-brief-eelgrass.md", "press/soft-stone-how-we-reported-it.md")
QUESTION = "Who led the Sorrel expedition?"
TIMES = 5
_PYTHON = (sys.executable, "-W", "ignore")
_COMMAND = (*_PYTHON, "-m", "graphrag_pipeline.cli")
_UPDATE = """
import sys, time
from graphrag_pipeline import Index, Settings
index = Index(sys.argv[1], Settings())
began = time.process_time()
index.update(sys.argv[2])
print(time.process_time() - began)
"""
# What is imported is compiled once, in the run that is not counted.
_NOT_INHERITED = ("GRAPHRAG_", "PYTHONDONTWRITEBYTECODE")


def small_costs(times: int = TIMES) -> Mapping[str, float]:
    """Return the median CPU seconds of each small thing, by what it is.

    Commands are whole processes; a build is the call of ``Index.update`` in a new process, with
    what that imports.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(_NOT_INHERITED)}
        environment = {**inherited, "GRAPHRAG_HOME": str(place / "home")}
        _cpu(environment, "index", str(CORPUS))
        return {
            "a run with nothing to do": _median(
                times, lambda: _cpu(environment, "index", str(CORPUS))
            ),
            "a question": _median(times, lambda: _cpu(environment, "query", QUESTION)),
            "a build of two files": _median(times, lambda: _cpu_of_build(place, inherited)),
        }


def _median(times: int, measure: Callable[[], float]) -> float:
    return statistics.median([measure() for _ in range(times + 1)][1:])


def _cpu(environment: Mapping[str, str], *command: str) -> float:
    before = _spent()
    subprocess.run([*_COMMAND, *command], env=environment, capture_output=True, check=True)
    return _spent() - before


def _cpu_of_build(place: Path, environment: Mapping[str, str]) -> float:
    documents, home = place / "two", place / "new"
    documents.mkdir(exist_ok=True)
    for name in TWO_FILES:
        shutil.copy(CORPUS / name, documents)
    shutil.rmtree(home, ignore_errors=True)
    program = [*_PYTHON, "-c", _UPDATE, str(home), str(documents)]
    done = subprocess.run(program, env=environment, capture_output=True, check=True, text=True)
    return float(done.stdout)


def _spent() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print each median."""
    for name, seconds in small_costs().items():
        print(f"    {name:<26}{seconds:6.2f} s CPU")


if __name__ == "__main__":
    main()
