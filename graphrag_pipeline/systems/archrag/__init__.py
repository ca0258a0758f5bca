"""ArchRAG: attributed communities, level upon level, and one search down through them.

Source: Wang et al., 2025 (ArchRAG). README.md says what it does.
"""

from graphrag_pipeline.core.systems import System

SYSTEM = System(
    methods={"archrag": "method:ARCHRAG"},
    structures={"attributed": "structure:ATTRIBUTED"},
    reads={"archrag": ("entities", "relationships")},
)
