"""The stages that follow ingestion, in order: what each brings up to date, and what must hold then.

A program's update runs them one after the other; each is an asset in Dagster, or several.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, TypeVar

from graphrag_pipeline.core.errors import CheckFailedError
from graphrag_pipeline.core.hardening.memory import return_freed_memory
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.sharing import sharing_of
from graphrag_pipeline.graph.communities import CommunityChanges, update_communities
from graphrag_pipeline.graph.descriptions import update_graph
from graphrag_pipeline.graph.fold import GraphChanges
from graphrag_pipeline.graph.resolution.resolving import Resolution, resolve_entities
from graphrag_pipeline.ingest.stages import INGESTION, StageResult
from graphrag_pipeline.planning.pending import nothing_to_refresh
from graphrag_pipeline.releases import invariants
from graphrag_pipeline.releases.kept_releases import is_rolled_back, published_release
from graphrag_pipeline.releases.publishing import PublishedRelease, current_release, publish
from graphrag_pipeline.reports.levels import LevelReports, update_reports
from graphrag_pipeline.reports.model_writer import report_writer
from graphrag_pipeline.store.frames import value_of
from graphrag_pipeline.store.index_store import IndexStore
from graphrag_pipeline.store.vector_store import VectorChanges
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import update_step, vector_tables
from graphrag_pipeline.structures.structure import Check, Outcome, Step, Structure, VectorTable
from graphrag_pipeline.structures.updating import embed_table, in_order

T = TypeVar("T")
Counts = Callable[[Workspace, T], Mapping[str, int]]
"""Counts what is against those checks of a stage that no query counts, after its update."""
Checked = tuple[tuple[str, ...], str]
"""The key of an asset and the name of a check of it."""

_ALL_DEEPER = 1_000_000
_MORE_SECONDS = """
UPDATE stage_seconds SET runs = runs + 1, seconds = seconds + $seconds, finished_at = $now
WHERE stage = $stage
"""
_FIRST_SECONDS = "INSERT INTO stage_seconds VALUES ($stage, 1, $seconds, $now)"
_ENTITY_CHECKS = (
    Check("ids_unique", "No repeated ids.", invariants.ENTITY_IDS_UNIQUE, "repeated ids"),
    Check(
        "entities_have_sources",
        "No entities without a chunk.",
        invariants.ENTITIES_HAVE_SOURCES,
        "entities without a chunk",
    ),
)
_RELATIONSHIP_CHECKS = (
    Check(
        "relationship_ids_unique",
        "No repeated ids.",
        invariants.RELATIONSHIP_IDS_UNIQUE,
        "repeated ids",
    ),
    Check(
        "endpoints_exist",
        "No relationships without both ends.",
        invariants.ENDPOINTS_EXIST,
        "relationships without both ends",
    ),
)
_VECTOR_CHECKS = (
    Check("every_row_has_a_vector", "None is missing.", "", "rows have no vector"),
    Check("vectors_are_numbers", "No NaN, no infinity.", "", "vectors hold what is no number"),
)
_RELEASE_CHECK = Check(
    "release_readable",
    "A reader who opens the published file finds this release.",
    "",
    "published file holds another release",
)


@dataclass(frozen=True, kw_only=True)
class Stage(Generic[T]):
    """A stage of a run.

    ``name`` is that of its step in Dagster, ``label`` what progress calls it, which it is ``part``
    of ``parts`` of. ``checks`` must hold after the update, but those that warn, by the key of the
    asset they are of; those that no query counts, ``counts`` counts by name. One that ``is_timed``
    has its seconds kept.
    """

    name: str
    label: str
    update: Callable[[Workspace], T]
    part: int = 0
    parts: int = 1
    checks: Mapping[tuple[str, ...], Sequence[Check]] = field(default_factory=dict)
    counts: Counts[T] | None = None
    is_timed: bool = True

    def violations(self, workspace: Workspace, outcome: T) -> Mapping[Checked, int]:
        """Return how many things are against each check, by the asset's key and the check's name.

        ``outcome`` is what the update returned.
        """
        counted = self.counts(workspace, outcome) if self.counts else {}
        found = {(key, name): number for key in self.checks for name, number in counted.items()}
        stopping = ((k, c) for k, checks in self.checks.items() for c in checks if not c.warns)
        asked = [(key, check) for key, check in stopping if check.broken]
        if asked:
            with workspace.store.read() as con:
                for key, check in asked:
                    number = invariants.violations(con, check.broken, check.parameters)
                    found[key, check.name] = number
        return found

    def update_and_check(self, workspace: Workspace) -> tuple[T, Mapping[Checked, int]]:
        """Bring its tables up to date; return the outcome, and what is then against each check.

        The seconds it takes are added to those in ``stage_seconds``, if anything was to be done.
        """
        began, before = time.perf_counter(), workspace.store.n_changes
        outcome = self.update(workspace)
        if self.is_timed and workspace.store.n_changes != before:
            self._note_seconds(workspace.store, time.perf_counter() - began)
        violations = self.violations(workspace, outcome)
        workspace.store.give_back_memory()
        return_freed_memory()
        return outcome, violations

    def _note_seconds(self, store: IndexStore, seconds: float) -> None:
        with store.transaction(is_counted=False) as con:
            row = {"stage": self.name, "seconds": seconds, "now": datetime.now(UTC)}
            if not value_of(con, _MORE_SECONDS, row):
                con.execute(_FIRST_SECONDS, row)

    def run(self, workspace: Workspace) -> T:
        """Bring its tables up to date. Raises CheckFailedError where a check then fails."""
        outcome, violations = self.update_and_check(workspace)
        failures = [
            check.failure("/".join(key), number)
            for key, checks in self.checks.items()
            for check in checks
            if check.stops and (number := violations[key, check.name])
        ]
        if failures:
            raise CheckFailedError(failures)
        return outcome


@dataclass(frozen=True, kw_only=True)
class LevelsStage(Stage[CommunityChanges]):
    """The stage that clusters the graph at so many levels, the last of which has all deeper."""

    levels: int


@dataclass(frozen=True, kw_only=True)
class ReportStage(Stage[LevelReports]):
    """The stage that writes the reports of a level; the last level stands for all deeper ones."""

    level: int
    levels: int


@dataclass(frozen=True, kw_only=True)
class VectorStage(Stage[VectorChanges]):
    """The stage that embeds the texts of a table."""

    table: VectorTable


@dataclass(frozen=True, kw_only=True)
class StepStage(Stage[Outcome]):
    """The stage that brings a structure's table up to date."""

    structure: Structure
    step: Step


