"""The methods as plain values: what each is for, its parameters, and whether it needs a model."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.query.methods.method import Method, as_mapping, words_of
from graphrag_pipeline.query.methods.registry import METHODS, MODEL_METHODS

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings


def list_methods(settings: Settings, tables: Collection[str] | None = None) -> list[dict[str, Any]]:
    """Return :func:`method_values` of every method, those first that need no model."""
    methods = (*METHODS.values(), *MODEL_METHODS.values())
    return [method_values(method, settings, tables) for method in methods]


def method_values(
    method: Method[Any], settings: Settings, tables: Collection[str] | None = None
) -> dict[str, Any]:
    """Return what a method is for, whether it can answer as things are set, and its parameters.

    ``tables`` are the tables of vectors of the release that it is to answer from. The default of a
    parameter is what a question gets that does not name it: that of the settings where they have
    one.
    """
    defaults = as_mapping(method.parametrise({}, settings))
    return {
        "name": method.name,
        "summary": method.summary,
        "needs_model": method.needs_model,
        "recommended": method.recommended,
        "can_answer": method.can_answer(settings, tables),
        "parameters": [
            {
                "name": field.name,
                "type": field.metadata["type"].__name__,
                "default": defaults[field.name],
                **_range(field.metadata),
            }
            for field in fields(method.parameters)
        ],
    }


def _range(rule: Any) -> dict[str, Any]:
    if "among" in rule:
        return {"among": list(words_of(rule["among"]))}
    return {name: rule[name] for name in ("least", "most") if rule[name] is not None}
