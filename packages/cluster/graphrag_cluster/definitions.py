"""Definitions that many workers add to Dagster: slices of a stage's work, each a partition."""

# No annotations from the future: Dagster reads the class of a context from them.

import dagster as dg

from graphrag_cluster.objects import ObjectStore
from graphrag_cluster.slices import KINDS, SliceKind, make_slice
from graphrag_pipeline.assets.common import OWNERS
from graphrag_pipeline.assets.names import Names
from graphrag_pipeline.core.service_settings import IN_PROCESS
from graphrag_pipeline.definitions import Building, job_beside
from graphrag_pipeline.resources import IndexResource, readable_failures


def build_slices(kind: SliceKind, names: Names) -> dg.AssetsDefinition:
    """Return the asset of the slices of a kind."""

    @dg.asset(
        key=names.key(kind.asset),
        partitions_def=dg.DynamicPartitionsDefinition(name=names.name(kind.partitions)),
        group_name=names.name(kind.group),
        kinds={"python"},
        owners=OWNERS,
        required_resource_keys={names.resource},
        description=kind.about,
    )
    def slices(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        index: IndexResource = getattr(context.resources, names.resource)
        with readable_failures(), index.counting() as spent:
            objects = ObjectStore(index.settings.storage.url)
            n_rows = make_slice(kind, index.settings, objects, context.partition_key)
        metadata = {"dagster/partition_row_count": n_rows, **spent.metadata}
        return dg.MaterializeResult(metadata=metadata)

    return slices


def slice_definitions(building: Building) -> list[dg.Definitions]:
    """Return the slices that workers make of a stage: of every kind, for the coordinator orders.

    Nothing without workers.
    """
    index, names = building.index, building.names
    parts: list[dg.Definitions] = []
    if index.settings.workers.launcher == IN_PROCESS:
        return parts
    for kind in KINDS:
        slices = build_slices(kind, names)
        job = job_beside(names.name(kind.job), [slices], kind.about)
        parts.append(dg.Definitions(assets=[slices], jobs=[job]))
    return parts
