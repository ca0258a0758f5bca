"""Vector search and GraphRAG's local search together: the one that suits, or both."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.basic_search import BASIC
from graphrag_pipeline.query.methods.local_search import LOCAL
from graphrag_pipeline.query.methods.method import Method, as_mapping, number, parameter_rows
from graphrag_pipeline.query.results import Record

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_LINKS_OF_A_CHAIN = 2
_LINK = re.compile(r"(?<!^)\b(?:of|that|who|whose|whom|which|where)\b|'s\b", re.IGNORECASE)
_REASONING = re.compile(
    r"\b(?:why|how (?!many|much|old|long|far|tall|often)|because|both|between|compared?|comparison|"
    r"contrast|difference|differ|similar|relat(?:e|ed|ion|ions|ionship|ionships)|"
    r"connect(?:ed|ion|ions)?|common|cause[ds]?|lead|led|influenced?|themes?|overall|"
    r"before|after|earlier|later|than)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class SelectionParameters:
    """Selection: Han et al., 2025, 4.4 and A.6; also called ``auto``.

    A fact-based question is answered by ``basic``, a reasoning-based one by ``local``, each with
    its defaults but for these. A model tells them apart, by the prompt of A.6 with examples of our
    own, for the paper shows none. Without a model a rule of ours does: a question reasons if it
    names two entities of the index, if it has a word that asks to compare, relate or explain, or
    if it chains two or more links ("the director of the film that ..."). Words are English.
    """

    top_k: int = number(10)
    level: int = number(2, least=0)
    max_context_tokens: int = number(12_000)


@dataclass(frozen=True)
class IntegrationParameters:
    """Integration: Han et al., 2025, 4.4: the contexts of ``basic`` and ``local``, concatenated.

    Each has half of ``max_context_tokens``, by default what it has alone; what both find is shown
    once.
    """

    top_k: int = number(10)
    level: int = number(2, least=0)
    max_context_tokens: int = number(24_000)


def selection(index: Release, question: str, p: SelectionParameters) -> list[Record]:
    """Return what the search that suits the question finds, as told by rule."""
    reasoning = by_rule(index, question)
    index.trace.step(choice_made(reasoning, "by rule"))
    chosen = LOCAL if reasoning else BASIC
    return chosen.retrieve(index, question, parameters_of(index, chosen, p))


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
    known = {record.id for record in text}
    return [*text, *(record for record in graph if record.id not in known)]


def parameters_of(index: Release, method: Method[Any], given: Any) -> Any:
    """Return the parameters of a method, those that another's have too taken from there."""
    names = {name for name, _, _ in parameter_rows(method)}
    values = {name: value for name, value in as_mapping(given).items() if name in names}
    return method.parametrise(values, index.settings.query)


SELECTION = Method(
    "selection", "basic or local search, as the question needs", SelectionParameters, selection
)
INTEGRATION = Method(
    "integration", "basic and local search together", IntegrationParameters, integration
)
