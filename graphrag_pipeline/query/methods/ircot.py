"""IRCoT: retrieval and reasoning by turns, each thought the next question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import (
    Method,
    choice,
    number,
    parameter_rows,
)
from graphrag_pipeline.query.results import Record

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release


def _searches() -> Sequence[str]:
    from graphrag_pipeline.query.methods import METHODS

    return list(METHODS)


@dataclass(frozen=True)
class IrcotParameters:
    """IRCoT: Trivedi et al., 2023, section 3, with the settings of its code.

    The method ``over`` which it goes retrieves for the question, then for each sentence that the
    model adds to its reasoning; the ``top_k`` best chunks of each step are added to those there
    are, until there are ``paragraphs``, and other records with them. It ends with a sentence that
    says "answer is", or after ``steps`` sentences. Then the question is answered from what was
    collected, as other methods do it, for citations, and without the paper's 20 examples. A method
    in which a model takes part retrieves by its rules.
    """

    over: str = choice("bm25", _searches)
    top_k: int = number(6)
    paragraphs: int = number(15)
    steps: int = number(8)
    max_context_tokens: int = number(12_000)


def ircot(index: Release, question: str, p: IrcotParameters) -> list[Record]:
    """Return what the first step finds: as far as it goes without a model."""
    return fitted(index, merged([], one_step(index, question, p), p), p)


def one_step(index: Release, text: str, p: IrcotParameters) -> list[Record]:
    """Return what one retrieval adds: the best chunks for a text, and other records."""
    from graphrag_pipeline.query.methods import METHODS

    method = METHODS[p.over]
    defaults = {name: default for name, _, default in parameter_rows(method)}
    given = {"max_context_tokens": p.max_context_tokens}
    if "top_k" in defaults:
        given["top_k"] = max(p.top_k, defaults["top_k"])
    found = method.retrieve(index, text, method.parametrise(given, index.settings.query))
    chunks = [record.id for record in found if record.kind == "chunk"][: p.top_k]
    return [record for record in found if record.kind != "chunk" or record.id in chunks]


def merged(collected: Sequence[Record], new: Sequence[Record], p: IrcotParameters) -> list[Record]:
    """Return records with those added that are not there, chunks only up to the limit."""
    known = {(record.kind, record.id) for record in collected}
    added = [record for record in new if (record.kind, record.id) not in known]
    room = p.paragraphs - sum(record.kind == "chunk" for record in collected)
    chunks = [record for record in added if record.kind == "chunk"][: max(0, room)]
    return [*collected, *chunks, *(record for record in added if record.kind != "chunk")]


def fitted(index: Release, records: Sequence[Record], p: IrcotParameters) -> list[Record]:
    """Return the records that fit in the budget of tokens, chunks before others."""
    kinds = sorted({record.kind for record in records}, key=lambda kind: (kind != "chunk", kind))
    left = p.max_context_tokens
    kept: list[Record] = []
    for kind in kinds:
        filled = op.fill(index, [record for record in records if record.kind == kind], left)
        left -= op.tokens_of(index, filled)
        kept += filled
    return kept


IRCOT = Method(
    "ircot",
    "another method again and again, for each step of reasoning",
    IrcotParameters,
    ircot,
    needs_model=True,
)
