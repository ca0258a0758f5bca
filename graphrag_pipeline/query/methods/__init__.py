"""The retrieval methods. A new one is a module with a :class:`Method`, and a line here."""

from __future__ import annotations

import difflib
from typing import Any

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.query.methods.archrag_search import ARCHRAG
from graphrag_pipeline.query.methods.basic_search import BASIC
from graphrag_pipeline.query.methods.bm25_search import BM25
from graphrag_pipeline.query.methods.combined_search import INTEGRATION, SELECTION
from graphrag_pipeline.query.methods.drift_search import DRIFT
from graphrag_pipeline.query.methods.fast_graphrag import FAST_GRAPHRAG
from graphrag_pipeline.query.methods.global_search import GLOBAL
from graphrag_pipeline.query.methods.hipporag2_search import HIPPORAG2
from graphrag_pipeline.query.methods.hipporag_search import HIPPORAG
from graphrag_pipeline.query.methods.hirag_search import HIRAG
from graphrag_pipeline.query.methods.hybrid_search import HYBRID
from graphrag_pipeline.query.methods.ircot import IRCOT
from graphrag_pipeline.query.methods.kg_search import KG_TRIPLETS, KG_TRIPLETS_TEXT
from graphrag_pipeline.query.methods.lightrag import LIGHTRAG
from graphrag_pipeline.query.methods.local_search import LOCAL
from graphrag_pipeline.query.methods.method import Method, parameter_rows, read_parameters
from graphrag_pipeline.query.methods.no_retrieval import COT, ZERO_SHOT
from graphrag_pipeline.query.methods.ppr_search import PPR
from graphrag_pipeline.query.methods.raptor_search import RAPTOR
from graphrag_pipeline.query.methods.text_summary import TEXT_SUMMARY

METHODS: dict[str, Method[Any]] = {
    method.name: method
    for method in (
        BASIC,
        BM25,
        HYBRID,
        LOCAL,
        GLOBAL,
        KG_TRIPLETS,
        KG_TRIPLETS_TEXT,
        HIPPORAG,
        HIPPORAG2,
        LIGHTRAG,
        FAST_GRAPHRAG,
        HIRAG,
        RAPTOR,
        PPR,
        SELECTION,
        INTEGRATION,
        ARCHRAG,
    )
}
"""The methods that answer with and without a model."""

MODEL_METHODS: dict[str, Method[Any]] = {
    method.name: method for method in (DRIFT, TEXT_SUMMARY, IRCOT, ZERO_SHOT, COT)
}
"""The methods that answer with a model only."""

OTHER_NAMES = {"auto": "selection", "fulltext": "bm25"}
"""Further names of methods: what is asked for, and what it is called everywhere else."""


def method_named(name: str) -> Method[Any]:
    """Return a method by one of its names; raises InputError where there is none."""
    known = METHODS | MODEL_METHODS
    if (called := OTHER_NAMES.get(name, name)) not in known:
        names = [*known, *OTHER_NAMES]
        close = difflib.get_close_matches(str(name).lower(), names, n=1, cutoff=0.7)
        meant = f" (did you mean {close[0]}?)" if close else ""
        raise InputError(f"unknown method {name!r}{meant}: use one of {', '.join(names)}")
    return known[called]


def read_method(spec: str) -> tuple[str, dict[str, Any]]:
    """Return the method and the parameters that a text such as ``lightrag:mode=local`` names.

    Parameters follow the name, each after a colon. Raises InputError for an unknown method, and
    for what is no parameter with a value.
    """
    name, *parts = spec.split(":")
    method = method_named(name.strip())
    given = dict(_parameter(spec, part) for part in parts)
    return method.name, read_parameters(method, given)


def _parameter(spec: str, part: str) -> tuple[str, str]:
    name, equals, value = (piece.strip() for piece in part.partition("="))
    if not (name and equals and value):
        raise InputError(f"{spec!r}: write a parameter as METHOD:name=value")
    return name.replace("-", "_"), value


def methods_taking(parameter: str) -> list[str]:
    """Return the names of the methods that have a parameter."""
    return [
        name
        for name, method in (METHODS | MODEL_METHODS).items()
        if parameter in {row[0] for row in parameter_rows(method)}
    ]


__all__ = [
    "METHODS",
    "MODEL_METHODS",
    "Method",
    "method_named",
    "methods_taking",
    "parameter_rows",
    "read_method",
]
