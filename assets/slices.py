"""Slices of a stage's work, made by workers: a partition for each."""

# No annotations from the future: Dagster reads the class of a context from them.

import dagster as dg

from graphrag_pipeline.assets.common import OWNERS
from graphrag_pipeline.assets.names import Names
from graphrag_pipeline.resources import IndexResource, readable_failures
from graphrag_pipeline.store.objects import ObjectStore
from graphrag_pipeline.workers.slices import SliceKind, make_slice


def build_slices(kind: SliceKind, names: Names) -> dg.AssetsDefinition:
    """Return the asset of the slices of a kind."""

    @dg.asset(
        key=names.key(kind.asset),
        partitions_def=names.slices(kind),
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
