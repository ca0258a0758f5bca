"""IRCoT: retrieval and reasoning by turns, each thought the next question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.extraction.rules.sentences import sentence_spans
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, choice, number, parameter_rows
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.query.results import Record, render_passages
from graphrag_pipeline.query.writing.lists import one_line_of
from graphrag_pipeline.query.writing.single import from_records

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking, Final

_LAST = pattern_of(r".* answer is:? (.*)\.?", re.IGNORECASE | re.DOTALL)


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

    over: str = choice("bm25", lambda: list(METHODS))
    top_k: int = number(6)
    paragraphs: int = number(15)
    steps: int = number(8)
    max_context_tokens: int = number(12_000)


def ircot(index: Release, question: str, p: IrcotParameters) -> list[Record]:
    """Return what the first step finds: as far as it goes without a model."""
    return fitted(index, merged([], one_step(index, question, p), p), p)


def one_step(index: Release, text: str, p: IrcotParameters) -> list[Record]:
    """Return what one retrieval adds: the best chunks for a text, and other records."""
    method = METHODS[p.over]
    defaults = {name: default for name, _, default in parameter_rows(method)}
    options = {"max_context_tokens": p.max_context_tokens}
    if "top_k" in defaults:
        options["top_k"] = max(p.top_k, defaults["top_k"])
    records = method.retrieve(index, text, method.parametrise(options, index.settings))
    chunks = [record.id for record in records if record.kind == "chunk"][: p.top_k]
    return [record for record in records if record.kind != "chunk" or record.id in chunks]


def merged(collected: Sequence[Record], new: Sequence[Record], p: IrcotParameters) -> list[Record]:
    """Return records with those added that are not there, chunks only up to the limit."""
    keys = {(record.kind, record.id) for record in collected}
    additions = [record for record in new if (record.kind, record.id) not in keys]
    room = p.paragraphs - sum(record.kind == "chunk" for record in collected)
    chunks = [record for record in additions if record.kind == "chunk"][: max(0, room)]
    return [*collected, *chunks, *(record for record in additions if record.kind != "chunk")]


def fitted(index: Release, records: Sequence[Record], p: IrcotParameters) -> list[Record]:
    """Return the records that fit in the budget of tokens, chunks before others.

    Where all together do not fit, each kind has its share, by the tokens that it takes, and what
    the kinds before it left of theirs.
    """
    kinds = sorted({record.kind for record in records}, key=lambda kind: (kind != "chunk", kind))
    of_kinds = [op.measured(index, [r for r in records if r.kind == kind]) for kind in kinds]
    shares = op.in_proportion(p.max_context_tokens, [op.tokens_of(index, r) for r in of_kinds])
    fitting: list[Record] = []
    budget = 0
    for of_kind, tokens in zip(of_kinds, shares, strict=True):
        budget += tokens
        part = op.fill(index, of_kind, budget)
        budget -= op.tokens_of(index, part)
        fitting += part
    return fitting


async def ircot_answer(asking: Asking, p: IrcotParameters) -> Final | None:
    """Reason and retrieve by turns, and answer from all that was found."""
    thoughts: list[str] = []
    records = await _retrieve(asking, asking.search_text, [], p)
    for step in range(p.steps):
        thought = await _think(asking, records, thoughts)
        if not thought or thought in thoughts:
            break
        thoughts.append(thought)
        if _LAST.match(thought) or step + 1 == p.steps:
            break
        records = await _retrieve(asking, thought, records, p)
    asking.trace.steps += thoughts
    fitting = await asking.retrieve(lambda: fitted(asking.index, records, p))
    is_text = all(record.kind == "chunk" for record in fitting)
    return from_records(fitting, "basic_answer" if is_text else "local_answer")


async def _retrieve(
    asking: Asking, text: str, records: Sequence[Record], p: IrcotParameters
) -> list[Record]:
    def more() -> list[Record]:
        return fitted(asking.index, merged(records, one_step(asking.index, text, p), p), p)

    return await asking.retrieve(more)


async def _think(asking: Asking, records: Sequence[Record], thoughts: Sequence[str]) -> str:
    """Return the next sentence of reasoning, empty if the model gives none."""
    values = {"context": render_passages(records), "text": "\n".join(thoughts)}
    said = await asking.tried("reason", asking.say("reason", "ircot_step", **values))
    thought = (said or "").strip()
    first = next(iter(sentence_spans(thought)), (0, len(thought)))
    return one_line_of(thought[slice(*first)])


IRCOT = Method(
    name="ircot",
    summary="another method again and again, for each step of reasoning",
    parameters=IrcotParameters,
    retrieve=ircot,
    needs_model=True,
    answer=ircot_answer,
    readings=lambda p: p.steps + 1,
)
