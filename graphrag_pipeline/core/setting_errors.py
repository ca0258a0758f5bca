"""Wrong settings in words: what was written, and what is right."""

from __future__ import annotations

from collections.abc import Callable

from pydantic_core import ErrorDetails

from graphrag_pipeline.core.errors import did_you_mean
from graphrag_pipeline.core.model_settings import LLM, LlmSettings, ModelSettings


def shown(item: ErrorDetails) -> str:
    """Return a wrong value as it was written; an address without its user, password and query."""
    value = item["input"]
    if item["type"] in ("variable", "secret"):
        return "(not shown)"
    if item["type"] == "address":
        value = value.rpartition("@")[2].partition("?")[0]
    return repr(value)


def instead_in_a_model(section: str, name: str, written: Callable[[str], str]) -> str:
    """Return what to write in place of a setting that no section of a model has."""
    if name == "embedding_model":
        name = "model"
    elif name in LlmSettings.model_fields:
        return f"it is for all models: set {written(f'{LLM}.{name}')}"
    names = ModelSettings.model_fields
    return did_you_mean(name, names, "remove it", lambda close: written(f"{section}.{close}"))


def what_is_right(item: ErrorDetails) -> str:
    """Return what would be right in place of a value that is of a wrong kind."""
    if item["type"] == "model_type":
        section = ".".join(str(part) for part in item["loc"])
        return f"must be a section, [{section}], with settings beneath it"
    if item["type"] == "tuple_type":
        return 'must be a list, such as ["one", "other"]'
    if item["type"] == "string_pattern_mismatch" and item["loc"][-1] == "reranker":
        return 'must be "llm" or "local:NAME", or empty for none'
    if item["type"] == "dict_type":
        return 'must be a table, such as { setting = "value" }'
    return item["msg"][0].lower() + item["msg"][1:]
