"""The application of Celery that ``graphrag-pipeline worker`` runs: Dagster's tasks, done once.

A task is acknowledged when it is done. One whose process is killed is given to another worker,
which finds the run started and ends it; the coordinator then tries the batch again. Nothing is
given out a second time because it takes long.
"""

from __future__ import annotations

from celery.signals import worker_process_init
from dagster_celery.make_app import make_app
from dagster_celery.tasks import create_execute_job_task, create_resume_job_task

from graphrag_cluster.addresses import broker_address

_LONGEST_SECONDS = 7 * 86_400
CONFIGURATION = {
    "task_acks_late": True,
    "task_reject_on_worker_lost": True,
    "worker_prefetch_multiplier": 1,
    "broker_transport_options": {"visibility_timeout": _LONGEST_SECONDS},
    "broker_connection_retry_on_startup": True,
    "worker_hijack_root_logger": False,
}

app = make_app(
    {"broker": broker_address(), "backend": broker_address(), "config_source": CONFIGURATION}
)
execute_job = create_execute_job_task(app)
resume_job = create_resume_job_task(app)


@worker_process_init.connect
def load(**_: object) -> None:
    """Load what a batch needs before the first one comes, in the process that makes parts."""
    from graphrag_cluster import ingestion_job

    assert ingestion_job.defs is not None
