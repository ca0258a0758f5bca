"""Structures that some methods need beside the graph, each optional and kept up to date."""

from graphrag_pipeline.llm.estimates import Chunks, Embedded, Estimate, Growth, ModelCalls
from graphrag_pipeline.structures.structure import (
    STRUCTURES,
    Check,
    FailureWarning,
    Outcome,
    Preview,
    Step,
    Structure,
    VectorTable,
    register_structure,
    unregister_structure,
)

__all__ = [
    "STRUCTURES",
    "Check",
    "Chunks",
    "Embedded",
    "Estimate",
    "FailureWarning",
    "Growth",
    "ModelCalls",
    "Outcome",
    "Preview",
    "Step",
    "Structure",
    "VectorTable",
    "register_structure",
    "unregister_structure",
]
