"""Schemas of answers in JSON: every text and list in them has a most, fitted to what a call writes.

A small model may write one sentence until its tokens end; by a schema with ``maxLength`` and
``maxItems`` it comes to its end. Servers with grammars (llama.cpp, Ollama, vLLM) keep to both,
OpenAI's own knows ``maxItems`` alone. The mosts are no part of what is asked: with others the same
question has the same key in the cache.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.llm.parsing import parse_json_object

Schema = Mapping[str, Any]

LONGEST_TEXT: Final = 1900
"""No text has more characters: llama.cpp refuses a grammar that repeats something 2,000 times."""
NUMBER: Final[Schema] = {"type": "number"}
INTEGER: Final[Schema] = {"type": "integer"}
BOOLEAN: Final[Schema] = {"type": "boolean"}

_TEXT_MOST, _LIST_MOST = "maxLength", "maxItems"
_MOSTS = frozenset([_TEXT_MOST, _LIST_MOST])
# Where a schema of somebody else says nothing.
_USUAL_LENGTH, _USUAL_NUMBER = 600, 20
_CHARS_OF_A_TOKEN = 3
_CHARS_OF_A_NUMBER = 16
_SHORTEST = 20
_FEWEST_OF_A_LENGTH = 1 / 3
_STEPS = 16
_SENTENCE_END = pattern_of(r"[.!?…][\"'”’»)\]*_]*(?=\s|\Z)|[。！？]+[」』”’》）]*")
_LEAST_OF_A_TEXT = 1 / 3
_OPEN_REFERENCE = pattern_of(r"\s*\[[^\[\]]*\Z")
_HALF_A_WORD = pattern_of(r"\s+\S*\Z")


def text(most: int) -> Schema:
    """Return the schema of a text of at most so many characters."""
    return {"type": "string", _TEXT_MOST: min(most, LONGEST_TEXT)}


def choice(values: Iterable[str]) -> Schema:
    """Return the schema of one of some texts."""
    return {"type": "string", "enum": list(values)}


def number_of(values: Iterable[int]) -> Schema:
    """Return the schema of one of some whole numbers."""
    return {"type": "integer", "enum": list(values)}


def listed(items: Schema, most: int) -> Schema:
    """Return the schema of a list of at most so many items."""
    return {"type": "array", "items": items, _LIST_MOST: max(1, most)}


def closed(**properties: Schema) -> Schema:
    """Return the schema of an object with these keys, all of them, and no other: strict mode."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def without_mosts(schema: Any, mosts: frozenset[str] = _MOSTS) -> Any:
    """Return a schema without its mosts: what is asked, however long the answer may become."""
    return _each(schema, lambda part: {k: v for k, v in part.items() if k not in mosts})


def without_lengths(schema: Any) -> Any:
    """Return a schema without the lengths of its texts: as OpenAI's strict mode takes it."""
    return without_mosts(schema, frozenset([_TEXT_MOST]))


def fitted(schema: Schema, tokens: int | None) -> Schema:
    """Return a schema whose longest answer fits into so many tokens, as far as three go a token.

    Texts become shorter, to a third; then lists too. A text or list without a most is given one.
    None: nothing is known of the call's end, and the mosts stay as they are.
    """
    whole = _scaled(schema, 1.0, 1.0)
    if tokens is None or _longest(whole) <= tokens * _CHARS_OF_A_TOKEN:
        return whole
    room = tokens * _CHARS_OF_A_TOKEN
    shorter = _largest(lambda share: _scaled(schema, share, 1.0), _FEWEST_OF_A_LENGTH, room)
    if shorter is not None:
        return shorter
    fewer = _largest(lambda share: _scaled(schema, _FEWEST_OF_A_LENGTH, share), 0.0, room)
    return fewer or _scaled(schema, 0.0, 0.0)


def cut_back(answer: str, schema: Schema) -> str:
    """Return an answer in JSON whose texts that their most has cut end with a whole sentence.

    A text is taken to be cut if it has just as many characters as it may have. One without a
    sentence in its last two thirds ends with a whole word. An answer that is no JSON is as before.
    """
    try:
        value = parse_json_object(answer)
    except ModelOutputError:
        return answer
    whole = _whole(value, schema)
    return answer if whole == value else json.dumps(whole, ensure_ascii=False)


def whole_text(cut: str) -> str:
    """Return a text that was cut as far as its last whole sentence, or else its last word."""
    ends = [match.end() for match in _SENTENCE_END.finditer(cut)]
    if ends and ends[-1] >= len(cut) * _LEAST_OF_A_TEXT:
        return cut[: ends[-1]]
    without_half = _OPEN_REFERENCE.sub("", cut)
    if without_half == cut:
        without_half = _HALF_A_WORD.sub("", cut)
    return without_half.rstrip() or cut


def _whole(value: Any, schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return value
    if isinstance(value, str):
        return whole_text(value) if len(value) == schema.get(_TEXT_MOST) else value
    if isinstance(value, list):
        return [_whole(item, schema.get("items")) for item in value]
    if isinstance(value, dict):
        parts = schema.get("properties") or {}
        return {key: _whole(item, parts.get(key)) for key, item in value.items()}
    return value


def _each(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Return a schema with a change made to it and to the schemas in it."""
    if not isinstance(schema, Mapping):
        return schema
    changed = change(dict(schema))
    if "items" in changed:
        changed["items"] = _each(changed["items"], change)
    if "properties" in changed:
        parts = changed["properties"]
        changed["properties"] = {name: _each(part, change) for name, part in parts.items()}
    return changed


def _scaled(schema: Schema, length: float, number: float) -> Schema:
    def scale(part: dict[str, Any]) -> dict[str, Any]:
        if part.get("type") == "string" and "enum" not in part:
            most = part.get(_TEXT_MOST, _USUAL_LENGTH)
            return part | {_TEXT_MOST: max(min(most, _SHORTEST), int(most * length))}
        if part.get("type") == "array":
            most = part.get(_LIST_MOST, _USUAL_NUMBER)
            return part | {_LIST_MOST: max(1, int(most * number))}
        return part

    return _each(schema, scale)


def _largest(make: Callable[[float], Schema], least: float, room: int) -> Schema | None:
    """Return what is made of the largest share, from ``least`` to 1, whose answers fit."""
    if _longest(make(least)) > room:
        return None
    low, high = least, 1.0
    for _ in range(_STEPS):
        share = (low + high) / 2
        low, high = (low, share) if _longest(make(share)) > room else (share, high)
    return make(low)


def _longest(schema: Schema) -> int:
    """Return the characters of the longest answer by a schema."""
    kind = schema.get("type")
    if "enum" in schema:
        return max((len(str(value)) for value in schema["enum"]), default=0) + 2
    if kind == "string":
        return schema[_TEXT_MOST] + 2
    if kind == "array":
        return schema[_LIST_MOST] * (_longest(schema.get("items") or NUMBER) + 1) + 2
    if kind == "object":
        parts = schema.get("properties") or {}
        return 2 + sum(len(name) + 4 + _longest(part) for name, part in parts.items())
    return _CHARS_OF_A_NUMBER
