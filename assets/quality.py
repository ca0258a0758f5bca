"""Quality: how good each release is by itself."""

from __future__ import annotations

from collections.abc import Callable

import dagster as dg

from graphrag_pipeline.assets.common import adorned
from graphrag_pipeline.assets.publishing import PUBLISHED_INDEX
from graphrag_pipeline.assets.stages import Check, Outcome, Stage, Table
from graphrag_pipeline.evaluation.metrics.index import known_metrics, measure_index
from graphrag_pipeline.evaluation.store import EvaluationStore
from graphrag_pipeline.query.release import open_release
from graphrag_pipeline.resources import IndexResource

GROUP = "evaluation"
EVALUATION_POOL = "evaluation"
QUALITY = dg.AssetKey("index_quality")


def evaluation_stage(
    key: dg.AssetKey,
    label: str,
    about: str,
    made_from: dg.AssetKey,
    work: Callable[[IndexResource], Outcome],
    *checks: Check,
) -> Stage:
    """Return a stage that makes one thing, which is no table of the index."""
    table = Table(key=key, about=about, group=GROUP, made_from=[made_from], checks=checks)
    name = key.path[-1]
    return Stage(
        name=name, label=label, work=work, tables=[table], pool=EVALUATION_POOL, spends=False
    )


def measure_release(index: IndexResource) -> Outcome:
    """Measure what is published, once for each release."""
    # What is published is published: that it cannot be measured fails no run.
    return Outcome(adorned("measures", lambda: _measures(index)))


def _measures(index: IndexResource) -> dict[str, float | str]:
    store, limits = EvaluationStore(index.home), index.store.limits
    with open_release(index.home, settings=index.settings, limits=limits) as release:
        id = release.facts.id
        metrics = known_metrics(store, id) or measure_index(release, store)
    values = {
        metric.name + (f"_level_{metric.level}" if metric.has_level else ""): round(metric.value, 4)
        for metric in metrics
    }
    return {**values, "release": id}


index_quality = evaluation_stage(
    QUALITY,
    "quality",
    "Modularity, orphans, groundedness and other measures of each release.",
    PUBLISHED_INDEX,
    measure_release,
)
