"""Quality: how good each release is by itself, measured once it is published."""

from __future__ import annotations

from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.releases.measuring import Measure
from graphrag_pipeline.store.workspace import Workspace

_IS_MADE = "SELECT 1 FROM index_metrics WHERE release = ? LIMIT 1"


def _measure(workspace: Workspace) -> dict[str, float | str]:
    from graphrag_evaluation.metrics.index import known_metrics, measure_index
    from graphrag_pipeline.query.release import open_release

    store, limits = EvaluationStore(workspace.home), workspace.store.limits
    opened = open_release(workspace.home, settings=workspace.settings, limits=limits)
    with opened as release, store.session():
        id = release.facts.id
        metrics = known_metrics(store, id) or measure_index(release, store)
    values = {
        metric.name + (f"_level_{metric.level}" if metric.has_level else ""): round(metric.value, 4)
        for metric in metrics
    }
    return {**values, "release": id}


def _is_made(workspace: Workspace, release: str) -> bool:
    if not workspace.paths.evaluation.is_file():
        return False
    with EvaluationStore(workspace.home).read() as con:
        return con.execute(_IS_MADE, [release]).fetchone() is not None


QUALITY = Measure(
    about=(
        "How good each release is by itself. By level, of communities: `modularity` and `coverage` "
        "(the share of links within them), `calinski_harabasz` and `centroid_cosine` (how alike "
        "their members are). Over all: `clustering_coefficient` and `transitivity` (how often "
        "neighbours are neighbours), `orphans` (the share of entities without a link), "
        "`duplicates` (entities of the same letters and digits), `groundedness` (the share of "
        "findings in reports whose words stand in what they cite)."
    ),
    label="quality",
    group="evaluation",
    measure=_measure,
    is_made=_is_made,
)
