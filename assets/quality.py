"""Measures of each release: how good it is by itself."""

from __future__ import annotations

from collections.abc import Callable

import dagster as dg

from graphrag_pipeline.assets.common import adorned
from graphrag_pipeline.assets.publishing import PUBLISHED_INDEX
from graphrag_pipeline.assets.stages import AssetStage, StageOutcome, StageTable
from graphrag_pipeline.releases.measuring import MEASURES, Measure
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.structures.structure import Check


def stage_beside(
    key: dg.AssetKey,
    label: str,
    about: str,
    made_from: dg.AssetKey,
    work: Callable[[IndexResource], StageOutcome],
    *checks: Check,
    group: str,
) -> AssetStage:
    """Return a stage that makes one thing, which is no table of the index.

    It waits for no stage but those of its ``group``.
    """
    table = StageTable(key=key, about=about, group=group, made_from=[made_from], checks=checks)
    name = key.path[-1]
    return AssetStage(name=name, label=label, work=work, tables=[table], pool=group, spends=False)


def build_measures() -> list[AssetStage]:
    """Return the stages that measure what is published."""
    return [_stage(name, measure) for name, measure in MEASURES.usable().items()]


def _stage(name: str, measure: Measure) -> AssetStage:
    def work(index: IndexResource) -> StageOutcome:
        # What is published is published: that it cannot be measured fails no run.
        return StageOutcome(adorned("measures", lambda: measure.measure(index.workspace)))

    return stage_beside(
        dg.AssetKey(name),
        measure.label,
        measure.about,
        PUBLISHED_INDEX,
        work,
        group=measure.group,
    )
