"""Several methods on one question, on one release: what each found, and what it took."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.errors import GraphRAGError, InputError
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.query.engine import QueryEngine, plain_question
from graphrag_pipeline.query.methods import method_named, read_method
from graphrag_pipeline.query.results import Answer, Retrieval

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings


@dataclass(frozen=True)
class Compared:
    """What one method gave: an answer with its retrieval, a retrieval alone, or why neither.

    ``context_tokens`` are those of the retrieved context, ``seconds`` all that it took.
    """

    method: str
    retrieval: Retrieval | None = None
    answer: Answer | None = None
    error: str = ""
    context_tokens: int = 0

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
        found, made = self.retrieval, self.answer
        citations = made.citations if made else found.citations
        return {
            "method": self.method,
            "parameters": dict(found.parameters),
            "release": found.release,
            "steps": list(found.steps),
            "records": [{"kind": r.kind, "id": r.id, "title": r.title} for r in found.records],
            "citations": [asdict(citation) for citation in citations],
            "context_tokens": self.context_tokens,
            "seconds": self.seconds,
            **(_answered(made) if made else {}),
        }


def compare(
    question: str,
    methods: Sequence[str],
    *,
    retrieval_only: bool = False,
    home: str | Path | None = None,
    release: str | None = None,
    settings: Settings | None = None,
) -> list[Compared]:
    """Return what each method gives for a question, in their order, on one release.

    A method is named as in ``bm25`` or, with parameters, ``lightrag:mode=local:top_k=20``. One that
    fails, for want of a model or in a call, gives its error and does not keep the others from
    theirs. What they share is loaded before the first is timed.

    Raises InputError for no method, an unknown method or parameter and an empty question; where all
    fail, an error like the first that tells all; and the errors of opening a release.
    """
    plain_question(question)
    chosen = {spec.strip(): read_method(spec) for spec in methods if spec.strip()}
    if not chosen:
        raise InputError("no method to compare: name some, such as bm25 and local")
    with QueryEngine(home, release=release, settings=settings) as engine:
        for name, given in chosen.values():
            method_named(name).parametrise(given, engine.index.settings.query)
        if engine.index.settings.embeddings.embedder != "llm":
            for name, given in chosen.values():
                with contextlib.suppress(GraphRAGError):
                    engine.retrieve(question, name, **given)
        found = [
            _compared(engine, question, spec, name, given, retrieval_only)
            for spec, (name, given) in chosen.items()
        ]
    errors = {compared.method: error for compared, error in found if error}
    if len(errors) == len(found):
        raise _together(errors)
    return [compared for compared, _ in found]


def _together(errors: Mapping[str, GraphRAGError]) -> GraphRAGError:
    """Return an error of the first one's type that tells each method's."""
    first, *others = errors.values()
    if {str(error) for error in others} <= {str(first)}:
        return first
    return type(first)("; ".join(f"{method}: {error}" for method, error in errors.items()))


def _compared(
    engine: QueryEngine,
    question: str,
    spec: str,
    name: str,
    given: Mapping[str, Any],
    retrieval_only: bool,
) -> tuple[Compared, GraphRAGError | None]:
    try:
        made = None if retrieval_only else engine.answer(question, name, **given)
        found = made.retrieval if made else engine.retrieve(question, name, **given)
    except GraphRAGError as error:
        return Compared(spec, error=str(error)), error
    tokens = count_tokens([found.context], engine.index.settings.chunks.encoding)[0]
    return Compared(spec, found, made, context_tokens=tokens), None


def _answered(answer: Answer) -> dict[str, Any]:
    """Return what an answer adds to its retrieval."""
    names = (
        "text", "generated", "calls", "model_calls", "cached_calls", "prompt_tokens",
        "completion_tokens", "cost", "references_removed", "failures",
    )  # fmt: skip
    return {name: getattr(answer, name) for name in names}
