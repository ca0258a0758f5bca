"""Seconds that the stages of an index took, and the stages that each method needs.

rag_vs_graphrag, tables 26 and 27; hirag, table 5. A stage needs those that fill the tables it is
made from, as assets and structures declare these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from graphrag_evaluation.presets.storage import VECTORS_OF, needs_of, tables_of_part
from graphrag_pipeline.ingest.stages import IMPORTED
from graphrag_pipeline.structures.registry import all_structures, known_vector_tables

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_BEFORE = "before"
"""The row of ``stage_seconds`` of releases from before seconds were kept."""
_SECONDS = f"""
SELECT stage, sum(seconds) AS seconds FROM (
    SELECT stage, seconds FROM batch_stages UNION ALL
    SELECT stage, seconds FROM stage_seconds WHERE stage <> '{_BEFORE}') GROUP BY stage
"""
_ORIGIN = f"""
SELECT 1 AS indexes, (SELECT count(*) FROM releases) AS releases,
       (SELECT sum(runs) FROM stage_seconds WHERE stage = '{_BEFORE}') AS untimed,
       (SELECT count(*) FROM batch_stages WHERE version = '{IMPORTED}') AS taken_over
"""
_GRAPH, _COMMUNITIES, _REPORTS = "graph", "communities", "reports_level_"
_MADE_FROM: Final[Mapping[str, tuple[str, ...]]] = {
    "chunks": ("documents",),
    "extractions": ("chunks",),
    "resolution": ("extractions",),
    _GRAPH: ("resolution",),
    _COMMUNITIES: (_GRAPH,),
    _REPORTS: (_COMMUNITIES,),
}
_FILLED_BY: Final[Mapping[str, str]] = {
    "documents": "documents",
    "chunks": "chunks",
    "extractions": "extractions",
    "entity_aliases": "resolution",
    "entities": _GRAPH,
    "relationships": _GRAPH,
    "communities": _COMMUNITIES,
    "hierarchy_communities": _COMMUNITIES,
    "community_reports": _REPORTS,
    "hierarchy_reports": _REPORTS,
}
_OWN_COMMUNITIES = {"archrag": "attributed_communities", "hirag": "hirag_communities"}
"""Parts with a hierarchy of their own: it is in the tables of that of the graph."""


def stage_seconds(release: Release) -> dict[str, float]:
    """Return the seconds of each stage that was run to its end, all runs together."""
    return {row["stage"]: row["seconds"] for row in release.rows(_SECONDS)}


def origin_of(release: Release) -> dict[str, float]:
    """Return how an index came to be, in numbers.

    ``indexes`` is 1, ``releases`` are those up to this one, ``untimed`` those of them whose seconds
    were not kept, and ``taken_over`` the stages whose rows come from elsewhere.
    """
    (row,) = release.rows(_ORIGIN)
    return {name: float(value or 0) for name, value in row.items()}


def stages_needed(method: str, stages: Collection[str]) -> list[str]:
    """Return those of some stages that a method needs; all for one that is not known here."""
    parts = needs_of(method)
    if parts is None:
        return [*stages]
    filled_by, made_from = _declared()
    needed: set[str] = set()
    own = [table for part, table in _OWN_COMMUNITIES.items() if part in parts]
    awaited = [filled_by[table] for table in own]
    for part in parts:
        if part != _COMMUNITIES or not own:
            awaited += _makers_of(part, filled_by)
    while awaited:
        stage = awaited.pop()
        if stage not in needed:
            needed.add(stage)
            awaited += made_from.get(stage, ())
    return [stage for stage in stages if (_REPORTS if _is_report(stage) else stage) in needed]


def _is_report(stage: str) -> bool:
    return stage.startswith(_REPORTS)


def _makers_of(part: str, filled_by: Mapping[str, str]) -> Iterator[str]:
    if part.startswith(VECTORS_OF):
        yield f"{part.removeprefix(VECTORS_OF)}_vectors"
    for table in tables_of_part(part):
        if table in filled_by:
            yield filled_by[table]


def _declared() -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the stage that fills each table, and the stages that each stage is made from."""
    steps = {"__".join(step.key): step for each in all_structures() for step in each.steps}
    filled_by = {**_FILLED_BY, **{step.table: stage for stage, step in steps.items()}}
    made_from = {stage: [*others] for stage, others in _MADE_FROM.items()}
    for table in known_vector_tables().values():
        made_from[f"{table.name}_vectors"] = [filled_by[name] for name in table.made_from]
    for stage, step in steps.items():
        of_tables = [filled_by[name] for name in step.made_from]
        made_from[stage] = [*of_tables, *(f"{name}_vectors" for name in step.vectors)]
    return filled_by, made_from
