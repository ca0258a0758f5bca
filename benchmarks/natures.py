"""How well methods without a model find gold documents of several natures, beside full text.

    python -m benchmarks natures --data FOLDER [--methods a,b] [--homes HOMES] [--record]

News told in several articles, claims about abstracts, Japanese passages and Python functions, and
the questions of several steps of MuSiQue: one index of each, with the settings as they are. Where
`bm25s` is installed (`pip install --group benchmarks`), it stands beside.

R@5 is the share of a question's gold documents among the first five, all@5 the share of questions
with all of them there, nDCG@10 that of the first ten: all of documents, not of chunks. Even and odd
questions, by their place in the file, are also shown apart: choose a setting on the even ones. What
lies between two methods has its 95 % interval, by bootstrap over the differences of each question.

What was recorded of the same questions is compared in the same way, and what has moved further than
chance makes the command fail. `--record` writes the record and the tables of
docs/how-to/compare.md. With `--homes` the indexes in that folder are asked, and made where they are
not there.
"""

from __future__ import annotations

import importlib.util
import json
import math
import re
import statistics
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.method_record import PAGE, interval_of
from benchmarks.methods import build, measured
from benchmarks.question_sets import Asked, QuestionSet, musique, nature
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.text import UNSPACED

RECORD = Path(__file__).with_name("natures.json")
BEGIN, END = "[//]: # (from benchmarks/natures.json)\n", "[//]: # (end of natures)\n"
OURS = ("bm25", "hybrid", "local", "basic", "ppr", "auto")
BESIDE = "bm25s"
BASELINE = "bm25"
_COLUMNS = ("R@5", "all@5", "nDCG@10", "even, odd", "R@5 beside `bm25`", "nDCG beside `bm25`")
_DEPTH = 10
_DECIMALS = 4
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
_LEAST_CHANGE = 0.0005
"""Means that differ by no more have not moved, however sure the difference is."""


@dataclass(frozen=True)
class Scores:
    """What a method found, from 0 to 1, by question."""

    recall_at_5: Sequence[float]
    ndcg_at_10: Sequence[float]

    @property
    def all_at_5(self) -> list[float]:
        """Return 1 for each question with all gold documents among the first five, else 0."""
        return [float(share == 1) for share in self.recall_at_5]

    def half(self, parity: int) -> Scores:
        """Return the scores of the even (0) or odd (1) questions."""
        return Scores(self.recall_at_5[parity::2], self.ndcg_at_10[parity::2])


Run: TypeAlias = dict[str, Scores]
"""By method."""
MEASURES = ("recall_at_5", "all_at_5", "ndcg_at_10")


def sets(data: Path) -> Iterator[QuestionSet]:
    """Yield the question sets that are in a folder of data."""
    for file in sorted((data / "natures").glob("*.json")):
        yield nature(data, file.stem)
    if (data / "musique").is_dir():
        yield musique(data)


def ndcg(asked: Asked, documents: Sequence[str], k: int = _DEPTH) -> float:
    """Return the normalised discounted cumulative gain of the first ``k`` documents.

    A gold document is worth 1 / log2(1 + its place), and the best order is worth 1. Source:
    Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, 2002.
    """
    worth = [1 / math.log2(1 + place) for place in range(1, k + 1)]
    gain = sum(w for key, w in zip(documents, worth, strict=False) if key in asked.gold)
    return gain / sum(worth[: len(asked.gold)])


def scored(asked: Sequence[Asked], documents: Sequence[Sequence[str]]) -> Scores:
    """Return the scores of the documents that a method found for each question, best first."""
    pairs = list(zip(asked, documents, strict=True))
    recalls = [len(one.gold & set(own[:5])) / len(one.gold) for one, own in pairs]
    gains = [ndcg(one, own) for one, own in pairs]
    return Scores(*([round(value, _DECIMALS) for value in values] for values in (recalls, gains)))


def scored_beside(asked: QuestionSet, folder: Path) -> Scores:
    """Return what bm25s finds of titles and texts in a folder, with Snowball's English stemmer.

    Runs of scripts without spaces are given to it as overlapping pairs of signs.
    """
    import bm25s
    import Stemmer

    rows = [
        {**json.loads(line), "uri": f"documents/{file.name}#row-{n}"}
        for file in sorted(folder.glob("*.jsonl"))
        for n, line in enumerate(file.read_text("utf-8").splitlines(), start=1)
    ]
    keys = np.array([asked.key(row) for row in rows])

    def tokens(texts: Sequence[str]) -> Any:
        stemmer = Stemmer.Stemmer("english")
        paired = [_UNSPACED_RUN.sub(_pairs, text) for text in texts]
        return bm25s.tokenize(paired, stemmer=stemmer, show_progress=False)

    index = bm25s.BM25()
    index.index(tokens([f"{row['title']}\n{row['text']}" for row in rows]), show_progress=False)
    questions = tokens([one.question for one in asked.questions])
    places, _ = index.retrieve(questions, k=_DEPTH, show_progress=False)
    return scored(asked.questions, [keys[row].tolist() for row in places])


def _pairs(run: re.Match[str]) -> str:
    signs = run.group()
    return f" {' '.join(signs[n : n + 2] for n in range(max(1, len(signs) - 1)))} "


def measure(asked: QuestionSet, home: Path, specs: Sequence[str]) -> Run:
    """Return the scores of methods on a set, whose index is made where it is not there."""
    if home.is_dir():
        settings = Settings.model_validate({"home": str(home)})
    else:
        settings = build(asked, home, {}, structures={})
    run = {
        spec: scored(asked.questions, [own.documents for own in found])
        for spec, found in measured(home, settings, asked, specs)
    }
    if importlib.util.find_spec(BESIDE) and importlib.util.find_spec("Stemmer"):
        run[BESIDE] = scored_beside(asked, home / "documents")
    return run


