"""RAPTOR: a tree of summaries over chunks, and two searches of it.

Source: Sarthi et al., 2024 (RAPTOR). README.md says what it does.
"""

from graphrag_pipeline.core.systems import System

SYSTEM = System(
    methods={"raptor": "method:RAPTOR"},
    structures={"raptor": "structure:RAPTOR"},
)
