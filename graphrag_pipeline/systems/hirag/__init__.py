"""HiRAG: entities that summarise clusters of entities, in layers, and paths between communities.

``layers`` clusters and stops, ``writing`` says what a cluster has in common, ``tables`` keeps both
up to date, and ``communities`` clusters the graph of all layers and reports on it. ``operators``
search it.

Source: Huang et al., 2025 (HiRAG), sections 4.1, algorithm 1, and 4.2. README.md says what it does.
"""

from graphrag_pipeline.core.systems import System

SYSTEM = System(
    methods={"hirag": "method:HIRAG"},
    structures={"hirag": "structure:HIRAG"},
    reads={"hirag": ("entities",)},
)
