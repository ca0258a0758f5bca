"""LazyGraphRAG: text that a model finds relevant, down the communities, within a budget.

``chunk_tree`` says where chunks stand, ``descent`` what is tested next, ``relevance`` tests it.

Source: Edge, Trinh and Larson, 2024, described without code. README.md says what it does.
"""

from graphrag_pipeline.core.systems import System

SYSTEM = System(methods={"lazy": "method:LAZY"})
