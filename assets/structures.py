"""The structures that the settings ask for: an asset for each table that one keeps up to date."""

from __future__ import annotations

import dagster as dg

from graphrag_pipeline.assets.inputs import input_keys, step_key
from graphrag_pipeline.assets.stages import Check, Outcome, Preview, Stage, Table
from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.structures.registry import update_step, wanted_structures
from graphrag_pipeline.structures.structure import Step, Structure


def build_structures(settings: Settings) -> list[Stage]:
    """Return the stages of the structures that the settings ask for."""
    return [
        _stage(structure, step, settings)
        for structure in wanted_structures(settings)
        for step in structure.steps
    ]


def structure_keys(settings: Settings) -> list[dg.AssetKey]:
    """Return the keys of all assets of :func:`build_structures`."""
    return [step_key(step) for structure in wanted_structures(settings) for step in structure.steps]


def _stage(structure: Structure, step: Step, settings: Settings) -> Stage:
    def update(index: IndexResource) -> Outcome:
        outcome = update_step(index.workspace, structure, step)
        return Outcome(outcome.facts, outcome.failed)

    table = Table(
        key=step_key(step),
        about=step.about,
        group=step.key[0],
        made_from=input_keys(settings, step.made_from, step.vectors),
        table=step.table,
        version=fingerprint(structure.name, structure.version(settings)),
        facts=step.facts,
        previews={
            name: Preview(preview.query, preview.longest) for name, preview in step.previews.items()
        },
        checks=_checks(step),
    )
    return Stage(name="__".join(step.key), label=step.stage, work=update, tables=[table])


def _checks(step: Step) -> list[Check]:
    checks = [Check(c.name, c.about, c.what, c.broken, blocking=c.blocking) for c in step.checks]
    warning = step.warning
    return [
        *checks,
        *([Check(warning.name, warning.about, warning.what, warns=True)] if warning else []),
    ]
