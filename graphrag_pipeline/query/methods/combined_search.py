"""Vector search and GraphRAG's local search together: the one that suits, or both."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.llm.parsing import parse_json_object
from graphrag_pipeline.llm.schemas import choice, closed
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.chunk_search import BASIC
from graphrag_pipeline.query.methods.local_search import LOCAL
from graphrag_pipeline.query.methods.method import (
    Method,
    as_mapping,
    hierarchy_level,
    number,
    parameter_rows,
)
from graphrag_pipeline.query.results import Record

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking, Final

_LINKS_OF_A_CHAIN = 2
_LINK = pattern_of(r"(?<!^)\b(?:of|that|who|whose|whom|which|where)\b|'s\b", re.IGNORECASE)
_REASONING = pattern_of(
    r"\b(?:why|how (?!many|much|old|long|far|tall|often)|because|both|between|compared?|comparison|"
    r"contrast|difference|differ|similar|relat(?:e|ed|ion|ions|ionship|ionships)|"
    r"connect(?:ed|ion|ions)?|common|cause[ds]?|lead|led|influenced?|themes?|overall|"
    r"before|after|earlier|later|than)\b",
    re.IGNORECASE,
)

_KINDS = {"fact": False, "reasoning": True}
_SCHEMA = closed(category=choice(f"{kind}-based" for kind in _KINDS))


@dataclass(frozen=True)
class SelectionParameters:
    """Selection: Han et al., 2025, 4.4 and A.6.

    A fact-based question is answered by ``basic``, a reasoning-based one by ``local``, each with
    its defaults but for these. A model tells them apart, by the prompt of A.6 with examples of our
    own, for the paper shows none. Without a model a rule of ours does: a question reasons if it
    names two entities of the index, if it has a word that asks to compare, relate or explain, or
    if it chains two or more links ("the director of the film that ..."). Words are English.
    """

    top_k: int = number(10)
    level: int = hierarchy_level(2)
    reranked: int = number(40, least=0)
    max_context_tokens: int = number(12_000)


@dataclass(frozen=True)
class IntegrationParameters(SelectionParameters):
    """Integration: Han et al., 2025, 4.4: the contexts of ``basic`` and ``local``, concatenated.

    Each has half of ``max_context_tokens``, by default what it has alone; what both find is shown
    once.
    """

    max_context_tokens: int = number(24_000)


def selection(index: Release, question: str, p: SelectionParameters) -> list[Record]:
    """Return what the search that suits the question finds, as told by rule."""
    reasoning = by_rule(index, question)
    index.trace.step(choice_made(reasoning, "by rule"))
    method = LOCAL if reasoning else BASIC
    return method.retrieve(index, question, parameters_of(index, method, p))


def by_rule(index: Release, question: str) -> bool:
    """Return whether a question needs reasoning, without a model."""
    return (
        len(op.entities_named_in(index, question, 2, apart=True)) > 1
        or _REASONING.search(question) is not None
        or len(_LINK.findall(question)) >= _LINKS_OF_A_CHAIN
    )


def choice_made(reasoning: bool, how: str) -> str:
    """Return the line that says what was chosen, and how."""
    kind = "reasoning-based: local" if reasoning else "fact-based: basic"
    return f"{kind} search ({how})"


def integration(index: Release, question: str, p: IntegrationParameters) -> list[Record]:
    """Return the records of vector search, then those of local search that are not among them."""
    half = replace(p, max_context_tokens=max(1, p.max_context_tokens // 2))
    text, graph = (
        method.retrieve(index, question, parameters_of(index, method, half))
        for method in (BASIC, LOCAL)
    )
    ids = {record.id for record in text}
    return [*text, *(record for record in graph if record.id not in ids)]


def parameters_of(index: Release, method: Method[Any], options: Any) -> Any:
    """Return the parameters of a method, those that another's have too taken from there."""
    names = {name for name, _, _ in parameter_rows(method)}
    values = {name: value for name, value in as_mapping(options).items() if name in names}
    return method.parametrise(values, index.settings)


async def selection_answer(asking: Asking, p: SelectionParameters) -> Final | None:
    """Classify the question (A.6), and answer it by vector search or by local search."""
    reasoning, how = await _is_reasoning(asking)
    asking.trace.step(choice_made(reasoning, how))
    method = LOCAL if reasoning else BASIC
    return await method.last_call(asking, parameters_of(asking.index, method, p))


async def _is_reasoning(asking: Asking) -> tuple[bool, str]:
    """Return whether the question needs reasoning, and who says so: the rule if no model can."""
    asked = asking.read("classify", _category, _SCHEMA, "classify_question")
    if (reasoning := await asking.tried("classify", asked)) is not None:
        return reasoning, "by model"
    return await asking.retrieve(lambda: by_rule(asking.index, asking.question)), "by rule"


def _category(text: str) -> bool:
    reply = parse_json_object(text)
    category = str(reply.get("category", "")).lower()
    kinds = [needs for kind, needs in _KINDS.items() if kind in category]
    if len(kinds) != 1:
        raise ModelOutputError('"category" must be "fact-based" or "reasoning-based"')
    return kinds[0]


SELECTION = Method(
    name="selection",
    summary="basic or local search, as the question needs",
    parameters=SelectionParameters,
    retrieve=selection,
    answer=selection_answer,
    short_calls=1,
)
INTEGRATION = Method(
    name="integration",
    summary="basic and local search together",
    parameters=IntegrationParameters,
    retrieve=integration,
    prompt="local_answer",
)