def difference(one: Sequence[float], other: Sequence[float]) -> tuple[float, float, float]:
    """Return by how much the first exceeds the second, question by question, and its interval."""
    change = np.subtract(one, other)
    return float(change.mean()), *interval_of(change.tolist())


def read_record(path: Path = RECORD) -> dict[str, Run]:
    """Return the runs recorded, by the name of the set."""
    if not path.is_file():
        return {}
    rows = json.loads(path.read_text("utf-8"))
    return {name: {m: Scores(**row) for m, row in run.items()} for name, run in rows.items()}


def write_record(runs: Mapping[str, Run], path: Path = RECORD, page: Path = PAGE) -> None:
    """Record methods in place of those of the same names, and write the tables of the page."""
    recorded = read_record(path)
    every = {**recorded, **{name: recorded.get(name, {}) | run for name, run in runs.items()}}
    lines = [
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f"{json.dumps(m)}: {json.dumps(asdict(row))}" for m, row in run.items())
        + "\n}"
        for name, run in every.items()
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    page.write_text(f"{before}{shown(every)}{rest.partition(END)[2]}", "utf-8")


def moved(runs: Mapping[str, Run], recorded: Mapping[str, Run]) -> list[str]:
    """Say what differs from the record by more than chance: a line for each number."""
    lines: list[str] = []
    for name, run in runs.items():
        for method, scores in run.items():
            before = recorded.get(name, {}).get(method)
            if before is None or len(before.recall_at_5) != len(scores.recall_at_5):
                lines.append(f"{name}: {method} is not in the record: write it with --record")
            else:
                lines += [f"{name}: {line}" for line in _moved(method, scores, before)]
    return lines


def _moved(method: str, scores: Scores, before: Scores) -> Iterator[str]:
    for measure_name in MEASURES:
        now, was = getattr(scores, measure_name), getattr(before, measure_name)
        change, low, high = difference(now, was)
        if (low > 0 or high < 0) and abs(change) > _LEAST_CHANGE:
            yield (
                f"{measure_name} of {method} was {100 * statistics.fmean(was):.1f} and is "
                f"{100 * statistics.fmean(now):.1f} ({between(change, low, high)})"
            )


def between(change: float, low: float, high: float) -> str:
    """Return a difference in points, with its interval."""
    return f"{100 * change:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"


def shown(recorded: Mapping[str, Run]) -> str:
    """Return the table as Markdown, between the marks that stand around it."""
    lines = [
        f"\n| questions | method | {' | '.join(_COLUMNS)} |",
        "| --- | --- | ---: | ---: | ---: | --- | --- | --- |",
    ]
    for name, run in recorded.items():
        lines += [f"| {name} | `{method}` | {_cells(run, method)} |" for method in run]
    return f"{BEGIN}{chr(10).join(lines)}\n\n{END}"


def _cells(run: Run, method: str) -> str:
    cells = " | ".join(numbers(run[method]))
    halves = ", ".join(
        f"{100 * statistics.fmean(run[method].half(n).ndcg_at_10):.1f}" for n in (0, 1)
    )
    if method == BASELINE or BASELINE not in run:
        return f"{cells} | {halves} | | "
    differences = (
        between(*difference(getattr(run[method], each), getattr(run[BASELINE], each)))
        for each in ("recall_at_5", "ndcg_at_10")
    )
    return f"{cells} | {halves} | {' | '.join(differences)}"


def numbers(scores: Scores) -> list[str]:
    """Return the means of :data:`MEASURES`, in percent."""
    return [f"{100 * statistics.fmean(getattr(scores, each)):.1f}" for each in MEASURES]


def add_options(parser: ArgumentParser) -> None:
    """Add what this part of the benchmarks takes; ``methods`` and ``record`` are shared."""
    group = parser.add_argument_group("natures")
    group.add_argument(
        "--homes", type=Path, help="a folder of indexes by set: asked, or made there"
    )


def main(options: Namespace) -> bool:
    """Print a table for each set; return whether nothing has moved."""
    specs = options.methods.split(",") if options.methods else OURS
    runs: dict[str, Run] = {}
    with tempfile.TemporaryDirectory() as place:
        for asked in sets(options.data):
            home = (options.homes or Path(place)) / asked.name
            runs[asked.name] = measure(asked, home, specs)
            print_run(asked.name, runs[asked.name])
    if options.record:
        write_record(runs)
        return True
    lines = moved(runs, read_record())
    print("\n".join(lines) or "Nothing has moved from the record.")
    return not lines


def print_run(name: str, run: Run) -> None:
    """Print the scores of a set: of all questions, of the even and of the odd ones."""
    print(
        f"\n{name}\n{'method':24}{'R@5':>6}{'all@5':>7}{'nDCG':>7}   even{'':17}odd{'':18}to bm25"
    )
    for method, scores in run.items():
        parts = [scores, scores.half(0), scores.half(1)]
        cells = "  ".join("".join(f"{n:>7}" for n in numbers(part)) for part in parts)
        if method != BASELINE and BASELINE in run:
            pairs = ((getattr(scores, m), getattr(run[BASELINE], m)) for m in MEASURES[::2])
            cells += "   " + ", ".join(between(*difference(*pair)) for pair in pairs)
        print(f"{method:22}{cells}", flush=True)
