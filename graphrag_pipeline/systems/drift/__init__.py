"""DRIFT search: from the nearest reports to follow-up questions, answered by local search.

Source: the reference implementation of GraphRAG. README.md says what it does.
"""

from graphrag_pipeline.core.systems import System

SYSTEM = System(
    methods={"drift": "method:DRIFT"},
    reads={"drift": ("entities", "community_reports")},
)
