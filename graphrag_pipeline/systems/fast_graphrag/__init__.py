"""fast-graphrag: PageRank from the question's entities to relationships and text.

Source: its code, 2024. README.md says what it does.
"""

from graphrag_pipeline.core.systems import System

SYSTEM = System(
    methods={"fast_graphrag": "method:FAST_GRAPHRAG"}, reads={"fast_graphrag": ("entities",)}
)
