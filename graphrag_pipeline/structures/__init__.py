"""Structures that some methods need beside the graph, each optional and kept up to date."""

from graphrag_pipeline.llm.estimates import (
    Chunks as Chunks,
    Embedded as Embedded,
    Estimate as Estimate,
    Growth as Growth,
    ModelCalls as ModelCalls,
)
from graphrag_pipeline.structures.structure import (
    STRUCTURES as STRUCTURES,
    Check as Check,
    Outcome as Outcome,
    Preview as Preview,
    Step as Step,
    Structure as Structure,
    VectorTable as VectorTable,
    register_structure as register_structure,
    unregister_structure as unregister_structure,
)
