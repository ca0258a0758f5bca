"""Dagster's history in Postgres is reached by a connection that stays while a run goes on."""

from collections import Counter

import cluster_services
import dagster as dg
import pytest
from dagster._core.instance import InstanceRef
from sqlalchemy import event
from test_event_log import events, run

from graphrag_pipeline.orchestration.event_log import kept_open


@pytest.mark.cluster
def test_a_run_in_postgres_keeps_its_connection_also_where_that_is_started_again(tmp_path):
    made = Counter()

    def counted(engine, name):
        event.listen(engine, "connect", lambda *_: made.update([name]))

    with cluster_services.postgres() as server:
        address = server.address.replace("postgresql:", "postgresql+psycopg2:")
        place = {"postgres": {"postgres_url": address}}
        ref = InstanceRef.from_dir(str(tmp_path), overrides={"storage": place})
        with dg.DagsterInstance.from_ref(ref) as instance:
            storages = (instance.run_storage, instance.event_log_storage)
            before = [storage._engine for storage in storages]
            for engine in before:
                counted(engine, "plain")
            plain = run(instance)
            with kept_open(instance):
                counted(instance.event_log_storage._engine, "kept")
                kept = run(instance)
                server.stop()
                server.start()
                again = run(instance)
            assert events(instance, kept) == events(instance, again) == events(instance, plain)
            assert [storage._engine for storage in storages] == before
    assert 0 < 5 * made["kept"] < made["plain"]
