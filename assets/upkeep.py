"""The nightly check of the index, as a check of what is published."""

# No annotations from the future: Dagster reads the class of a context from them.

from collections.abc import Sequence

import dagster as dg

from graphrag_pipeline.assets.common import adorned, markdown_rows
from graphrag_pipeline.assets.names import Names
from graphrag_pipeline.assets.publishing import PUBLISHED_INDEX
from graphrag_pipeline.resources import readable_failures
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.upkeep.problems import Problem

WHOLE = "index_is_whole"
_MOST_SHOWN = 30
_LONGEST = 400


def build_index_check(names: Names) -> dg.AssetChecksDefinition:
    """Return the check of everything that the index keeps; it fails, and stops nothing.

    A graph that is not the fold of its mentions costs nothing to make again: the next refresh does.
    """

    @dg.asset_check(
        asset=names.key(PUBLISHED_INDEX),
        name=WHOLE,
        description="Index, vectors, releases, manifests and answers can be read and agree with "
        "each other, as graphrag-pipeline check verifies.",
        required_resource_keys={names.resource},
    )
    def index_is_whole(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        # Every run is defined beside this, and none but the nightly one makes it.
        from graphrag_pipeline.upkeep.checking import check
        from graphrag_pipeline.upkeep.index_tables import fold_anew_if_needed

        index = getattr(context.resources, names.resource)
        with readable_failures():
            checked = check(index.workspace)
            is_folded_anew = fold_anew_if_needed(index.workspace, checked.problems)
        partitions = context.instance.get_dynamic_partitions(names.batches.name or "")
        problems = [*checked.problems, *_unknown_partitions(index.workspace, partitions)]
        return dg.AssetCheckResult(
            passed=not problems,
            severity=dg.AssetCheckSeverity.ERROR,
            description=problems[0].line if problems else "ok",
            metadata={
                "problems": len(problems),
                "can_be_repaired": sum(problem.can_repair for problem in problems),
                **({"next_refresh": "folds the whole graph anew"} if is_folded_anew else {}),
                **(adorned("lines", lambda: _lines(problems)) if problems else {}),
                **({"remarks": "; ".join(checked.notes)} if checked.notes else {}),
            },
        )

    return index_is_whole


def _lines(problems: Sequence[Problem]) -> dict[str, dg.MetadataValue]:
    rows = [(problem.where, problem.line[:_LONGEST]) for problem in problems[:_MOST_SHOWN]]
    return {"lines": markdown_rows(("where", "what"), rows)}


def _unknown_partitions(workspace: Workspace, partitions: Sequence[str]) -> list[Problem]:
    manifests = {path.stem for path in workspace.batches.folder.glob("*.json")}
    unknown = sorted(set(partitions) - manifests)
    if not unknown:
        return []
    return [
        Problem(
            check="partitions",
            where="Dagster's partitions",
            what="batches without a manifest",
            number=len(unknown),
            example=unknown[0],
            remedy="delete these partitions in Dagster's UI, or restore the manifests",
            can_repair=False,
        )
    ]
