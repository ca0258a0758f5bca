"""The retrieval methods. A new one is a module with a :class:`Method`, and a line here."""

from __future__ import annotations

from typing import Any

from graphrag_pipeline.query.methods.basic_search import BASIC
from graphrag_pipeline.query.methods.drift_search import DRIFT
from graphrag_pipeline.query.methods.fulltext_search import FULLTEXT
from graphrag_pipeline.query.methods.global_search import GLOBAL
from graphrag_pipeline.query.methods.hybrid_search import HYBRID
from graphrag_pipeline.query.methods.local_search import LOCAL
from graphrag_pipeline.query.methods.method import Method, parameter_rows
from graphrag_pipeline.query.methods.text_summary import TEXT_SUMMARY

METHODS: dict[str, Method[Any]] = {
    method.name: method for method in (BASIC, FULLTEXT, HYBRID, LOCAL, GLOBAL)
}
"""The methods that answer with and without a model."""

MODEL_METHODS: dict[str, Method[Any]] = {method.name: method for method in (DRIFT, TEXT_SUMMARY)}
"""The methods that answer with a model only."""


def methods_taking(parameter: str) -> list[str]:
    """Return the names of the methods that have a parameter."""
    return [
        name
        for name, method in (METHODS | MODEL_METHODS).items()
        if parameter in {row[0] for row in parameter_rows(method)}
    ]


__all__ = ["METHODS", "MODEL_METHODS", "Method", "methods_taking", "parameter_rows"]
