"""The experiment of the settings in Dagster: its assets, its job, its schedule."""

from __future__ import annotations

import dagster as dg

from graphrag_evaluation.schedule import build_evaluation_schedule
from graphrag_pipeline.definitions import Building, job_beside

EVALUATION_JOB = "evaluate_experiment"


def evaluation_definitions(building: Building) -> list[dg.Definitions]:
    """Return the experiment of the settings, and the file of experiments where marts read it."""
    return [*_experiment(building), *_evaluations(building)]


def _experiment(building: Building) -> list[dg.Definitions]:
    index, names = building.index, building.names
    if not index.settings.evaluation.experiment:
        return []
    from graphrag_evaluation.assets import build_experiment

    experiment = build_experiment(index.settings, names)
    job = job_beside(
        names.name(EVALUATION_JOB),
        experiment,
        "Run, score and judge the experiment of the settings on the published release.",
    )
    schedule = build_evaluation_schedule(job, index, names)
    return [dg.Definitions(assets=experiment, jobs=[job], schedules=[schedule])]


def _evaluations(building: Building) -> list[dg.Definitions]:
    if not building.with_marts:
        return []
    from graphrag_evaluation.assets import build_evaluations

    return [dg.Definitions(assets=[build_evaluations(building.settings, building.names)])]