def ingest(workspace: Workspace, stage: str, batch: str) -> StageResult:
    """Take a batch through one of the stages of ingestion, given by its name."""
    return INGESTION[stage](workspace.store, workspace.batches, workspace.settings, batch)


def _publish(workspace: Workspace) -> PublishedRelease:
    """Publish the index, for the readers of a shared one, too."""
    release = publish(workspace)
    _hand_on(workspace)
    return release


def _hand_on(workspace: Workspace) -> None:
    """Give what readers see the arrays that questions need, and to those elsewhere what they see.

    A run that was killed may have left that undone.
    """
    from graphrag_pipeline.query.published_arrays import carry_arrays

    carry_arrays(workspace.home, workspace.settings)
    sharing_of(workspace.settings).publish()


def unchanged_release(workspace: Workspace) -> PublishedRelease | None:
    """Return the release that readers see if no stage has anything to do, else None."""
    if not nothing_to_refresh(workspace):
        return None
    _hand_on(workspace)
    return current_release(workspace)


def _count_unreadable(workspace: Workspace, release: PublishedRelease) -> Mapping[str, int]:
    home = workspace.home
    # Another process may have gone back to an older one since.
    is_there = published_release(home) == release.id or is_rolled_back(home, release.id)
    return {_RELEASE_CHECK.name: int(not is_there)}


