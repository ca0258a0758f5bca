"""A home whose marts are built as by the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import duckdb
import pytest
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


@contextmanager
def home_with_release(place: Path) -> Iterator[Path]:
    """Make a folder the home, the current folder and Dagster's place; it has a release r1."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHRAG_HOME", str(place))
        patch.setenv("DAGSTER_HOME", str(place / "dagster"))
        patch.chdir(place)
        put_release(place, "r1", MORE)
        yield place


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
