"""What a corpus that grows by one per cent costs: model calls, reports, and the communities.

The model is played by a server on loopback. Both measurements run the whole pipeline, through
Dagster, in processes of their own.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.index_speed import index_speed, podcast_files
from benchmarks.model_index import calls_by_kind, model_environment

_STEPS = 20
_STEP_DOCUMENTS = 500


def growing_by_one_percent(data_dir: Path, documents: int | None = None) -> dict[str, Any]:
    """Index podcast transcripts but one per cent of them, then all, then all again.

    Returns for ``full``, ``more`` and ``unchanged`` what :func:`index_speed` measures and
    ``calls``, the calls of each kind that the server has counted; ``reports`` is how many there
    are at the end and ``written`` how many of them the second run wrote.
    """
    from model_server import ModelServer

    from benchmarks.played_answers import played_answer

    with tempfile.TemporaryDirectory() as place, ModelServer(played_answer) as server:
        files = _spread(podcast_files(data_dir, Path(place) / "all"))[:documents]
        folder, home = Path(place) / "documents", Path(place) / "home"
        folder.mkdir()
        held_back = max(1, len(files) // 100)
        found: dict[str, Any] = {}
        for run, more in (
            ("full", files[:-held_back]),
            ("more", files[-held_back:]),
            ("unchanged", []),
        ):
            for file in more:
                shutil.copy(file, folder)
            measured = index_speed(folder, home, model_environment(server.base_url))
            found[run] = {**measured, "calls": calls_by_kind(server), "documents": len(more)}
            server.forget()
        return found


def twenty_steps(data_dir: Path) -> list[dict[str, Any]]:
    """Let a corpus grow by one per cent of its final size twenty times.

    Returns, for each run, how communities were brought up to date, their modularity, that of a
    fresh clustering of the same graph, and the reports written of how many.
    """
    from model_server import ModelServer

    from benchmarks.played_answers import played_answer

    with tempfile.TemporaryDirectory() as place, ModelServer(played_answer) as server:
        files = _spread(podcast_files(data_dir, Path(place) / "all"))[:_STEP_DOCUMENTS]
        folder, home = Path(place) / "documents", Path(place) / "home"
        folder.mkdir()
        step = len(files) // 100
        first = len(files) - _STEPS * step
        starts = [0, *range(first, len(files), step)]
        steps = []
        for start, end in zip(starts, [*starts[1:], len(files)], strict=True):
            for file in files[start:end]:
                shutil.copy(file, folder)
            index_speed(folder, home, model_environment(server.base_url))
            calls = calls_by_kind(server)
            server.forget()
            steps.append({**_communities(home), "written": calls.get("report", 0)})
        return steps


def _spread(files: Sequence[Path]) -> list[Path]:
    """Return the files in an order that mixes the episodes, always the same."""
    return sorted(files, key=lambda file: file.name[::-1])


def _communities(home: Path) -> dict[str, Any]:
    from graphrag_pipeline.core.settings import CommunitySettings
    from graphrag_pipeline.graph.clustering import Graph, leiden

    settings = CommunitySettings()
    with duckdb.connect(str(home / "published.duckdb"), read_only=True) as con:
        how, reached = con.execute(
            "SELECT how, modularity FROM community_updates ORDER BY updated_at DESC LIMIT 1"
        ).fetchall()[0]
        (reports,) = con.execute("SELECT count(*) FROM community_reports").fetchall()[0]
        edges = con.execute("SELECT source_id, target_id, weight FROM relationships").fetchall()
    fresh, _ = leiden(Graph.of((), edges), settings.resolution, settings.seed)
    return {"how": how, "modularity": reached, "fresh": fresh, "reports": reports}


def describe_growth(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what one per cent more cost, as lines of text."""
    lines = []
    full = sum(found["full"]["calls"].values())
    for run, measured in found.items():
        calls = sum(measured["calls"].values())
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in measured["calls"].items()) or "none"
        lines.append(
            f"{run:<10}{measured['documents']:>6,} documents: {calls:,} calls "
            f"({calls / full:.2%}): {kinds}; {measured['wall']:.1f} s, {measured['cpu']:.1f} s CPU"
        )
    reports = sum(level["reports"] for level in found["more"]["levels"])
    written = found["more"]["calls"].get("report", 0)
    lines.append(f"reports written anew: {written:,} of {reports:,} ({written / reports:.2%})")
    return "\n".join(lines)


def describe_steps(steps: Sequence[Mapping[str, Any]]) -> str:
    """Return the twenty steps as lines of text."""
    lines = [
        f"{number:>4} {step['how']:<10} modularity {step['modularity']:.4f} "
        f"({step['modularity'] / step['fresh'] - 1:+.2%} of a fresh one), "
        f"reports written {step['written']:,} of {step['reports']:,}"
        for number, step in enumerate(steps)
    ]
    return "\n".join(lines)
