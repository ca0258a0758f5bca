"""Several methods on one question, on one release: what each found, and what it took."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core import showing
from graphrag_pipeline.core.errors import GraphRAGError, InputError
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.llm.running import run_calls
from graphrag_pipeline.query.ask import Ask, plain_question
from graphrag_pipeline.query.control import StoppedError
from graphrag_pipeline.query.engine import QueryEngine
from graphrag_pipeline.query.methods import method_named, read_method
from graphrag_pipeline.query.results import Answer, Retrieval

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings


@dataclass(frozen=True)
class Compared:
    """The result of one method: an answer with its retrieval, a retrieval alone, or why neither.

    ``context_tokens`` are those of the retrieved context, ``seconds`` all that it took.
    """

    method: str
    retrieval: Retrieval | None = None
    answer: Answer | None = None
    error: str = ""
    context_tokens: int = 0

    __repr__ = showing.brief

    @property
    def kinds(self) -> dict[str, int]:
        """The number of records by kind."""
        records = self.retrieval.records if self.retrieval else ()
        return dict(Counter(record.kind for record in records))

    @property
    def seconds(self) -> float:
        """Seconds from question to answer, or to the end of retrieval where that was all."""
        timed = self.answer or self.retrieval
        return timed.timings["total"] if timed else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; records by id, their texts are in citations."""
        if self.retrieval is None:
            return {"method": self.method, "error": self.error}
        retrieval, answer = self.retrieval, self.answer
        citations = answer.places if answer else retrieval.citations
        return {
            "method": self.method,
            "parameters": dict(retrieval.parameters),
            "release": retrieval.release,
            "steps": list(retrieval.steps),
            "records": [{"kind": r.kind, "id": r.id, "title": r.title} for r in retrieval.records],
            "citations": [asdict(citation) for citation in citations],
            "context_tokens": self.context_tokens,
            "seconds": self.seconds,
            **(_answered(answer) if answer else {}),
        }


def compare(
    question: str,
    methods: Sequence[str],
    *,
    where: Mapping[str, Any] | None = None,
    retrieval_only: bool = False,
    home: str | Path | None = None,
    release: str | None = None,
    labels: Collection[str] | None = None,
    settings: Settings | None = None,
) -> list[Compared]:
    """Return what each method gives for a question, in their order, on one release.

    A method is named as in ``bm25`` or, with parameters, ``lightrag:mode=local:top_k=20``. One that
    fails, for want of a model or in a call, gives its error and does not keep the others from
    theirs. What they share is loaded before the first is timed. ``where`` limits all to documents,
    as that of :class:`~graphrag_pipeline.query.ask.Ask`, ``labels`` to what these may see.

    Raises InputError for no method, an unknown method or parameter, no filter and an empty
    question; where all fail, an error like the first that tells all; and the errors of opening a
    release.
    """
    asks = compared_asks(question, methods, where)
    with QueryEngine(home, release=release, labels=labels, settings=settings) as engine:
        return run_calls(
            lambda: compare_on(engine, asks, retrieval_only=retrieval_only, rehearse=True)
        )


def compared_asks(
    question: str, methods: Sequence[str], where: Mapping[str, Any] | None = None
) -> dict[str, Ask]:
    """Return what is asked of each method that is named; see :func:`compare` for errors."""
    plain_question(question)
    asks = {spec.strip(): _ask(question, spec, where or {}) for spec in methods if spec.strip()}
    if not asks:
        raise InputError("no method to compare: name some, such as bm25 and local")
    return asks


async def compare_on(
    engine: QueryEngine, asks: Mapping[str, Ask], *, retrieval_only: bool, rehearse: bool = False
) -> list[Compared]:
    """Return :func:`compare` on an engine that is open.

    ``rehearse`` loads what the methods share before the first is timed, by asking each twice.
    """
    for ask in asks.values():
        method_named(ask.method).parametrise(ask.parameters, engine.index.settings)
    if rehearse and engine.index.settings.embeddings.embedder != "llm":
        for ask in asks.values():
            with contextlib.suppress(GraphRAGError):
                await asyncio.to_thread(engine.rehearse, ask)
    outcomes = [
        await _compared(engine, spec, ask, retrieval_only=retrieval_only)
        for spec, ask in asks.items()
    ]
    errors = {compared.method: error for compared, error in outcomes if error}
    if len(errors) == len(outcomes):
        raise _together(errors)
    return [compared for compared, _ in outcomes]


def _ask(question: str, spec: str, where: Mapping[str, Any]) -> Ask:
    method, parameters = read_method(spec)
    return Ask(question=question, method=method, parameters=parameters, where=where)


def _together(errors: Mapping[str, GraphRAGError]) -> GraphRAGError:
    """Return an error of the first one's type that tells each method's."""
    first, *rest = errors.values()
    if {str(error) for error in rest} <= {str(first)}:
        return first
    return type(first)("; ".join(f"{method}: {error}" for method, error in errors.items()))


async def _compared(
    engine: QueryEngine, spec: str, ask: Ask, *, retrieval_only: bool
) -> tuple[Compared, GraphRAGError | None]:
    try:
        answer = None if retrieval_only else await engine.aanswer(ask)
        retrieval = answer.retrieval if answer else await engine.aretrieve(ask)
    except StoppedError:
        raise
    except GraphRAGError as error:
        return Compared(spec, error=str(error)), error
    tokens = count_tokens([retrieval.context], engine.index.encoding)[0]
    return Compared(spec, retrieval, answer, context_tokens=tokens), None


def _answered(answer: Answer) -> dict[str, Any]:
    """Return what an answer adds to its retrieval."""
    names = (
        "text", "generated", "calls", "model_calls", "cached_calls", "prompt_tokens",
        "completion_tokens", "cost", "references_removed", "references",
        "names_no_source", "doubts", "failures",
    )  # fmt: skip
    return {name: getattr(answer, name) for name in names}
