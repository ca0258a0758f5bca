"""Bringing an index up to date, and reading what is published, here or in another process."""

from __future__ import annotations

import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from conftest import Engine
from graphrag_pipeline.core.settings import EmbeddingSettings, Settings
from graphrag_pipeline.graph.descriptions import update_graph
from graphrag_pipeline.graph.resolution.resolving import resolve_entities
from graphrag_pipeline.ingest.stages import INGESTION
from graphrag_pipeline.pipeline.stages import ingest
from graphrag_pipeline.planning.pending import pending_batches
from graphrag_pipeline.query import open_release, retrieve
from graphrag_pipeline.query.release import Release
from graphrag_pipeline.releases.publishing import publish
from graphrag_pipeline.reports.levels import update_reports
from graphrag_pipeline.reports.model_writer import report_writer
from graphrag_pipeline.store.spending import ledger_position, spending
from graphrag_pipeline.store.vector_store import VectorSnapshot
from graphrag_pipeline.structures.updating import embed_table
from graphrag_pipeline.structures.vector_tables import TABLES

STOP = "stop"
SMALL = Settings(embeddings=EmbeddingSettings(dimensions=64))
STAGES = (
    "documents",
    "chunks",
    "extractions",
    "graph",
    "communities",
    "reports",
    "vectors",
    "publish",
)
_TRUE_COUNTS = {
    "n_documents": "SELECT count(*) AS n FROM documents",
    "n_chunks": "SELECT count(*) AS n FROM chunks",
    "n_entities": "SELECT count(*) AS n FROM entities",
    "n_relationships": "SELECT count(*) AS n FROM relationships",
    "n_communities": "SELECT count(*) AS n FROM communities",
    "n_reports": "SELECT count(*) AS n FROM community_reports",
}
_DANGLING = """
SELECT (SELECT count(*) FROM entity_chunks ANTI JOIN chunks ON chunk_id = chunks.id)
     + (SELECT count(*) FROM relationship_chunks ANTI JOIN chunks ON chunk_id = chunks.id)
     + (SELECT count(*) FROM chunks ANTI JOIN documents ON document_id = documents.id)
     + (SELECT count(*) FROM community_members ANTI JOIN entities ON entity_id = entities.id)
     + (SELECT count(*) FROM community_reports r
        ANTI JOIN communities c ON r.community_id = c.id) AS n
"""


def update(engine: Engine, say: Callable[[str], None] = lambda stage: None) -> str:
    """Bring an index up to date with its inbox and publish it, as a run does."""
    workspace = engine.workspace
    with workspace.store.session():
        update_tables(engine, say)
        with spending(workspace, ledger_position(workspace.settings)):
            say("vectors")
            for table in TABLES:
                embed_table(workspace, table)
        say("publish")
        return publish(workspace).id


def update_tables(engine: Engine, say: Callable[[str], None] = lambda stage: None) -> None:
    """Bring the tables of an index up to date with its inbox; vectors and release stay behind."""
    workspace, settings = engine.workspace, engine.settings
    engine.cut()
    spent = spending(workspace, ledger_position(workspace.settings))
    with workspace.store.session(), spent:
        keys = pending_batches(workspace)
        for stage in INGESTION:
            say(stage)
            for key in keys:
                ingest(workspace, stage, key)
        say("graph")
        resolve_entities(workspace.store, workspace.settings)
        update_graph(workspace.store, workspace.settings)
        say("communities")
        engine.cluster()
        say("reports")
        writer = report_writer(settings)
        update_reports(engine.store, settings.reports, 0, and_deeper=True, writer=writer)


def by_model(folder: Path, base_url: str, **given: Any) -> Engine:
    """An index in a folder of its own, in the profile `llm`."""
    llm: Any = {"base_url": base_url, "concurrency": 4, **given.pop("llm", {})}
    return Engine(folder, Settings(home=str(folder / ".graphrag"), profile="llm", llm=llm, **given))


def update_by_model(folder: Path, base_url: str, given: dict[str, Any]) -> None:
    """Bring an index up to date with what a model says, in a process of its own."""
    update(by_model(folder, base_url, **given))


def faults(release: Release) -> list[str]:
    """Return what does not belong together in a release."""
    found = []
    for name, query in _TRUE_COUNTS.items():
        if release.rows(query)[0]["n"] != release.facts.counts[name]:
            found.append(f"{name} is not the number of rows")
    if release.rows(_DANGLING)[0]["n"]:
        found.append("rows that refer to none")
    vectors = VectorSnapshot(release.home / "vectors", release.facts.vector_versions)
    for table in (each.name for each in TABLES):
        ids = [row["id"] for row in release.rows(f"SELECT id FROM {table}")]
        if len(ids) != vectors.count(table) or set(vectors.vectors(table, ids)) != set(ids):
            found.append(f"vectors of {table} are not those of its rows")
    return found


def read_once(home: Path, settings: Settings) -> dict[str, Any]:
    """Read the published release by SQL, by vector and by full text."""
    with open_release(home, settings=settings) as release:
        seen = {"release": release.facts.id, "faults": faults(release)}
    for method in ("basic", "bm25"):
        found = retrieve("Who built the Orlen Dam?", method, home=home, settings=settings)
        if not found.records:
            seen["faults"].append(f"{method} found nothing in {found.release}")
    return seen


def update_and_tell(folder: Path, told: Connection) -> None:
    """Bring a small index up to date; tell each stage as it begins, and at last the release."""
    engine = Engine(folder, SMALL)
    told.send(("release", update(engine, lambda stage: told.send(("stage", stage)))))


def read_and_tell(folder: Path, told: Connection) -> None:
    """Read a small index again and again until it is to stop, and tell what was seen each time."""
    engine = Engine(folder, SMALL)
    is_last = False
    while not is_last:
        is_last = (folder / STOP).exists()
        told.send(read_once(engine.log.home, engine.settings))
        time.sleep(0.4)
