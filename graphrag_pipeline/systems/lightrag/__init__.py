"""LightRAG: entities by details, relationships by themes, and their text.

Source: Guo et al., 2024. README.md says what it does.
"""

from graphrag_pipeline.core.systems import System

SYSTEM = System(
    methods={"lightrag": "method:LIGHTRAG"},
    reads={"lightrag": ("entities", "relationships")},
)
