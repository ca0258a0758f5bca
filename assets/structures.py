"""The structures that the settings ask for: an asset for each table that one keeps up to date."""

from __future__ import annotations

import dagster as dg

from graphrag_pipeline.assets.common import (
    INDEX_POOL,
    OWNERS,
    check,
    column_schema,
    facts,
    markdown_table,
    stage,
    storage,
    warning,
)
from graphrag_pipeline.assets.inputs import input_keys, step_key
from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.releases import invariants
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.structures.registry import update_step, wanted_structures
from graphrag_pipeline.structures.structure import Outcome, Step, Structure


def build_structures(settings: Settings) -> list[dg.AssetsDefinition]:
    """Return the assets of the structures that the settings ask for."""
    return [
        _asset(structure, step, settings)
        for structure in wanted_structures(settings)
        for step in structure.steps
    ]


def structure_keys(settings: Settings) -> list[dg.AssetKey]:
    """Return the keys of all assets of :func:`build_structures`."""
    return [step_key(step) for each in wanted_structures(settings) for step in each.steps]


def _asset(structure: Structure, step: Step, settings: Settings) -> dg.AssetsDefinition:
    @dg.asset(
        key=step_key(step),
        deps=input_keys(settings, step.made_from, step.vectors),
        description=step.about,
        group_name=step.key[0],
        kinds={"python", "duckdb"},
        owners=OWNERS,
        pool=INDEX_POOL,
        metadata=storage(step.table),
        code_version=fingerprint(structure.name, structure.version(settings)),
        check_specs=_check_specs(step),
    )
    def update(index: IndexResource) -> dg.MaterializeResult:
        with stage(step.stage) as clock, index.spending() as spent:
            outcome = update_step(index.workspace, structure, step)
        with index.get_connection() as con:
            previews = {
                name: markdown_table(con, preview.query, longest=preview.longest)
                for name, preview in step.previews.items()
            }
            shown = {
                **(facts(con, step.facts) if step.facts else {}),
                **column_schema(con, step.table),
                **previews,
            }
            broken = {each.name: invariants.violations(con, each.broken) for each in step.checks}
        return dg.MaterializeResult(
            metadata={**shown, **outcome.facts, **spent.metadata, "seconds": clock.seconds},
            check_results=_check_results(step, broken, outcome),
        )

    return update


def _check_specs(step: Step) -> list[dg.AssetCheckSpec]:
    key = step_key(step)
    specs = [
        dg.AssetCheckSpec(each.name, asset=key, blocking=each.blocking, description=each.about)
        for each in step.checks
    ]
    if step.warning:
        about = step.warning.about
        specs.append(dg.AssetCheckSpec(step.warning.name, asset=key, description=about))
    return specs


def _check_results(
    step: Step, broken: dict[str, int], outcome: Outcome
) -> list[dg.AssetCheckResult]:
    key = step_key(step)
    results = [check(key, each.name, broken[each.name], each.what) for each in step.checks]
    if step.warning:
        results.append(warning(key, step.warning.name, outcome.failed, step.warning.what))
    return results
