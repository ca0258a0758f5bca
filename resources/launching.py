"""Executors of Dagster's runs: the process that asks for them, or workers elsewhere.

``workers.launcher`` names what carries runs to workers; it comes in by the door ``launchers``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from importlib import resources

import dagster as dg

from graphrag_pipeline.core.doors import Door
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.extras import how_to_install
from graphrag_pipeline.core.service_settings import IN_PROCESS
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.store.workspace import Workspace


class Launcher:
    """Nobody but the process that asks for a run: it does all by itself, in its home.

    A part of the door ``launchers`` derives from this class.
    """

    def configuration(self) -> bytes:
        """Return what Dagster reads from ``dagster.yaml``."""
        return resources.files("graphrag_pipeline").joinpath("data", "dagster.yaml").read_bytes()

    def set_addresses(self, settings: Settings) -> None:
        """Set the variables that :meth:`configuration` names, for this process and its own."""

    def reaching(self, settings: Settings) -> contextlib.AbstractContextManager[None]:
        """Let what Dagster raises where its storage is away arrive as StorageError."""
        return contextlib.nullcontext()

    def working(
        self, settings: Settings, run: dg.DagsterRun, instance: dg.DagsterInstance | None
    ) -> contextlib.AbstractContextManager[Workspace | None] | None:
        """Return a context in which a worker executes the run of one batch or slice.

        It gives the index of that batch alone, None for a slice. None in its place: the run works
        on the index, in this home.
        """
        return None

    def make_parts(
        self,
        workspace: Workspace,
        instance: dg.DagsterInstance,
        keys: Sequence[str],
        run_config: Mapping[str, object],
        tags: Mapping[str, str],
    ) -> Sequence[str] | None:
        """Have workers ingest batches, and return the ids of their runs; None: they do not.

        ``run_config`` and ``tags`` are those of each run. Raises a GraphRAGError where a batch
        could not be made.
        """
        return None

    def spreading(
        self,
        workspace: Workspace,
        instance: dg.DagsterInstance,
        run_config: Mapping[str, object],
        tags: Mapping[str, str],
    ) -> contextlib.AbstractContextManager[None]:
        """Let workers do what they can of the stages after ingestion, within this context."""
        return contextlib.nullcontext()


LAUNCHERS: Door[Launcher] = Door(
    "launchers",
    Launcher,
    "launcher",
    own={IN_PROCESS: "launching:ALONE"},
    beside=__name__,
)
"""Who executes runs, by the name in ``workers.launcher``."""
ALONE = Launcher()


def launcher_of(settings: Settings) -> Launcher:
    """Return who executes runs. Raises ConfigError where it is not installed."""
    name = settings.workers.launcher
    launcher = LAUNCHERS.find(name)
    if launcher is None:
        raise ConfigError(
            f'workers.launcher = "{name}" is for many workers: {how_to_install("cluster")}'
        )
    return launcher
