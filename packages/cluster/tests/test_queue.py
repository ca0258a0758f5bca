"""The queue in Redis, as the coordinator sees it."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import dagster as dg
import pytest
import yaml
from cluster_services import redis
from graphrag_cluster.objects import ObjectStore
from graphrag_cluster.postgres import Session
from graphrag_cluster.runs import DagsterRuns
from redis import Redis

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.store.workspace import Workspace

pytestmark = pytest.mark.cluster


def test_a_run_is_lost_once_it_is_in_no_queue_and_not_before(tmp_path: Path) -> None:
    documents, home = tmp_path / "documents", tmp_path / "dagster"
    documents.mkdir()
    (documents / "dam.md").write_text("Oskar Kovarna built the Orlen Dam.")
    storage = {"url": f"file://{tmp_path}/store", "postgres": "postgresql://not.asked"}
    with redis() as service:
        workers = {"launcher": "celery", "broker": service.address}
        settings = Settings(home=str(tmp_path / "home"), storage=storage, workers=workers)
        workspace = Workspace(settings)
        workspace.batches.cut(documents, Settings().batches, max_bytes=10**6)
        home.mkdir()
        launcher = {
            "module": "dagster_celery.launcher",
            "class": "CeleryRunLauncher",
            "config": {"broker": service.address, "backend": service.address},
        }
        (home / "dagster.yaml").write_text(yaml.safe_dump({"run_launcher": launcher}))
        with dg.DagsterInstance.from_config(str(home)) as instance:
            # Nothing that is asked here is kept in Postgres.
            session = cast("Session", None)
            objects = ObjectStore(settings.storage.url)
            runs = DagsterRuns(workspace, instance, objects, session, {}, {})
            run_id, _ = runs.launch(workspace.batches.batches()[0].key)
            assert runs.lost([run_id]) == {}
            with Redis.from_url(service.address) as client:
                client.flushall()
            assert [*runs.lost([run_id])] == [run_id]