RESOLUTION: Stage[Resolution] = Stage(
    name="resolution",
    label="resolution",
    update=lambda workspace: resolve_entities(workspace.store, workspace.settings),
)
"""The stage that decides which titles mean the same thing."""
GRAPH: Stage[tuple[GraphChanges, dict[str, int]]] = Stage(
    name="graph",
    label="graph",
    update=lambda workspace: update_graph(workspace.store, workspace.settings),
    checks={
        ("graph", "entities"): _ENTITY_CHECKS,
        ("graph", "relationships"): _RELATIONSHIP_CHECKS,
    },
)
"""The stage that takes in finished batches and merges all mentions into the graph."""
PUBLISH: Stage[PublishedRelease] = Stage(
    name="published_index",
    label="publish",
    update=_publish,
    checks={("published_index",): (_RELEASE_CHECK,)},
    counts=_count_unreadable,
    is_timed=False,  # A release is a copy of the index, which must not differ from it afterwards.
)
"""The stage that puts a release in place, the last."""


def refresh_stages(settings: Settings) -> Iterator[Stage]:
    """Yield the stages between ingestion and publishing, each after those it is made from.

    Raises ConfigError where structures wait for each other.
    """
    levels = settings.communities.levels
    yield RESOLUTION
    yield GRAPH
    yield _communities_stage(levels)
    for level in range(levels - 1, -1, -1):
        yield _report_stage(level, levels)
    tables = vector_tables(settings)
    for each in in_order(settings):
        if isinstance(each, VectorTable):
            yield _vector_stage(each, tables)
        else:
            yield _step_stage(*each)


def level_range(level: int, levels: int) -> dict[str, int]:
    """Return the levels that one of so many stands for: the last holds all deeper levels too."""
    return {"first": level, "last": level if level < levels - 1 else _ALL_DEEPER}


def _communities_stage(levels: int) -> LevelsStage:
    def update(workspace: Workspace) -> CommunityChanges:
        return update_communities(workspace.store, workspace.settings.communities)

    def check(level: int) -> Check:
        return Check(
            "every_entity_covered_once",
            "Each entity is in one community at each level of this asset.",
            invariants.EVERY_ENTITY_COVERED_ONCE,
            "entities are not covered exactly once",
            parameters=level_range(level, levels),
        )

    return LevelsStage(
        name="communities",
        label="communities",
        update=update,
        checks={
            ("communities", f"communities_level_{level}"): (check(level),)
            for level in range(levels)
        },
        levels=levels,
    )


def _report_stage(level: int, levels: int) -> ReportStage:
    def update(workspace: Workspace) -> LevelReports:
        return update_reports(
            workspace.store,
            workspace.settings.reports,
            level,
            and_deeper=level == levels - 1,
            writer=report_writer(workspace.settings),
        )

    check = Check(
        "every_community_reported",
        "Each community of two or more entities has a report, or failed.",
        invariants.EVERY_COMMUNITY_REPORTED,
        "communities have no report",
        parameters=level_range(level, levels),
    )
    name = f"reports_level_{level}"
    return ReportStage(
        name=name,
        label="reports",
        update=update,
        part=levels - 1 - level,
        parts=levels,
        checks={("reports", name): (check,)},
        level=level,
        levels=levels,
    )


def _vector_stage(table: VectorTable, tables: Sequence[VectorTable]) -> VectorStage:
    def counts(workspace: Workspace, changes: VectorChanges) -> Mapping[str, int]:
        with workspace.store.read() as con:
            found = invariants.vector_violations(con, workspace.vectors, table)
        return dict(zip((check.name for check in _VECTOR_CHECKS), found, strict=True))

    name = f"{table.name}_vectors"
    return VectorStage(
        name=name,
        label="embeddings",
        update=lambda workspace: embed_table(workspace, table),
        part=tables.index(table),
        parts=len(tables),
        checks={("embeddings", name): _VECTOR_CHECKS},
        counts=counts,
        table=table,
    )


def _step_stage(structure: Structure, step: Step) -> StepStage:
    return StepStage(
        name="__".join(step.key),
        label=step.stage,
        update=lambda workspace: update_step(workspace, structure, step),
        checks={step.key: step.checks},
        structure=structure,
        step=step,
    )
