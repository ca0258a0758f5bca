"""How long `retrieve()` takes by each method: on 600 podcast transcripts, and on all 1,669.

    python -m benchmarks.latency [data_dir] [--home HOME] [--methods a,b]

Each question of the corpus is asked once by each method, after one that is not counted: p50 and
p90 in milliseconds of wall time, p50 of CPU time (which other work on the machine hardly disturbs),
and the milliseconds of that first question, which loads what the method needs; at the end the peak
of memory. `python -m benchmarks.multiplied` makes a large index to measure with `--home`. No model
takes part.
"""

from __future__ import annotations

import argparse
import csv
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.index_speed import index_speed, podcast_files
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query import METHODS, QueryEngine

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SIZES = (600, 1669)
_OPTIONAL = {
    f"GRAPHRAG_{section}__{name}".upper(): "true"
    for section, names in {
        "embeddings": ("facts", "synonyms"),
        "hierarchies": ("raptor", "hirag", "attributed"),
    }.items()
    for name in names
}
_QUESTIONS = 40
_WHOLE_CORPUS = ("text_summary",)


@dataclass(frozen=True)
class Latency:
    """Milliseconds that a method takes for a question."""

    method: str
    p50: float
    p90: float
    cpu: float
    first: float


def podcast_questions(data_dir: Path) -> list[str]:
    """Read the questions of the podcast corpus."""
    with (data_dir / "podcast" / "questions.csv").open(encoding="utf-8-sig", newline="") as file:
        return [row["question_text"] for row in csv.DictReader(file)]


def latencies(home: Path, questions: Sequence[str], methods: Sequence[str]) -> Iterator[Latency]:
    """Yield what each method takes that can be asked of an index; the first question warms up."""
    with QueryEngine(home, settings=Settings(home=str(home))) as engine:
        for name in methods:
            try:
                first, _ = _spent(engine, questions[0], name)
            except InputError as error:
                print(f"{name}: {error}")
                continue
            spent = [_spent(engine, question, name) for question in questions[1:]]
            walls, cpus = zip(*spent, strict=True)
            p90 = statistics.quantiles(walls, n=10)[-1]
            yield Latency(name, statistics.median(walls), p90, statistics.median(cpus), first)


def _spent(engine: QueryEngine, question: str, method: str) -> tuple[float, float]:
    """Return milliseconds of wall and of CPU time that one retrieval takes."""
    wall, cpu = time.perf_counter(), time.process_time()
    engine.retrieve(question, method)
    return 1000 * (time.perf_counter() - wall), 1000 * (time.process_time() - cpu)


def _built(data_dir: Path, size: int, place: Path) -> Path:
    folder = place / f"documents{size}"
    folder.mkdir()
    for file in podcast_files(data_dir, place / "all")[:size]:
        shutil.copy(file, folder)
    index_speed(folder, place / f"home{size}", _OPTIONAL)
    return place / f"home{size}"


def _print_table(home: Path, questions: Sequence[str], methods: Sequence[str]) -> None:
    print(f"{'method':18}{'p50':>8}{'p90':>8}{'cpu':>8}{'first':>8}")
    for row in latencies(home, questions, methods):
        numbers = (row.p50, row.p90, row.cpu, row.first)
        print(f"{row.method:18}" + "".join(f"{number:8.1f}" for number in numbers), flush=True)
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each size, or for the index in one home."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data_dir", nargs="?", type=Path, default=DATA)
    parser.add_argument("--home", type=Path, help="measure this index, and build none")
    parser.add_argument("--methods", default=",".join(m for m in METHODS if m not in _WHOLE_CORPUS))
    options = parser.parse_args(arguments)
    questions = podcast_questions(options.data_dir)[:_QUESTIONS]
    methods = options.methods.split(",")
    if options.home:
        _print_table(options.home, questions, methods)
        return
    with tempfile.TemporaryDirectory() as place:
        for size in SIZES:
            home = _built(options.data_dir, size, Path(place))
            print(f"\n{size:,} transcripts")
            _print_table(home, questions, methods)


if __name__ == "__main__":
    main()
