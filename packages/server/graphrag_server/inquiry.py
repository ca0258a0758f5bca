"""One question of one caller: whether he may ask, what it takes, and its line in the audit."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_pipeline.llm.ledger import hearing
from graphrag_pipeline.query.control import Control
from graphrag_pipeline.query.trace import Spending
from graphrag_server.callers import caller_of
from graphrag_server.limits import GONE
from graphrag_server.problems import HttpProblem
from graphrag_server.state import holder_of, server_of

if TYPE_CHECKING:
    from fastapi import Request

    from graphrag_pipeline.core.settings import Settings
    from graphrag_pipeline.llm.ledger import Call
    from graphrag_pipeline.query.results import Citation

log = logging.getLogger("graphrag_pipeline")

_SEVERAL = "(several)"
_RECORDED = "recorded"
# A question that is stopped for its time still ends its calls.
_ENDING_SECONDS = 60.0


class Inquiry:
    """A question, from ``with`` to the end of its block; it has a place among the others then.

    ``control`` stops it. What it takes of a model is charged to its caller's key however it ends.
    Raises a Problem, OverLimitError or UnknownCollectionError where it may not be asked.
    """

    def __init__(
        self, request: Request, question: str, *collections: str | None, address: str
    ) -> None:
        self._request = request
        self.server = server_of(request)
        self.caller = caller_of(request)
        self.holders = [holder_of(request, collection) for collection in collections]
        self.holder = self.holders[0]
        self.control = Control()
        self._question = question
        self._address = address
        self._spending = Spending()
        self._lock = threading.Lock()
        self._place = contextlib.ExitStack()
        self._reservation = ""
        self._began = time.perf_counter()
        self._is_finished = False

    def __enter__(self) -> Self:
        limits = self.server.limits
        with contextlib.ExitStack() as stack:
            stack.enter_context(limits.place(self.caller.key_id))
            self._reservation = self.server.accounts.reserve(
                self.caller.key,
                limits.seconds + _ENDING_SECONDS,
                asks_model=any(asks_model(holder.settings) for holder in self.holders),
            )
            self._place = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._place.close()
        self.fail(error)

    def begin(self) -> None:
        """Record a question whose answer is shown while it is made. Raises AuditError."""
        self._record("begun")

    def finish(self, result: object, method: str | None = None) -> None:
        """Charge, record and count what was found, before it is shown.

        ``method`` is what to call the method where the result does not say. Raises StorageError
        where it cannot be recorded: then it must not be shown.
        """
        self._finish("answered", result)
        seconds = time.perf_counter() - self._began
        method = method or str(getattr(result, "method", "other"))
        collection = self.holder.name if len(self.holders) == 1 else _SEVERAL
        self.server.metrics.answered(collection, method, seconds, self._spending)

    def fail(self, error: BaseException | None) -> None:
        """Charge and record a question without an answer; ``error`` None: its caller went away.

        One that is finished stays as it is.
        """
        if self._is_finished:
            return
        try:
            self._finish(_outcome(error))
        except GraphRAGError as failure:
            log.error("%s", failure)

    @contextlib.contextmanager
    def spending(self) -> Iterator[None]:
        """Count the calls of models that are made within, by any task or thread of it."""
        with hearing(self._count, role="caller"):
            yield

    def _count(self, call: Call) -> None:
        with self._lock:
            if not self._is_finished:
                self._spending.add(call.stage, call)
                return
        # A thread that nobody waits for any more has ended its call.
        late = Spending()
        late.add(call.stage, call)
        try:
            self.server.accounts.settle(self.caller.key, "", late)
        except GraphRAGError as failure:
            log.error("%s", failure)

    def _finish(self, outcome: str, result: object = None) -> None:
        with self._lock:
            self._is_finished = True
        try:
            self.server.accounts.settle(self.caller.key, self._reservation, self._spending)
        finally:
            self._record(outcome, result, self._spending)

    def _record(
        self, outcome: str, result: object = None, spending: Spending | None = None
    ) -> None:
        entry: dict[str, Any] = {
            "address": self._address,
            "collection": ", ".join(holder.name for holder in self.holders),
            "outcome": outcome,
            "release": getattr(result, "release", None),
            "method": getattr(result, "method", None),
            "chunks": _chunks_of(result),
        }
        if spending is not None:
            entry |= {
                "prompt_tokens": spending.prompt_tokens,
                "completion_tokens": spending.completion_tokens,
                "cost": spending.cost,
                "ms": round((time.perf_counter() - self._began) * 1000),
            }
        _write(self._request, entry, self._question)


def asks_model(settings: Settings) -> bool:
    """Return whether a question asks a model: to write, to embed or to rank."""
    query, embedder = settings.query, settings.embeddings.embedder
    return "llm" in (query.answers, query.reranker, embedder)


def record_reading(request: Request, collection: str, question: str | None = None) -> None:
    """Record that something of a collection was looked up, before it is shown. Raises AuditError.

    What was looked for is not recorded, only which item was opened; a ``question``, such as a
    statement of SQL, is recorded as all questions are.
    """
    _record_item(request, collection, "read", request.path_params, question)


def record_failure(
    request: Request,
    error: BaseException | None,
    collection: str | None = None,
    question: str | None = None,
) -> None:
    """Record that something was asked for and not given; ``error`` None: its caller went away.

    Nothing is added where the request has a line already.
    """
    if _RECORDED in request.scope.get("state", {}):
        return
    name = collection or server_of(request).collections.default
    try:
        _record_item(request, name, _outcome(error), request.path_params, question)
    except GraphRAGError as failure:
        log.error("%s", failure)


def record_writing(request: Request, collection: str, item: Mapping[str, Any]) -> None:
    """Record that something was brought to a collection, or said of it. Raises AuditError."""
    _record_item(request, collection, "written", item)


def _record_item(
    request: Request,
    collection: str,
    outcome: str,
    item: Mapping[str, Any],
    question: str | None = None,
) -> None:
    entry = {
        "address": request.scope["route"].path,
        "collection": collection,
        "outcome": outcome,
        "item": item,
    }
    _write(request, entry, question)


def _write(request: Request, entry: Mapping[str, Any], question: str | None = None) -> None:
    audit, caller = server_of(request).audit, caller_of(request)
    if audit is not None and caller.key_id:
        who = {"key": caller.key_id, "caller": caller.name}
        audit.write({**who, **entry}, question=question)
        request.scope.setdefault("state", {})[_RECORDED] = True


def _outcome(error: BaseException | None) -> str:
    match error:
        case HttpProblem():
            return "gone" if error.detail == GONE else str(error.status)
        case None | asyncio.CancelledError() | GeneratorExit():
            return "gone"
    return type(error).__name__


def _chunks_of(result: object) -> list[str]:
    """Return the ids of the chunks that a result shows, each once."""
    results: Sequence[object] = result if isinstance(result, list | tuple) else [result]
    shown: dict[str, None] = {}
    for each in results:
        for part in (each, getattr(each, "answer", None), getattr(each, "retrieval", None)):
            citations: Sequence[Citation] = getattr(part, "citations", ())
            shown |= dict.fromkeys(citation.chunk_id for citation in citations)
    shown.pop("", None)
    return list(shown)
