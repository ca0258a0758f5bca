"""Answers as JSON, whatever the method: the last call is asked for it, by a schema or without."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.llm.parsing import parse_json_object

_RULE = (
    "Whatever was said of length and form before, write one JSON object and nothing else: no "
    "words around it, and no Markdown."
)
_BY_SCHEMA = " It must be valid by this JSON schema:\n"
_NAME = "answer"


def checked_format(response_format: object) -> dict[str, Any] | None:
    """Return a form of answers as OpenAI's API has it; None for text.

    Raises InputError for what is no such form.
    """
    kind = response_format.get("type") if isinstance(response_format, Mapping) else response_format
    if kind is None or kind == "text":
        return None
    if kind == "json_object":
        return {"type": kind}
    asked = (
        response_format.get(kind)
        if isinstance(response_format, Mapping) and kind == "json_schema"
        else None
    )
    if not isinstance(asked, Mapping) or not isinstance(asked.get("schema"), Mapping):
        raise InputError(
            "response_format: its type must be text, json_object, or json_schema with "
            '{"json_schema": {"name": ..., "schema": {...}}}'
        )
    by_schema = {"name": str(asked.get("name") or _NAME), "schema": asked["schema"]}
    strict = {"strict": asked["strict"]} if isinstance(asked.get("strict"), bool) else {}
    return {"type": kind, "json_schema": {**by_schema, **strict}}


def json_rule(response_format: Mapping[str, Any]) -> str:
    """Return what is added to the last call of a method: servers need not know the form."""
    if response_format["type"] == "json_object":
        return _RULE
    schema = json.dumps(response_format["json_schema"]["schema"], ensure_ascii=False)
    return f"{_RULE}{_BY_SCHEMA}{schema}"


def plain_json(text: str) -> str:
    """Return the JSON object in an answer. Raises ModelOutputError where there is none."""
    value = parse_json_object(text)
    return json.dumps(value, ensure_ascii=False)
