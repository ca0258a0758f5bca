"""What `plan` says beside what is then spent: a first build, more documents, and nothing to do.

A strict stand-in plays the model (``tests/strict_server.py``); what was made is read from the
ledger of calls, so cached answers do not count.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from strict_server import StrictServer

from benchmarks.index_speed import podcast_files
from benchmarks.played_answers import played_answer
from graphrag_pipeline import Index, Settings
from graphrag_pipeline.llm.ledger import calls_since, last_position

CORPUS = Path(__file__).resolve().parents[1] / "examples" / "corpus"
_DOCUMENTS = 300
_ADDED = (*[0.001] * 8, 0.1)
"""One file more, eight times, for one file differs from another; then a tenth."""
_MADE = [
    pl.len().alias("calls"),
    pl.col("prompt_tokens", "completion_tokens").sum(),
    pl.col("cost").sum(),
]
FIGURES = ("calls", "prompt_tokens", "completion_tokens", "cost")


@dataclass(frozen=True)
class Planned:
    """A run as it was planned and as it was: figures of each stage, and their totals."""

    run: str
    planned: Mapping[str, Mapping[str, float]]
    made: Mapping[str, Mapping[str, float]]

    def ratio(self, figure: str) -> float:
        """What was planned by what was made, 1 where both are nothing."""
        planned, made = _total(self.planned, figure), _total(self.made, figure)
        return planned / made if made else (1.0 if not planned else float("inf"))


def planned_and_made(
    files: Sequence[Path], work: Path, added: Sequence[float] = (0.01, 0.1), **sections: Any
) -> list[Planned]:
    """Index files in several runs, each after a plan of it.

    The first run has all files but those that come later: ``added`` are shares of the first.
    The last has nothing to do.
    """
    steps = [max(1, round(share * len(files) / (1 + sum(added)))) for share in added]
    first = len(files) - sum(steps)
    folder = work / "documents"
    folder.mkdir()
    with StrictServer(played_answer) as server:
        given: dict[str, Any] = {"llm": {"base_url": server.base_url}} | sections
        settings = Settings(profile="llm", home=str(work / "home"), **given)
        runs, copied = [], 0
        for number in (first, *steps, 0):
            for file in files[copied : copied + number]:
                shutil.copy(file, folder)
            copied += number
            name = f"+{number}" if runs else f"first {number}"
            runs.append(_run(name, settings, folder))
    return runs


def _run(name: str, settings: Settings, folder: Path) -> Planned:
    index, position = Index(settings), last_position(settings.home_path)
    plan = index.plan(folder)
    planned = {stage.stage: {f: getattr(stage, f) or 0.0 for f in FIGURES} for stage in plan.stages}
    index.update(folder)
    calls = calls_since(settings.home_path, position)
    bought = calls.filter(~pl.col("cached"), pl.col("error").is_null())
    made = {row["stage"]: row for row in bought.group_by("stage").agg(*_MADE).to_dicts()}
    return Planned(name, planned, made)


def _total(stages: Mapping[str, Mapping[str, float]], figure: str) -> float:
    return sum(stage[figure] for stage in stages.values())


def describe(runs: Sequence[Planned]) -> str:
    """Return a table: planned/made and their ratio, for each stage and in total."""
    lines = []
    for run in runs:
        ratios = "  ".join(f"{figure} {run.ratio(figure):.2f}" for figure in FIGURES)
        lines.append(f"{run.run}: {ratios}")
        for stage in sorted({*run.planned, *run.made}):
            sides = [_figures(side.get(stage)) for side in (run.planned, run.made)]
            lines.append(f"    {stage:<18} planned {sides[0]}  made {sides[1]}")
    return "\n".join(lines)


def _figures(stage: Mapping[str, float] | None) -> str:
    calls, prompt, completion, cost = (stage[f] if stage else 0 for f in FIGURES)
    return f"{calls:6,.0f} calls {prompt:11,.0f} in {completion:9,.0f} out ${cost:.4f}"


def main(data: Path) -> None:
    """Print it for the sample corpus and for podcasts, with and without claims."""
    os.environ.setdefault("OPENAI_API_KEY", "none")
    with tempfile.TemporaryDirectory() as place:
        sample = sorted(file for file in CORPUS.rglob("*") if file.is_file())
        podcasts = podcast_files(data, Path(place) / "all")[:_DOCUMENTS]
        for name, files in (("sample corpus", sample), ("podcasts", podcasts)):
            for claims in (False, True):
                work = Path(place) / f"{name}-{claims}"
                work.mkdir()
                runs = planned_and_made(files, work, _ADDED, extraction={"claims": claims})
                print(f"\n{name}, claims {'on' if claims else 'off'}\n{describe(runs)}")
