"""A model that misbehaves in every known way at once: what is left once it behaves again.

An index is built in several runs while so many per cent of all answers and vectors are broken (see
``tests/troubles.py``), fewer each time, and none at last; it is compared with one that never saw
trouble. Every run has to end in recorded failures or in one clear line.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from strict_server import StrictServer
from troubles import Mixture

from benchmarks.played_answers import played_answer
from graphrag_pipeline import Index, Settings
from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_pipeline.core.home import Home

CORPUS = Path(__file__).resolve().parents[1] / "examples" / "corpus"
SHARES = (0.6, 0.4, 0.2, 0.0)
COMPARED = {
    "chunks": "SELECT id, text FROM chunks",
    "entity_mentions": "SELECT chunk_id, entity_id, title, type, description FROM entity_mentions",
    "relationship_mentions": """
        SELECT chunk_id, source_id, target_id, description FROM relationship_mentions""",
    "claims": "SELECT chunk_id, subject, object, type, status, description FROM claims",
    "entities": "SELECT id, title, type, degree, frequency FROM entities",
    "relationships": "SELECT id, source, target, weight FROM relationships",
    "entity_chunks": "SELECT entity_id, chunk_id FROM entity_chunks",
    "relationship_chunks": "SELECT relationship_id, chunk_id FROM relationship_chunks",
}


@dataclass(frozen=True)
class Run:
    """One run: the share of trouble, how it ended, what it met, and what it asked for twice."""

    share: float
    ending: str
    met: Mapping[str, int]
    calls: int
    failed_chunks: int
    seconds: float


def settings_for(server: StrictServer, home: Path, **sections: Any) -> Settings:
    """Settings by which all stages ask the model, quickly tried again."""
    llm = {
        "base_url": server.base_url,
        "retry_seconds": 0.005,
        "max_retries": 2,
        "concurrency": 8,
        "timeout_seconds": 20,
    }
    given: dict[str, Any] = {"extraction": {"claims": True}, "llm": llm} | sections
    return Settings(profile="llm", home=str(home), **given)


def build_through_trouble(
    folder: Path, work: Path, shares: Sequence[float] = SHARES, **sections: Any
) -> tuple[list[Run], list[str]]:
    """Return the runs, and the tables that differ from those of an undisturbed index."""
    with StrictServer(played_answer) as server:
        Index(settings_for(server, work / "calm", **sections)).update(folder)
    runs = []
    with StrictServer(played_answer) as server:
        settings = settings_for(server, work / "troubled", **sections)
        for number, share in enumerate(shares):
            mixture = Mixture(share, seed=number)
            server.misbehave(mixture)
            server.forget()
            runs.append(_run(settings, folder, server, mixture))
    return runs, _different(work / "calm", work / "troubled")


def _run(settings: Settings, folder: Path, server: StrictServer, mixture: Mixture) -> Run:
    began = time.perf_counter()
    try:
        Index(settings).update(folder)
        ending = "published"
    except GraphRAGError as error:
        ending = f"{type(error).__name__}: {error}"
    failed = _rows(settings.home_path, "SELECT count(*) FROM extractions WHERE status <> 'ok'")
    seconds = time.perf_counter() - began
    calls = len(server.requests)
    return Run(mixture.share, ending, mixture.met, calls, int(failed[0][0]), seconds)


def _different(calm: Path, troubled: Path) -> list[str]:
    return [
        name
        for name, sql in COMPARED.items()
        if sorted(_rows(calm, sql), key=repr) != sorted(_rows(troubled, sql), key=repr)
    ]


def _rows(home: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(Home(home).index), read_only=True) as con:
        return con.execute(sql).fetchall()


def main() -> None:
    """Print what became of each run on the sample corpus."""
    with tempfile.TemporaryDirectory() as work:
        runs, different = build_through_trouble(CORPUS, Path(work))
    for run in runs:
        print(f"{run.share:4.0%}  {run.calls:5} calls  {sum(run.met.values()):4} troubles of "
              f"{len(run.met):2} kinds  {run.failed_chunks:3} chunks failed  "
              f"{run.seconds:5.1f} s  {run.ending}")  # fmt: skip
    print("tables that differ from an undisturbed index:", ", ".join(different) or "none")
