"""A home whose marts are built as by the command line."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest
from artefacts import copy_of
from dagster_helpers import failed_checks, metadata_of
from query_fixture import publish

from graphrag_pipeline.core.settings import load_settings
from graphrag_pipeline.definitions import build_definitions
from graphrag_pipeline.marts import build as marts
from graphrag_pipeline.marts.build import MARTS_JOB
from graphrag_pipeline.orchestration import runs

# What the hand-written index lacks: where it came from, what was tried, what it cost.
MORE = """
INSERT INTO batches
    VALUES ('b1', TIMESTAMPTZ '2026-11-01 10:00:00Z', 'docs', 'partial', 5, 0, 0, 1);
INSERT INTO batch_sources
    SELECT 'b1', source, 'add', 'x', 1, 'ok', 1 FROM documents
    UNION ALL VALUES ('b1', 'docs/broken.pdf', 'add', 'x', 1, 'quarantined', 0);
INSERT INTO quarantine VALUES ('b1', 'docs/broken.pdf', 'it is encrypted');
INSERT INTO extractions
    SELECT c.id, 'llm', 'v', if(c.ordinal = 0 AND d.uri = 'docs/0.txt', 'failed', 'ok'), NULL,
           2, 1, 10, 5, 'b1', 'v', 1
    FROM chunks c JOIN documents d ON d.id = c.document_id;
INSERT INTO llm_calls
    SELECT 'call-' || i, TIMESTAMPTZ '2026-11-01 23:30:00Z' + INTERVAL 1 HOUR * (i % 2),
           'extractions', 'b1', 'm', 100, 10, if(i = 3, NULL, 0.25), 1.0, i = 2, NULL
    FROM range(40) t(i);
INSERT INTO entity_aliases
    SELECT 'alias', id, 'Ebenezer', title, type, 'rule', 'honorific', 0.9, '{}'
    FROM entities WHERE title = 'Scrooge';
UPDATE entity_chunks SET start_char = 0, end_char = 3;
UPDATE relationship_chunks r SET start_char = c.start_char + 2, end_char = c.start_char + 9
    FROM chunks c WHERE c.id = r.chunk_id AND c.ordinal = 0;
INSERT INTO relationship_chunks
    SELECT id, (SELECT min(id) FROM chunks), 1, NULL, NULL FROM relationships
    WHERE id NOT IN (SELECT relationship_id FROM relationship_chunks);
DELETE FROM hierarchy_reports WHERE level = 2 AND title LIKE 'Fezziwig%';
"""


_TOLD = "told_of_the_run"


@dataclass(frozen=True)
class Told:
    """What a run that built all marts has told: checks that did not pass, and metadata."""

    failed: set[str]
    metadata: dict[tuple[str, str | None], dict[str, Any]]


@contextmanager
def home_with_release(place: Path) -> Iterator[Path]:
    """Make a folder the home, the current folder and Dagster's place; it has a release r1."""
    with _at_home(place):
        put_release(place, "r1", MORE)
        yield place


@contextmanager
def home_with_marts(place: Path) -> Iterator[tuple[Path, Told]]:
    """Make a folder such a home whose marts are all built: the job runs once for all workers."""
    copy_of("marts", _make_marts, place)
    with _at_home(place):
        # Only what this process has written is read.
        yield place, pickle.loads((place / _TOLD).read_bytes())


def _make_marts(place: Path) -> None:
    place.mkdir()
    with home_with_release(place):
        run = built_in(place)
    assert run.success
    told = Told(failed_checks(run), metadata_of(run))
    (place / _TOLD).write_bytes(pickle.dumps(told))


@contextmanager
def _at_home(place: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHRAG_HOME", str(place))
        patch.setenv("DAGSTER_HOME", str(place / "dagster"))
        patch.chdir(place)
        yield


def put_release(home: Path, release: str, *statements: str) -> None:
    publish(home, release=release)
    published = home / "published.duckdb"
    with duckdb.connect(str(published)) as con:
        for statement in statements:
            con.execute(statement)


def release_wanted(home: Path) -> str | None:
    wanted = marts.marts_outdated(home)
    return wanted.release if wanted else None


def built_in(home: Path) -> dg.ExecuteInProcessResult:
    """Build the marts of the home that the environment names; return the run."""
    settings = load_settings()
    runs.dagster_home(settings)
    defs = build_definitions(settings, marts=True)
    with runs.opened_instance(settings) as instance:
        return defs.resolve_job_def(MARTS_JOB).execute_in_process(
            instance=instance, run_config=runs._QUIET, raise_on_error=False
        )


def build_some(home: Path, *models: str) -> None:
    """Build some marts of a home, with what they are made from and their data tests.

    dbt does so as for the job, which builds all: a third of what that takes.
    """
    parsed = marts.manifest(home).parent
    with marts.building(home) as build:
        build.target.mkdir()
        shutil.copy(parsed / "partial_parse.msgpack", build.target)
        arguments = [marts.dbt_command(), "build", "--quiet", "--target", marts.TARGET]
        for name, place in (
            *(("project-dir", marts.PROJECT), ("profiles-dir", marts.PROJECT)),
            *(("target-path", build.target), ("log-path", build.target)),
        ):
            arguments += [f"--{name}", place]
        # Tests of other marts beside would look for these.
        arguments += ["--indirect-selection", "cautious"]
        arguments += ["--select", *(f"+{model}" for model in (*models, "built_from"))]
        subprocess.run(arguments, env={**os.environ, **build.environment}, check=True)
        build.put_in_place()
