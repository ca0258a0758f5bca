"""The HippoRAG methods' calls before the answer: names of the question, and facts filtered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from graphrag_pipeline.llm.errors import ModelError, ModelOutputError
from graphrag_pipeline.llm.parsing import parse_json_object
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.hipporag2_search import HippoRag2Parameters, passages_from
from graphrag_pipeline.query.methods.hipporag_search import (
    HippoRagParameters,
    hipporag_search,
    passages_around,
)
from graphrag_pipeline.query.operators.facts import Fact
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.asking import Asking, Final
from graphrag_pipeline.query.writing.lists import ask_lists
from graphrag_pipeline.query.writing.single import from_records

_STEP = "filter facts"
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "integer"}}},
    "required": ["facts"],
    "additionalProperties": False,
}


async def hipporag2_answer(asking: Asking, p: HippoRag2Parameters) -> Final | None:
    """Have a model filter the facts, and answer from the passages that the rest leads to."""
    index, text = asking.index, asking.search_text
    facts = await asking.retrieve(lambda: op.best_facts(index, text, p.facts))
    kept = await _filtered(asking, facts) if facts else []
    records = await asking.retrieve(lambda: passages_from(index, text, kept, p))
    return from_records(records, "basic_answer")


async def hipporag_answer(asking: Asking, p: HippoRagParameters) -> Final | None:
    """Have a model name the question's entities, and answer from the passages around them."""
    limits = {"max_entities": str(p.entities), "max_synonyms": "0"}
    lists = await ask_lists(asking, "entities", "question_entities", ("entities",), **limits)

    def found() -> list[Record]:
        index, text = asking.index, asking.search_text
        if lists is None:
            return hipporag_search(index, text, p)
        return passages_around(index, text, lists[0][: p.entities], p)

    return from_records(await asking.retrieve(found), "basic_answer")


async def _filtered(asking: Asking, facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts that a model finds relevant; all, if its answer cannot be had or read."""
    shown = "\n".join(f"{n}. {' '.join(fact.text.split())}" for n, fact in enumerate(facts, 1))
    read = partial(_numbers, most=len(facts))
    try:
        chosen = await asking.read(_STEP, read, _SCHEMA, "filter_facts", facts=shown)
    except ModelError as error:
        if error.stops_everything:
            raise
        asking.failures.append(f"{_STEP}: {error}")
        return list(facts)
    asking.trace.step(f"{len(chosen)} of {len(facts)} facts kept by the model")
    return [fact for n, fact in enumerate(facts, 1) if n in chosen]


def _numbers(text: str, *, most: int) -> set[int]:
    given, _ = parse_json_object(text)
    listed = given.get("facts")
    if not isinstance(listed, list):
        raise ModelOutputError('the answer must be a JSON object with the list "facts"')
    whole = {int(n) for n in listed if isinstance(n, int | float) and not isinstance(n, bool)}
    return {n for n in whole if 1 <= n <= most}
