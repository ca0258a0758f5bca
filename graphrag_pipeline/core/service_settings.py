"""Settings of what is around an index: workers, schedules, releases, access, the server."""

from __future__ import annotations

import importlib.util
import re
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from graphrag_pipeline.core.environment import BROKER, POSTGRES, Secret
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.extras import how_to_install
from graphrag_pipeline.core.setting_values import (
    Address,
    BrokerAddress,
    Label,
    Megabytes,
    Place,
    Positive,
    PostgresAddress,
    Section,
    StorageUrl,
)


class StorageSettings(Section):
    """The place of an index, and the limits of a run on the machine."""

    url: StorageUrl = ""
    """Where workers share an index: s3://bucket/prefix, or file:///folder that all of them see;
    empty: the home folder. It needs Postgres and the extra [cluster]."""
    postgres: PostgresAddress = ""
    """Postgres of a shared index, without a password: postgresql://user@host/database. With one,
    the whole address is GRAPHRAG_POSTGRES_URL in the environment or in .env, which wins."""
    memory_gb: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 0.0
    """About the most gigabytes of memory that a run takes; 0: half of what there is. Tables that do
    not fit go to disk; under 1, little is left for them."""
    threads: Annotated[int, Field(ge=0, le=1024)] = 0
    """Threads that work on tables; 0: one for each core. Each takes memory of its own."""
    temp: str = ""
    """Folder, on a fast disk with room, for what does not fit in memory; none set: the home."""


IN_PROCESS = "in_process"
"""The launcher of who works alone."""


class WorkerSettings(Section):
    """The workers of a shared index ([storage] url)."""

    launcher: Literal["in_process", "celery", "k8s"] = "in_process"
    """in_process: this machine. celery: processes of `graphrag-pipeline worker`, through Redis.
    k8s: a pod for each batch."""
    broker: BrokerAddress = ""
    """Redis of launcher = "celery", without a password: redis://host:6379/0. With one, the whole
    address is GRAPHRAG_BROKER_URL in the environment or in .env, which wins."""
    send_files: bool = True
    """Whether workers are sent the files of a batch, and need not see the folder of the documents.
    They lie under [storage] url until the batch is taken in."""


class ScheduleSettings(Section):
    """Times at which the unpartitioned stages run by themselves."""

    refresh_cron: str = "*/5 * * * *"
    """How often to look for finished batches that the published index lacks (cron)."""
    check_cron: str = "30 4 * * *"
    """When everything that the index keeps is checked against itself (cron)."""


class NotifySettings(Section):
    """People told when runs fail or the model is out of reach, and when that is over: once each. A
    webhook (Slack, Mattermost: JSON with "text") is set by GRAPHRAG_WEBHOOK_URL, the mail server by
    GRAPHRAG_SMTP_URL, in the environment or in .env, for both may hold a secret.
    """

    email: tuple[str, ...] = ()
    """Addresses, told through smtp://user:password@host:587 (or smtps://) in GRAPHRAG_SMTP_URL."""
    sender: str = ""
    """The address that mail comes from; empty: the first of email."""
    command: tuple[str, ...] = ()
    """A program and its arguments; it is given the notice on its standard input."""


class EvaluationSettings(Section):
    """A nightly evaluation, and when it warns."""

    experiment: str = ""
    """TOML file of an experiment that Dagster offers as assets; empty: none."""
    watch: Place = "recall@5"
    """The metric that must not fall from one run of it to the next, in any condition."""
    max_drop: Annotated[float, Field(ge=0, le=1e6)] = 0.05
    """Most that its mean may fall before the check fails."""
    cron: str = "0 3 * * *"
    """When the schedule runs the experiment (cron), once it is turned on in the UI."""


