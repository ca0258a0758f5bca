"""The index as a Dagster resource."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import duckdb
from pydantic import Field, PrivateAttr

from graphrag_pipeline.core.doors import raised_outside
from graphrag_pipeline.core.errors import ConfigError, GraphRAGError, is_interrupt
from graphrag_pipeline.core.hardening.memory import as_out_of_memory
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.errors import ModelError
from graphrag_pipeline.planning.pending import pending_batches
from graphrag_pipeline.releases.older_releases import release_file
from graphrag_pipeline.resources.launching import launcher_of
from graphrag_pipeline.resources.liveness import show_life
from graphrag_pipeline.store.cache_limit import keep_cache_within
from graphrag_pipeline.store.index_store import IndexStore, connect_published
from graphrag_pipeline.store.space import changes_of, check_space
from graphrag_pipeline.store.spending import LEDGER_TAG, Spent, counting, ledger_position, spending
from graphrag_pipeline.store.workspace import Workspace

if TYPE_CHECKING or find_spec("dagster_duckdb"):
    from dagster_duckdb import DuckDBResource
else:
    DuckDBResource = dg.ConfigurableResource

OUTAGE = "graphrag/outage"
"""Run tag: the model was out of reach, and no batch is at fault."""
BATCH = "dagster/partition"
"""Run tag: the batch that a run is for, where it is for one."""
ON_A_WORKER = "DAGSTER_GRAPHRAG_WORKER"
"""Environment variable: this process makes parts, and its home holds no index."""
BESIDE_OTHERS = "graphrag/beside_others"
"""Run tag: the run writes nothing to the index, and need not wait for those that do."""


@contextlib.contextmanager
def readable_failures() -> Iterator[None]:
    """Let an error raised on purpose arrive in Dagster's UI as its one clear line, first.

    So does one for want of memory, whatever library it comes from, and Ctrl-C is no failure.
    """
    try:
        yield
    except BaseException as error:
        if is_interrupt(error):
            raise dg.DagsterExecutionInterruptedError from error
        failure = as_out_of_memory(error) or error
        if not isinstance(failure, GraphRAGError):
            if outside := raised_outside(error):
                raise dg.Failure(outside) from error
            raise
        if isinstance(failure, ModelError) and failure.is_outage:
            _mark_outage()
        told = {"exit_code": failure.exit_code}
        raise dg.Failure(str(failure), metadata=told, allow_retries=False) from None


def _mark_outage() -> None:
    """Tag the run under way as one that an outage ended."""
    with contextlib.suppress(dg.DagsterInvariantViolationError):
        context = dg.OpExecutionContext.get()
        context.instance.add_run_tags(context.run_id, {OUTAGE: "true"})


class IndexResource(DuckDBResource):
    """The pipeline's DuckDB file, its document batches and its settings.

    It is dagster-duckdb's ``DuckDBResource`` where that is installed, so assets that ask for one
    take it; that library follows a new Dagster only days later, and an index does without.
    ``get_connection`` waits its turn fairly among processes, always closes, and by default is
    for reading; write inside ``store.transaction()``.
    """

    database: str = Field(description="Path of the index file.")
    configuration: dict[str, Any] = Field(
        description="The settings it was given, without those at their defaults."
    )

    _given_ledger_began: int | None = PrivateAttr(default=None)
    _space_is_checked: bool = PrivateAttr(default=False)
    _part: Workspace | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, settings: Settings) -> IndexResource:
        """Return the resource of the index with these settings."""
        database = str(Home(settings.home_path).index)
        return cls(database=database, configuration=settings.as_set())

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Show that the run is alive, so that a killed one can be told from a long one."""
        if context.run:
            began = context.run.tags.get(LEDGER_TAG)
            self._given_ledger_began = int(began) if began else None
        if context.run and context.instance:
            show_life(context.instance, context.run.run_id)

    @contextlib.contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[IndexResource]:
        """Give a run its turn on the index: runs wait for each other, Dagster's or not.

        A run that makes a part of a batch, on a worker, has an index of its own.
        """
        run = context.run
        with contextlib.ExitStack() as turn, readable_failures():
            launcher, part = launcher_of(self.settings), None
            if run and BATCH in run.tags:
                part = launcher.working(self.settings, run, context.instance)
            if part is not None:
                self._part = turn.enter_context(part)
            elif os.environ.get(ON_A_WORKER):
                raise ConfigError(
                    "a worker makes parts of batches and nothing else: run graphrag-pipeline index "
                    "on the coordinator"
                )
            elif run and BESIDE_OTHERS not in run.tags:
                turn.enter_context(self._own_workspace.turn())
            yield turn.enter_context(super().yield_for_execution(context))

    @cached_property
    def settings(self) -> Settings:
        """The settings it was given, whatever a file or the environment says meanwhile."""
        return Settings.exactly(self.configuration)

    @property
    def workspace(self) -> Workspace:
        """The index that the engine's stages work on."""
        return self._part or self._own_workspace

    @cached_property
    def _own_workspace(self) -> Workspace:
        return Workspace(self.settings)

    @property
    def home(self) -> Path:
        """The home folder."""
        return self.workspace.home

    @property
    def store(self) -> IndexStore:
        """The engine's store."""
        return self.workspace.store

    @cached_property
    def _ledger_began(self) -> int:
        """The position of the ledger of model calls when the run, or its command, began."""
        given = self._given_ledger_began
        return ledger_position(self.settings) if given is None else given

    def spending(self) -> contextlib.AbstractContextManager[Spent]:
        """Account for a stage's model calls: within the run's budget, and in ``llm_calls``."""
        return spending(self.workspace, self._ledger_began)

    def counting(self) -> contextlib.AbstractContextManager[Spent]:
        """Account for a slice's model calls: within the run's budget, without an index."""
        return counting(self.settings, self._ledger_began)

    def check_space(self) -> None:
        """Refuse a run that the disk has no room for, before its first stage; warn of little."""
        if not self._space_is_checked:
            check_space(
                self.workspace.settings,
                changes_of(self.workspace.batches, pending_batches(self.workspace)),
            )
            self._space_is_checked = True

    def keep_cache_within(self) -> None:
        """Keep the cache of answers within ``llm.cache_gb``, at the end of a run."""
        keep_cache_within(self.workspace.settings, self._ledger_began)

    @contextlib.contextmanager
    def get_connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection to the index for reading."""
        with readable_failures(), self.store.read() as con:
            yield con

    @contextlib.contextmanager
    def get_release(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection to the published release for reading, which nobody has to wait for.

        Raises Failure where nothing is published.
        """
        with readable_failures():
            release = release_file(self.home)
            with connect_published(release) as con:
                yield con
