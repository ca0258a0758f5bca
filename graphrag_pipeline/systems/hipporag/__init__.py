"""HippoRAG, the first and the second: passages by PageRank over the graph.

The facts and synonyms that they read others read, too: ``graphrag_pipeline.structures.synonyms``.

Source: Gutiérrez et al., 2024 and 2025. README.md says what they do.
"""

from graphrag_pipeline.core.systems import System

SYSTEM = System(methods={"hipporag": "hipporag:HIPPORAG", "hipporag2": "hipporag2:HIPPORAG2"})
