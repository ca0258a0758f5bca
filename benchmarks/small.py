"""What small things cost: CPU seconds of whole processes, medians, on the sample corpus.

Run as ``python -m benchmarks.small``. The first run of each is not counted.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

CORPUS = Path(__file__).resolve().parents[1] / "examples" / "corpus"
QUESTION = "Who led the Sorrel expedition?"
TIMES = 5
_COMMAND = (sys.executable, "-W", "ignore", "-m", "graphrag_pipeline.cli")


def small_costs(times: int = TIMES) -> Mapping[str, float]:
    """Return the median CPU seconds of a run with nothing to do, and of a question."""
    with tempfile.TemporaryDirectory() as place:
        environment = {**os.environ, "GRAPHRAG_HOME": str(Path(place) / "home")}
        commands = {"index": ("index", str(CORPUS)), "query": ("query", QUESTION)}
        _cpu(commands["index"], environment)
        return {
            name: statistics.median(
                [_cpu(command, environment) for _ in range(times + 1)][1:],
            )
            for name, command in commands.items()
        }


def _cpu(command: Sequence[str], environment: Mapping[str, str]) -> float:
    before = _spent()
    subprocess.run([*_COMMAND, *command], env=environment, capture_output=True, check=True)
    return _spent() - before


def _spent() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print each median."""
    costs = small_costs()
    print(f"    a run with nothing to do  {costs['index']:6.2f} s CPU")
    print(f"    a question                {costs['query']:6.2f} s CPU")


if __name__ == "__main__":
    main()
