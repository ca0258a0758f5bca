"""Where Dagster keeps the runs of many machines, and how they are handed to workers.

Addresses may hold passwords. Dagster's configuration names variables of the environment instead of
them; they are set here, for this process and those it starts.
"""

from __future__ import annotations

import os

from graphrag_pipeline.core.postgres import Postgres
from graphrag_pipeline.core.settings import Settings

_POSTGRES = "DAGSTER_GRAPHRAG_POSTGRES"
_BROKER = "DAGSTER_GRAPHRAG_BROKER"


def export_addresses(settings: Settings) -> None:
    """Set the variables that ``dagster.yaml`` names."""
    os.environ[_POSTGRES] = _for_sqlalchemy(settings.postgres.reveal())
    if settings.broker:
        os.environ[_BROKER] = settings.broker.reveal()


def queue_of(settings: Settings) -> str:
    """Return the queue in Redis of an index: several may share one Redis, as they may Postgres."""
    return Postgres.of(settings).schema


def broker_address() -> str:
    """Return the address of Redis that was set."""
    return os.environ[_BROKER]


def _for_sqlalchemy(address: str) -> str:
    from psycopg.conninfo import conninfo_to_dict
    from sqlalchemy import URL

    parts = {name: str(value) for name, value in conninfo_to_dict(address).items()}
    host = parts.pop("host", None)
    is_socket = host is not None and host.startswith("/")
    query = {**({"host": host} if host and is_socket else {})}
    url = URL.create(
        "postgresql+psycopg2",
        username=parts.pop("user", None),
        password=parts.pop("password", None),
        host=None if is_socket else host,
        port=int(parts.pop("port", 5432)),
        database=parts.pop("dbname", None),
        query={**query, **parts},
    )
    return url.render_as_string(hide_password=False)
