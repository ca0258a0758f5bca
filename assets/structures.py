"""The structures that the settings ask for: an asset for each table that one keeps up to date."""

from __future__ import annotations

import dagster as dg

from graphrag_pipeline.assets.inputs import input_keys, step_key
from graphrag_pipeline.assets.stages import (
    AssetStage,
    StageOutcome,
    StageTable,
    shown,
)
from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.pipeline.stages import StepStage
from graphrag_pipeline.structures.registry import wanted_structures


def structure_keys(settings: Settings) -> list[dg.AssetKey]:
    """Return the keys of the assets of all structures that the settings ask for."""
    return [step_key(step) for structure in wanted_structures(settings) for step in structure.steps]


def build_structures(stage: StepStage, settings: Settings) -> AssetStage:
    """Return the stage of a structure's table."""
    structure, step = stage.structure, stage.step
    table = StageTable(
        key=step_key(step),
        about=step.about,
        group=step.key[0],
        made_from=input_keys(settings, step.made_from, step.vectors),
        table=step.table,
        version=fingerprint(structure.name, structure.version(settings)),
        facts=step.facts,
        previews=step.previews,
    )
    return shown(stage, lambda index, outcome: StageOutcome(outcome.facts, outcome.failed), [table])
