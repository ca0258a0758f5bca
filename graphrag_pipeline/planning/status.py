"""The state of an index at a glance: what is in it, pending, quarantined and published."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import duckdb

from graphrag_pipeline.core.home import exposed
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.graph.resolution.resolving import absent_titles
from graphrag_pipeline.ingest.reading.files import is_of_other_kind
from graphrag_pipeline.planning.estimate_log import compare_estimate
from graphrag_pipeline.planning.pending import pending_batches
from graphrag_pipeline.planning.rereading import reasons_by_batch
from graphrag_pipeline.releases.kept_releases import rolled_back_from
from graphrag_pipeline.releases.older_releases import release_file
from graphrag_pipeline.releases.publishing import published_release, refresh_needed
from graphrag_pipeline.releases.quality import model_quality
from graphrag_pipeline.releases.silent_languages import SILENT_LANGUAGES
from graphrag_pipeline.store.batches import BatchLog
from graphrag_pipeline.store.index_store import connect_published
from graphrag_pipeline.store.sources import ACTIONS
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import all_structures, counts, wanted_structures

_COUNTED = ("documents", "chunks", "entities", "relationships", "claims")
_COUNTS = "SELECT " + ", ".join(f"(SELECT count(*) FROM {t}) AS {t}" for t in _COUNTED)
_LEVELS = """
SELECT c.level, count(*) AS communities, count(r.id) AS reports, max(c.size) AS largest
FROM communities c LEFT JOIN community_reports r ON r.community_id = c.id
GROUP BY c.level ORDER BY c.level
"""
_QUARANTINED = """
SELECT q.uri, q.reason, q.uri <> newest.uri AS is_record, q.batch FROM quarantine q
JOIN (SELECT uri, max(batch) AS batch FROM batch_sources WHERE status <> 'superseded' GROUP BY uri)
    newest ON newest.batch = q.batch
    AND (q.uri = newest.uri OR starts_with(q.uri, newest.uri || '#'))
ORDER BY q.uri
"""
_CALLS = """
SELECT {by}, count(*) FILTER (NOT cached) AS calls, count(*) FILTER (cached) AS cached,
       count(*) FILTER (error IS NOT NULL) AS failed,
       coalesce(sum(prompt_tokens + completion_tokens) FILTER (NOT cached), 0)::BIGINT AS tokens,
       CASE WHEN bool_and(cost IS NOT NULL) THEN sum(cost) END AS cost
FROM llm_calls GROUP BY {by} ORDER BY min(called_at)
"""
_FAILED = """
SELECT (SELECT count(*) FROM extractions WHERE status = 'failed') AS failed_chunks,
       (SELECT count(*) FROM extractions WHERE status = 'cut') AS cut_chunks,
       (SELECT count(*) FROM extractions WHERE status = 'outdated') AS outdated_chunks,
       (SELECT count(*) FROM report_failures) AS failed_reports,
       (SELECT count(*) FROM staging.documents) AS staged_documents
"""
_LISTED = (
    "levels",
    "structures",
    "quarantined",
    "silent_languages",
    "pending_batches",
    "pending_because",
    "model_calls",
    "models",
    "left_out",
)
_RELEASE = """
SELECT id, strftime(created_at, '%Y-%m-%dT%H:%M:%SZ') AS created_at, embedder, modularity,
       n_documents AS documents, n_chunks AS chunks, n_entities AS entities,
       n_relationships AS relationships
