"""rouge-score in a process of its own.

It imports absl, whose log handler closes standard error when logging is set up anew, as Dagster
does at each run: all later tests of the process would fail.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

_SCRIPT = """
import json, sys
from rouge_score.rouge_scorer import RougeScorer
given = json.load(sys.stdin)
scorer = RougeScorer(given["types"], use_stemmer=False)
scores = [scorer.score_multi(references, said) for said, references in given["pairs"]]
json.dump([{name: list(one) for name, one in score.items()} for score in scores], sys.stdout)
"""


def rouge_scores(
    types: Sequence[str], pairs: Sequence[tuple[str, Sequence[str]]]
) -> list[dict[str, list[float]]]:
    """Return precision, recall and F1 by type for pairs of a text and its references, of which the
    best counts."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        input=json.dumps({"types": types, "pairs": pairs}),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout)
