"""Runs that workers execute: the parts of the door ``launchers``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources

import dagster as dg

from graphrag_cluster.addresses import export_addresses, told_of_postgres
from graphrag_cluster.beats import beating
from graphrag_cluster.objects import ObjectStore
from graphrag_cluster.part_making import PartWorkspace, making_part
from graphrag_cluster.runs import SLICE, make_parts, make_slices
from graphrag_cluster.slices import make_pieces, wanted_kinds
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.spreading import spreading
from graphrag_pipeline.resources.connections import kept_connected
from graphrag_pipeline.resources.index import BATCH
from graphrag_pipeline.resources.launching import Launcher
from graphrag_pipeline.store.workspace import Workspace


@dataclass(frozen=True)
class WorkerLauncher(Launcher):
    """Workers, whom runs reach as a file of Dagster's configuration says."""

    file: str

    def configuration(self) -> bytes:
        """Return what Dagster reads from ``dagster.yaml``."""
        return resources.files(__package__ or "").joinpath(self.file).read_bytes()

    def set_addresses(self, settings: Settings) -> None:
        """Set the variables of Postgres and Redis."""
        export_addresses(settings)

    def reaching(self, settings: Settings) -> contextlib.AbstractContextManager[None]:
        """Let what is raised where Postgres is away arrive as StorageError."""
        return told_of_postgres(settings)

    @contextlib.contextmanager
    def working(
        self, settings: Settings, run: dg.DagsterRun, instance: dg.DagsterInstance | None
    ) -> Iterator[PartWorkspace | None]:
        """Yield the index of the batch that is ordered; the worker is heard of meanwhile."""
        with contextlib.ExitStack() as work:
            work.enter_context(beating(settings, run.run_id))
            if instance:
                work.enter_context(kept_connected(instance))
            part = None
            if SLICE not in run.tags:
                objects = ObjectStore(settings.storage.url)
                part = work.enter_context(making_part(settings, objects, run.tags[BATCH]))
            yield part

    def make_parts(
        self,
        workspace: Workspace,
        instance: dg.DagsterInstance,
        keys: Sequence[str],
        run_config: Mapping[str, object],
        tags: Mapping[str, str],
    ) -> Sequence[str]:
        """Have workers make a part of each batch, and take the parts in."""
        return make_parts(workspace, instance, keys, run_config, tags)

    def spreading(
        self,
        workspace: Workspace,
        instance: dg.DagsterInstance,
        run_config: Mapping[str, object],
        tags: Mapping[str, str],
    ) -> contextlib.AbstractContextManager[None]:
        """Let workers make slices of vectors and reports."""
        objects = ObjectStore(workspace.settings.storage.url)
        stand_ins = {}
        for kind in wanted_kinds(workspace.settings):
            make = partial(make_slices, kind, workspace, instance, run_config, tags)
            stand_ins[kind.name] = kind.standing_in(partial(make_pieces, objects, make))
        return spreading(stand_ins)


CELERY = WorkerLauncher("dagster_celery.yaml")
KUBERNETES = WorkerLauncher("dagster_k8s.yaml")