FROM releases WHERE id = $id
"""


def summarise(workspace: Workspace) -> dict[str, Any]:
    """Return plain values: counts, levels, pending batches, quarantined files, last release.

    ``model_calls`` are what was spent by stage, ``models`` the same by model. ``structures`` are
    the optional ones that there are, by table, with their rows. ``silent_languages`` are those in
    which rules found nothing. ``warnings`` are sentences on what others than the settings say may
    read. ``left_out`` is what the last scan of each folder left out, by rule. ``follows`` is the
    url of an index that is made elsewhere. Of so many ``removed_files`` something is left until a
    purge.
    """
    if not workspace.exists:
        return _not_indexed(workspace)
    with workspace.store.session():
        return _indexed(workspace)


def _indexed(workspace: Workspace) -> dict[str, Any]:
    home, settings = workspace.home, workspace.settings
    current = published_release(home)
    pending = pending_batches(workspace)
    with workspace.store.read() as con:
        numbers = _rows(con, _COUNTS)[0]
        levels = _rows(con, _LEVELS)
        structures = _structures(con, settings)
        quarantined = [
            {**row, "is_other_kind": is_of_other_kind(row["reason"])}
            for row in _rows(con, _QUARANTINED)
        ]
        silent = _rows(con, SILENT_LANGUAGES)
        calls, models = (_rows(con, _CALLS.format(by=by)) for by in ("stage", "model"))
        failures = _rows(con, _FAILED)[0]
        release = _rows(con, _RELEASE, id=current) if current else []
        quality = model_quality(con)
        absent = absent_titles(con, settings)
        reasons = reasons_by_batch(con, workspace.settings, workspace.batches, pending).values()
    return {
        "home": str(home),
        "warnings": exposed(settings),
        "indexed": True,
        "follows": "",
        **numbers,
        "levels": levels,
        "structures": structures,
        "quarantined": quarantined,
        "silent_languages": silent,
        "pending_batches": pending,
        "pending_because": list(dict.fromkeys(why for each in reasons for why in each)),
        "titles_not_in_the_corpus": list(absent),
        "model_calls": calls,
        "models": models,
        "left_out": [
            {"folder": root, **asdict(rule)}
            for root, rules in workspace.batches.left_out().items()
            for rule in rules
        ],
        "estimate": compare_estimate(workspace),
        "quality": quality.figures() if quality else None,
        **failures,
        "refresh_needed": refresh_needed(workspace),
        "published": release[0] if release else None,
        "rolled_back_from": rolled_back_from(home),
        "removed_files": len(workspace.batches.gone()),
        "purge_unfinished": workspace.paths.purge_mark.exists(),
    }


def _not_indexed(workspace: Workspace) -> dict[str, Any]:
    return {
        "home": str(workspace.home),
        "warnings": exposed(workspace.settings),
        "indexed": False,
        "follows": workspace.settings.storage.url,
        **dict.fromkeys(_COUNTED, 0),
        **{name: [] for name in _LISTED},
        "titles_not_in_the_corpus": [],
        "estimate": None,
        "quality": None,
        "failed_chunks": 0,
        "cut_chunks": 0,
        "outdated_chunks": 0,
        "failed_reports": 0,
        "staged_documents": 0,
        "refresh_needed": False,
        "published": _followed(workspace),
        "rolled_back_from": None,
        "removed_files": 0,
        "purge_unfinished": False,
    }


def changes_in(log: BatchLog, batches: Sequence[str]) -> dict[str, int]:
    """Return how many files some batches added, changed, removed and renamed."""
    counts = [log.get(key).counts for key in batches]
    return {name: sum(c[name] for c in counts) for name in ACTIONS}


def _structures(con: duckdb.DuckDBPyConnection, settings: Settings) -> list[dict[str, Any]]:
    """Return what structures hold, the last made first, also of those no longer asked for."""
    wanted_structures(settings)
    by_table = counts(con, all_structures()[::-1])
    return [{"name": name, "rows": rows} for name, rows in by_table.items() if rows]


def _followed(workspace: Workspace) -> dict[str, Any] | None:
    """Return the release that is read here of an index that is made elsewhere."""
    current = published_release(workspace.home)
    if current is None:
        return None
    with contextlib.closing(connect_published(release_file(workspace.home))) as con:
        return _rows(con, _RELEASE, id=current)[0]


def _rows(con: duckdb.DuckDBPyConnection, sql: str, **values: object) -> list[dict[str, Any]]:
    result = con.execute(sql, values)
    names = [column[0] for column in result.description or []]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
