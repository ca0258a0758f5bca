"""Consent to unattended runs: those that may cost too much wait for a person."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from logging import Logger
from threading import Thread

import dagster as dg

from graphrag_pipeline.core.errors import BusyError, GraphRAGError
from graphrag_pipeline.core.notices import Notifier
from graphrag_pipeline.llm.pricing import StagePlan
from graphrag_pipeline.planning.consent import may_cost, why_ask
from graphrag_pipeline.resources import IndexResource

_PATIENCE = 20.0
"""Seconds that a tick waits for a plan; Dagster gives up a tick after sixty."""
_REFUSED_FOR = 600.0
"""Seconds after which the same work is planned again: prices, caches and indexes change."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """The work of a job: ``content`` tells it from other work, ``plan`` says what it takes.

    ``command`` does the same from the command line, where it asks a person first.
    """

    job: str
    command: str
    content: Hashable
    plan: Callable[[], Sequence[StagePlan]]


@dataclass(frozen=True)
class _Planned:
    content: Hashable
    stages: Future[Sequence[StagePlan]]
    begun_at: float


class Consent:
    """Whether the runs of an index may begin unattended, by what they are planned to cost.

    To read very many documents takes longer than a tick may. So a plan is made in a thread of its
    own, and a later tick learns what it came to.
    """

    def __init__(self, index: IndexResource) -> None:
        self._index = index
        self._notifier = Notifier(index.settings)
        self._plans: dict[str, _Planned] = {}
        self._waiting: set[str] = set()

    def why_index_waits(self, job: str, batches: Sequence[str], log: Logger) -> str | None:
        """Return why these batches must wait, or, without any, the refresh; None if it may begin.

        Batches are planned with the refresh that follows them. Raises Failure as ``why_waits``.
        """
        if not may_cost(self._index.settings):
            return None

        def plan() -> Sequence[StagePlan]:
            from graphrag_pipeline.planning.plan import plan_batches

            return plan_batches(self._index.workspace, batches).stages

        command = "graphrag-pipeline index"
        return self.why_waits(Work(job=job, command=command, content=(*batches,), plan=plan), log)

    def why_waits(self, work: Work, log: Logger) -> str | None:
        """Return why this work must not begin now; None if it may.

        That it waits for a person is told once: in the log, and to the hooks of the settings.
        Raises Failure where it cannot be planned.
        """
        try:
            return self._why_waits(work, log)
        except BusyError as error:
            return str(error)
        except GraphRAGError as error:
            raise dg.Failure(str(error)) from None

    def _why_waits(self, work: Work, log: Logger) -> str | None:
        planned = self._planned(work)
        wait([planned.stages], _PATIENCE)
        if not planned.stages.done():
            return "what the run may cost is still being estimated"
        del self._plans[work.job]
        why = why_ask(self._index.settings, planned.stages.result())
        if why:
            self._plans[work.job] = planned
            return self._tell(work, why, log)
        if planned.content != work.content:
            return self._why_waits(work, log)
        self._waiting.discard(work.job)
        self._notifier.goes_on(work.job)
        return None

    def _planned(self, work: Work) -> _Planned:
        """Return the plan of this work, or one still being made: never are two made at a time."""
        planned, now = self._plans.get(work.job), time.monotonic()
        if planned and planned.stages.done():
            is_current = planned.content == work.content and now - planned.begun_at < _REFUSED_FOR
            planned = planned if is_current else None
        if planned is None:
            planned = self._plans[work.job] = _Planned(work.content, _beside(work.plan), now)
        return planned

    def _tell(self, work: Work, why: str, log: Logger) -> str:
        reason = (
            f"{why}. It waits, and nothing is spent. To allow it, launch {work.job} in Dagster's "
            f"UI, or run {work.command} --yes with the same settings. To have no such run wait, "
            "raise llm.confirm_cost (0: no limit) and reload the code location"
        )
        if work.job not in self._waiting:
            log.warning(f"{work.job} waits: {reason}")
        self._waiting.add(work.job)
        self._notifier.waits(work.job, reason)
        return reason


def _beside(plan: Callable[[], Sequence[StagePlan]]) -> Future[Sequence[StagePlan]]:
    stages: Future[Sequence[StagePlan]] = Future()

    def make() -> None:
        try:
            stages.set_result(plan())
        except BaseException as error:
            stages.set_exception(error)

    Thread(target=make, name="plan", daemon=True).start()
    return stages
