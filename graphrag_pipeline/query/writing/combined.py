"""Selection's answers: a model says what kind a question is, the search for it does the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphrag_pipeline.llm.errors import ModelError, ModelOutputError
from graphrag_pipeline.llm.parsing import parse_json_object
from graphrag_pipeline.query.methods.basic_search import BASIC
from graphrag_pipeline.query.methods.combined_search import (
    SelectionParameters,
    by_rule,
    choice_made,
    parameters_of,
)
from graphrag_pipeline.query.methods.local_search import LOCAL
from graphrag_pipeline.query.writing.asking import Asking, Final
from graphrag_pipeline.query.writing.single import in_one_call

_KINDS = {"fact": False, "reasoning": True}
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"category": {"type": "string", "enum": [f"{kind}-based" for kind in _KINDS]}},
    "required": ["category"],
    "additionalProperties": False,
}


async def selection_answer(asking: Asking, p: SelectionParameters) -> Final | None:
    """Classify the question (A.6), and answer it by vector search or by local search."""
    reasoning, how = await _is_reasoning(asking)
    asking.trace.step(choice_made(reasoning, how))
    method, prompt = (LOCAL, "local_answer") if reasoning else (BASIC, "basic_answer")
    return await in_one_call(method, prompt)(asking, parameters_of(asking.index, method, p))


async def _is_reasoning(asking: Asking) -> tuple[bool, str]:
    """Return whether the question needs reasoning, and who says so: the rule if no model can."""
    try:
        return await asking.read("classify", _category, _SCHEMA, "classify_question"), "by model"
    except ModelError as error:
        if error.stops_everything:
            raise
        asking.failures.append(f"classify: {error}")
        return await asking.retrieve(lambda: by_rule(asking.index, asking.question)), "by rule"


def _category(text: str) -> bool:
    given, _ = parse_json_object(text)
    said = str(given.get("category", "")).lower()
    kinds = [needs for kind, needs in _KINDS.items() if kind in said]
    if len(kinds) != 1:
        raise ModelOutputError('"category" must be "fact-based" or "reasoning-based"')
    return kinds[0]