class ReleaseSettings(Section):
    """Published releases."""

    keep: Positive = 10
    """Most releases that stay readable; the published one and the one before always do."""
    keep_days: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 30.0
    """Days that older releases stay readable; 0: as long as there is room by number."""
    max_failed_share: Annotated[float, Field(ge=0, le=1)] = 0.05
    """Share of chunks or of reports at which the model may fail: above it nothing is published."""
    max_garbage_share: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Share of what a model extracted that may be wrong in one way: descriptions that copy their
    text or hold one phrase, chunks with one entity. Above it, or without any relationship, nothing
    is published. 1: publish all the same."""


class AccessRule(Section):
    """Documents that only some may read."""

    match: Place
    """Pattern of paths, as in .gitignore: hr/**, *.private.md; * is every document."""
    labels: Annotated[tuple[Label, ...], Field(min_length=1)]
    """Who reads them has one of these labels, and one of each further rule that matches."""

    @field_validator("match")
    @classmethod
    def _is_one_pattern(cls, match: str) -> str:
        if match.lstrip()[:1] in ("!", "#", ""):
            raise ValueError(f"match = {match!r} matches nothing: write a pattern such as hr/**")
        return match


class AccessSettings(Section):
    """Rules on who may see which documents. A change is published by the next run, at no cost."""

    mode: Literal["off", "filtered", "separate"] = "off"
    """filtered: a caller with labels sees the documents that they open, and what rests on these
    alone; need-to-know, not proof against inference. separate: this index is one clearance, opened
    whole by one of `labels`; other clearances are other indexes. off: everybody sees all."""
    rules: tuple[AccessRule, ...] = ()
    """Labels by path (filtered). A document that no rule and no metadata names is nobody's."""
    metadata: str = ""
    """Key of the documents' metadata that holds labels, too (filtered): a list, or comma-separated.
    It narrows what rules say, and never widens it."""
    labels: tuple[Label, ...] = ()
    """Labels of which one opens this index (separate)."""

    @model_validator(mode="after")
    def _means_something(self) -> AccessSettings:
        has_rules = bool(self.rules or self.metadata)
        if has_rules != (self.mode == "filtered"):
            raise ValueError(
                'access: mode = "filtered" needs [[access.rules]] or metadata, and no other mode '
                "takes them"
            )
        if bool(self.labels) != (self.mode == "separate"):
            raise ValueError('access: mode = "separate" needs labels, and no other mode takes them')
        return self


class ServerSettings(Section):
    """The release that `serve` answers from, and how much it does at once."""

    collections: dict[str, Place] = {}
    """Other indexes to serve: a name, and the home folder it is of. The index of these settings is
    the collection default, unless that name is given to another."""
    threads: Annotated[int, Field(ge=0, le=256)] = 0
    """Threads in which questions are worked on; 0: one for each core of the processor."""
    waiting: Positive = 64
    """Most questions that are worked on or wait; one more is told to come again later."""
    timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 120.0
    """A question that takes longer is stopped."""
    address: Address = ""
    """Address (https://graph.example.com) by which clients reach it, for links to sources; none
    set: the one that a request is sent to."""
    hosts: tuple[str, ...] = ()
    """Names (graph.example.com) by which it may be called where there are keys; none set: any."""
    origins: tuple[Address, ...] = ()
    """Addresses (http://localhost:3000) of pages whose scripts may ask; none but its own."""
    uploads: str = ""
    """Folder, within input.folder, for documents that callers upload; none set: none can be."""
    upload_mb: Megabytes = 20.0
    """An upload that is larger is refused."""
    originals: bool = True
    """Whether who may read a document's text may have the file that it was read from."""
    uploads_most: Positive = 1000
    """Most uploads that the folder holds; one more is refused."""
    conversation_days: Annotated[float, Field(ge=0, le=36_500)] = 90.0
    """Days after its last question that a conversation is kept, in conversations.sqlite of the
    home, for callers with a key and for this machine's own page; 0: none is."""
    audit: bool = True
    """Whether each question that is asked with a key is recorded, in audit/ of the home."""
    audit_text: bool = False
    """Whether the audit has the text of a question, and not only its hash."""
    audit_mb: Megabytes = 20.0
    """A file of the audit that has grown over this is put aside."""
    audit_files: Positive = 20
    """Most files of the audit that were put aside; the oldest are removed."""
    audit_days: Annotated[float, Field(ge=0)] = 0.0
    """Days that the audit is kept: what is older goes with the next line; 0: no end but
    audit_files."""

    @field_validator("collections")
    @classmethod
    def _names_are_plain(cls, collections: dict[str, str]) -> dict[str, str]:
        for name in collections:
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name):
                raise ValueError(
                    f"server.collections: {name!r} must be a name of letters, digits, - and _"
                )
        return collections


def check_sharing(
    storage: StorageSettings, workers: WorkerSettings, postgres: Secret, broker: Secret
) -> None:
    """Raise ConfigError, with all that is lacking, where an index cannot be shared as is set."""
    url, launcher = storage.url, workers.launcher
    lacking: list[str] = []
    if launcher != "in_process" and not url:
        lacking.append(
            f'workers.launcher = "{launcher}" needs storage.url: set it to s3://bucket/prefix'
        )
    if url and not postgres:
        lacking.append(
            f"storage.url = {url!r} needs Postgres: set storage.postgres, or {POSTGRES} in the "
            "environment or in .env"
        )
    if launcher == "celery" and not broker:
        lacking.append(
            f'workers.launcher = "celery" needs Redis: set workers.broker, or {BROKER} in the '
            "environment or in .env"
        )
    needed = [("storage.url", "graphrag_cluster"), ("storage.url", "psycopg")] if url else []
    if launcher != "in_process":
        needed.append(("workers.launcher", f"dagster_{launcher}"))
    absent = [(by, module) for by, module in needed if importlib.util.find_spec(module) is None]
    lacking += (f"{by} needs {module}: {how_to_install('cluster')}" for by, module in absent[:1])
    if lacking:
        raise ConfigError("; ".join(lacking))
