"""Whether titles and covering lose anything on documents whose titles say nothing.

Recall among the first five, in percent, with its 95 % interval by bootstrap over questions, of
`bm25` and of `ppr`, with titles, with covering, with both and with neither; and how far each lies
from `ppr` with neither, question by question. On podcast transcripts named by numbers (questions
made of words of one sentence), on the sample corpus with its own questions, and on chat logs made
by seed, in files named by their time. No question played a part in how these methods were made.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.method_record import interval_of
from benchmarks.methods import build, measured, recall
from benchmarks.question_sets import QuestionSet, chat_logs, podcasts, sample

PLAIN = "ppr:titles=false:covering=false:damping=0.5"
CONDITIONS = {
    "bm25": "bm25",
    "ppr, neither": PLAIN,
    "ppr, titles": "ppr:covering=false",
    "ppr, covering": "ppr:titles=false:damping=0.5",
    "ppr": "ppr",
}


def untitled(asked: QuestionSet) -> dict[str, Sequence[float]]:
    """Return the recall of each question among the first five, by condition."""
    with tempfile.TemporaryDirectory() as place:
        home = Path(place) / "home"
        settings = build(asked, home, {}, structures={})
        by_spec = dict(measured(home, settings, asked, list(CONDITIONS.values())))
    return {name: recall(asked.questions, by_spec[spec], 5) for name, spec in CONDITIONS.items()}


def main(data: Path) -> None:
    """Print a table for each corpus."""
    for asked in (podcasts(data), sample(), chat_logs()):
        print(f"\n{asked.name}, {len(asked.questions)} questions")
        found = untitled(asked)
        for name, shares in found.items():
            low, high = interval_of(shares)
            line = (
                f"{name:14}{100 * statistics.fmean(shares):6.1f} ({100 * low:.0f}-{100 * high:.0f})"
            )
            change = np.subtract(shares, found["ppr, neither"])
            low, high = interval_of(change.tolist())
            print(f"{line:32}{100 * change.mean():+6.1f} ({100 * low:+.1f} to {100 * high:+.1f})")
