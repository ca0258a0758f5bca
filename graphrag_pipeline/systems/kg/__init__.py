"""KG-GraphRAG: relationships around the entities that a question names, and their text.

Source: Han et al., 2025. README.md says what it does.
"""

from graphrag_pipeline.core.systems import System

SYSTEM = System(
    methods={"kg_triplets": "method:KG_TRIPLETS", "kg_triplets_text": "method:KG_TRIPLETS_TEXT"}
)
