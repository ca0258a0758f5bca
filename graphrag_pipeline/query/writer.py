"""Answers that a model writes: the text of a method's last call, its references checked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.llm.configured import (
    calls_place,
    counted_client,
    model_options,
    prompts_folder,
)
from graphrag_pipeline.query.asked_documents import limited_as_asked
from graphrag_pipeline.query.citations import citations_of, distinct
from graphrag_pipeline.query.follow_ups import follow_ups_by_model
from graphrag_pipeline.query.methods.method import Method, as_mapping
from graphrag_pipeline.query.methods.registry import method_named
from graphrag_pipeline.query.results import Answer, Retrieval
from graphrag_pipeline.query.short_answers import NOT_IN_DOCUMENTS, short_form
from graphrag_pipeline.query.writing.asking import Asking, Final
from graphrag_pipeline.query.writing.references import ReferenceFilter, Shown, resolve

if TYPE_CHECKING:
    from graphrag_pipeline.query.ask import Ask
    from graphrag_pipeline.query.release import Release

NOTHING_RELEVANT = "Nothing in the index bears on this question.\n"


async def write_answer(
    index: Release, ask: Ask, *, stream: bool
) -> AsyncGenerator[str | Answer, None]:
    """Yield the pieces of an answer, one piece where it is not to stream, then the whole of it.

    JSON does not stream: it is read before it is given.

    Raises the model's error where there can be no answer, and InputError where the budget is too
    small for any of what is found, or nothing is found that JSON could be written from.
    """
    began = time.perf_counter()
    method = method_named(ask.method)
    stream = stream and ask.response_format is None
    parameters = method.parametrise(ask.parameters, index.settings)
    options = model_options(index.settings, "answers")
    index = await asyncio.to_thread(limited_as_asked, index, ask)
    async with counted_client(options, calls_place(index.settings, index.home)) as client:
        asking = Asking(index, client, ask, prompts=prompts_folder(index.settings))
        final = await method.last_call(asking, parameters)
        if final is None:
            asking.trace.check_fit(as_mapping(parameters))
            if ask.response_format is not None:
                raise InputError("nothing in the index bears on this question: try other words")
        references = ReferenceFilter(final.shown if final else Shown())
        texts: list[str] = []
        first = 0.0
        async with aclosing(_pieces(asking, final, references, stream=stream)) as pieces:
            async for piece in pieces:
                first = first or time.perf_counter() - began
                texts.append(piece)
                yield piece
        written = "".join(texts)
        text = _Written(short_form(written) if asking.is_short else written, final, references)
        questions: tuple[str, ...] = ()
        if ask.follow_ups and final is not None:
            questions = await follow_ups_by_model(asking, text.text, ask.follow_ups)
        answer = await _with_places(asking, method, parameters, text)
    timings = _timings(asking, time.perf_counter() - began, first)
    yield replace(answer, timings=timings, follow_ups=questions)


@dataclass(frozen=True)
class _Written:
    """The text of an answer, the call that gave it, if one was made, and what it refers to."""

    text: str
    final: Final | None
    references: ReferenceFilter


async def _with_places(
    asking: Asking, method: Method[Any], parameters: Any, draft: _Written
) -> Answer:
    """Return an answer with the places in documents that it refers to, and those it rests on."""
    index, final = asking.index, draft.final
    shown_records, evidence = (final.shown, final.evidence) if final else (Shown(), ())
    references = list(draft.references.cited)
    citations = await asking.retrieve(lambda: resolve(index, shown_records, references))
    places = await asking.retrieve(lambda: distinct(index, citations_of(index, evidence)))
    retrieval = Retrieval(
        method=method.name,
        query=asking.question,
        records=evidence,
        citations=places,
        timings={"total": asking.retrieval_seconds},
        parameters=as_mapping(parameters),
        release=index.facts.id,
        steps=tuple(asking.trace.steps),
    )
    return Answer(
        query=asking.question,
        method=method.name,
        text=draft.text,
        citations=citations,
        retrieval=retrieval,
        generated=final is not None,
        timings={},
        release=index.facts.id,
        **(asking.checked(draft.text, shown_records, draft.references.n_removed) if final else {}),
        failures=tuple(asking.failures),
        **asking.trace.spending(),
    )


def _timings(asking: Asking, total: float, first: float) -> dict[str, float]:
    return {
        "retrieve": asking.retrieval_seconds,
        "first_piece": first,
        "answer": total - asking.retrieval_seconds,
        "total": total,
    }


async def _pieces(
    asking: Asking, final: Final | None, references: ReferenceFilter, *, stream: bool
) -> AsyncGenerator[str, None]:
    if final is None:
        yield f"{NOT_IN_DOCUMENTS}\n" if asking.is_short else NOTHING_RELEVANT
        return
    if stream:
        async with aclosing(asking.pieces(final)) as pieces:
            async for piece in pieces:
                if ready := references.take(piece):
                    yield ready
        rest = references.finish()
    else:
        rest = references.take(await asking.text(final)) + references.finish()
    if rest:
        yield rest
