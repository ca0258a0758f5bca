"""What an index run by a model costs without the model: CPU, memory and time of the pipeline.

A server on loopback plays the model and answers at once; it runs in another process than the
pipeline, whose CPU alone is counted: interpreter, imports, Dagster and every stage.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.index_speed import index_speed, podcast_files

_DOCUMENTS = 600
_CONCURRENCY = 16
_DIMENSIONS = 1536


def model_index_cost(data_dir: Path, documents: int = _DOCUMENTS) -> dict[str, dict[str, Any]]:
    """Index podcast transcripts in the profile `llm`, then again unchanged.

    Returns for ``fresh`` and ``unchanged`` what :func:`index_speed` measures, and ``calls``: how
    many calls of each kind the server has counted.
    """
    from model_server import ModelServer

    from benchmarks.played_answers import played_answer

    with (
        tempfile.TemporaryDirectory() as place,
        ModelServer(played_answer, dimensions=_DIMENSIONS) as server,
    ):
        folder, home = Path(place) / "documents", Path(place) / "home"
        folder.mkdir()
        for file in podcast_files(data_dir, Path(place) / "all")[:documents]:
            shutil.copy(file, folder)
        found = {}
        for run in ("fresh", "unchanged"):
            measured = index_speed(folder, home, model_environment(server.base_url))
            found[run] = measured | {"calls": calls_by_kind(server)}
            server.forget()
    return found


def model_environment(base_url: str) -> Mapping[str, str]:
    """Return the environment of a run by a model played at an address."""
    return {
        "GRAPHRAG_PROFILE": "llm",
        "GRAPHRAG_LLM__BASE_URL": base_url,
        "GRAPHRAG_LLM__CONCURRENCY": str(_CONCURRENCY),
        "OPENAI_API_KEY": "none",
    }


def calls_by_kind(server: Any) -> dict[str, int]:
    """Return how many calls of each kind a played model has answered."""
    from llm_helpers import stage_of

    kinds = Counter(
        "embeddings" if request.endpoint == "embeddings" else stage_of(request.messages)
        for request in server.requests
    )
    return dict(kinds.most_common())


def describe(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the measurements as lines of text."""
    fresh, again = found["fresh"], found["unchanged"]
    calls, counts = sum(fresh["calls"].values()), fresh["counts"]
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in fresh["calls"].items())
    reports = sum(level["reports"] for level in fresh["levels"])
    beyond = fresh["cpu"] - again["cpu"]
    return (
        f"{', '.join(f'{n:,} {name}' for name, n in counts.items())}, {reports:,} reports\n"
        f"{calls:,} calls ({kinds}), {_CONCURRENCY} at a time\n"
        f"CPU {fresh['cpu']:.1f} s: {1000 * fresh['cpu'] / calls:.1f} ms per call, "
        f"{1000 * beyond / calls:.1f} ms beyond what an unchanged run takes; "
        f"{fresh['wall']:.1f} s, {fresh['peak_mb']:,.0f} MB memory\n"
        f"unchanged: {sum(again['calls'].values())} calls, {again['cpu']:.1f} s CPU, "
        f"{again['wall']:.1f} s"
    )
