"""Slices of embeddings, made by workers: a partition for each."""

# No annotations from the future: Dagster reads the class of a context from them.

import dagster as dg

from graphrag_pipeline.assets.common import OWNERS
from graphrag_pipeline.assets.embeddings import GROUP
from graphrag_pipeline.assets.names import Names
from graphrag_pipeline.resources import IndexResource, readable_failures
from graphrag_pipeline.store.objects import ObjectStore
from graphrag_pipeline.workers.slices import make_slice

EMBEDDING_SLICES = "embedding_slices"


def build_slices(names: Names) -> dg.AssetsDefinition:
    """Return the asset of the slices."""

    @dg.asset(
        key=names.key(EMBEDDING_SLICES),
        partitions_def=names.slices,
        group_name=names.name(GROUP),
        kinds={"python"},
        owners=OWNERS,
        required_resource_keys={names.resource},
        description="Vectors of a slice of texts, made by a worker; the coordinator takes them.",
    )
    def embedding_slices(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        index: IndexResource = getattr(context.resources, names.resource)
        with readable_failures():
            objects = ObjectStore(index.settings.storage.url)
            n_rows = make_slice(index.settings, objects, context.partition_key)
        return dg.MaterializeResult(metadata={"dagster/partition_row_count": n_rows})

    return embedding_slices
