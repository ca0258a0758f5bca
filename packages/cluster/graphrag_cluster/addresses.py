"""Dagster's store of the runs of many machines, how workers get them, and which workers are away.

Addresses may hold passwords. Dagster's configuration names variables of the environment instead of
them; they are set here, for this process and those it starts.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator

from graphrag_cluster.objects import ObjectStore
from graphrag_cluster.postgres import Postgres
from graphrag_pipeline.core.errors import ConfigError, StorageError
from graphrag_pipeline.core.settings import Settings

_POSTGRES = "DAGSTER_GRAPHRAG_POSTGRES"
_BROKER = "DAGSTER_GRAPHRAG_BROKER"
_SECONDS = 5.0


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


def check_services(settings: Settings) -> None:
    """Raise StorageError, in one line, where Postgres, the store or Redis cannot be reached."""
    Postgres.of(settings).connect().close()
    ObjectStore(settings.storage.url).check()
    if settings.workers.launcher == "celery":
        _check_broker(settings)


@contextlib.contextmanager
def told_of_postgres(settings: Settings) -> Iterator[None]:
    """Let what Dagster raises where its storage in Postgres is away arrive as StorageError.

    What it logs of each attempt is left out.
    """
    root = logging.getLogger()
    root.addFilter(_is_news)
    try:
        yield
    except storage_errors() as error:
        cause = error.__cause__
        known = cause if isinstance(cause, Exception) else error
        raise Postgres.of(settings).error(known) from None
    finally:
        root.removeFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("Retrying failed database connection")


def storage_errors() -> tuple[type[Exception], ...]:
    """Return what Dagster raises where its storage in Postgres is away."""
    from dagster_postgres.utils import DagsterPostgresException
    from sqlalchemy.exc import DBAPIError

    return (DagsterPostgresException, DBAPIError)


def _check_broker(settings: Settings) -> None:
    import redis

    address = settings.broker.reveal()
    try:
        with redis.Redis.from_url(
            address, socket_connect_timeout=_SECONDS, socket_timeout=_SECONDS
        ) as client:
            client.ping()
    except (redis.RedisError, OSError) as error:
        place = address.rpartition("@")[2].removeprefix("redis://")
        raise StorageError(
            f"cannot reach Redis at {place}: {type(error).__name__}; is it running, and is "
            "workers.broker right?"
        ) from None
    except ValueError:
        raise ConfigError(
            "GRAPHRAG_BROKER_URL is not an address: write redis://host:port/0"
        ) from None


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
