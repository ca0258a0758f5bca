"""Batches that are sent and not accounted for: this run's, and those of runs that were stopped.

What nobody asks for again is paid all the same: it is counted and kept when the client closes.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from graphrag_pipeline.llm.answers import ChatAnswer, TokenUsage, read_answer, read_usage
from graphrag_pipeline.llm.batching.api import Answer, BatchApi, RemoteBatch
from graphrag_pipeline.llm.batching.records import (
    SentBatch,
    SentRequest,
    batches_sent,
    drop_batch,
    drop_request,
    put_batch_id,
    requests_of,
)
from graphrag_pipeline.llm.cache import CachedResponse, put_response
from graphrag_pipeline.llm.calls import log
from graphrag_pipeline.llm.database import Write
from graphrag_pipeline.llm.errors import ModelError, TerminalModelError, TransientModelError
from graphrag_pipeline.llm.ledger import Call, put_calls
from graphrag_pipeline.llm.options import LlmOptions
from graphrag_pipeline.llm.paid_answers import PaidAnswers
from graphrag_pipeline.llm.prices import Prices

_SETTLED = 10.0
_live = set[str]()


class Waiting:
    """A request, as it is sent, and the future of its answer."""

    def __init__(
        self, content: bytes, request: SentRequest, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.content = content
        self.request = request
        self.answer: asyncio.Future[Answer] = loop.create_future()


@dataclass(eq=False)
class BatchUnderWay:
    """A batch, who waits for which request of it, and what nobody has asked for yet."""

    token: str
    remote: RemoteBatch
    waiting: dict[str, Waiting] = field(default_factory=dict)
    unclaimed: dict[str, SentRequest] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    error: ModelError | None = None
    is_followed: bool = False
    is_read: bool = False


class EarlierBatches:
    """Knows of each batch that an endpoint's model was sent from this home."""

    def __init__(
        self, options: LlmOptions, api: BatchApi, paid: PaidAnswers, prices: Prices
    ) -> None:
        self._options = options
        self._api = api
        self._paid = paid
        self._prices = prices
        self._looking = asyncio.Lock()
        self._has_looked = False
        self._sent: list[BatchUnderWay] = []
        self._by_content: dict[bytes, list[tuple[BatchUnderWay, SentRequest]]] = defaultdict(list)

    def add(self, token: str, waiting: Mapping[str, Waiting]) -> BatchUnderWay:
        """Return a batch that is about to be sent."""
        sent = BatchUnderWay(
            token, RemoteBatch(id="", status="new"), dict(waiting), is_followed=True
        )
        self._sent.append(sent)
        _live.add(token)
        return sent

    async def look_back(self) -> None:
        """Find what stopped runs have sent, once."""
        async with self._looking:
            if self._has_looked:
                return
            for batch in batches_sent(self._paid.own, self._options.endpoint):
                # Another client of this process may be at work on its own.
                if batch.token not in _live and batch.model == self._options.model:
                    await self._look_at(batch)
            self._has_looked = True

    def claim(self, waiting: Waiting) -> BatchUnderWay | None:
        """Let a request have the answer of an earlier run's; return the batch, if there is one."""
        places = self._by_content.get(waiting.request.content_key)
        if not places:
            return None
        sent, request = places[-1]
        if sent.error is not None:
            raise copy.copy(sent.error)
        places.pop()
        del sent.unclaimed[request.id]
        waiting.request = request
        sent.waiting[request.id] = waiting
        if sent.is_read:
            waiting.answer.set_result(sent.answers.pop(request.id))
        return sent

    async def hold(self, sent: BatchUnderWay, answers: Mapping[str, Answer]) -> None:
        """Hold answers that nobody has asked for yet; what has none will be asked anew."""
        sent.answers = {name: answers[name] for name in sent.unclaimed.keys() & answers.keys()}
        sent.is_read = True
        missing = sent.unclaimed.keys() - answers.keys()
        for name in missing:
            request = sent.unclaimed.pop(name)
            self._by_content[request.content_key].remove((sent, request))
        await self._write(map(drop_request, missing))

    async def forget(self, sent: BatchUnderWay) -> None:
        """Forget a batch, and remove its files from the server."""
        self._sent = [each for each in self._sent if each is not sent]
        _live.discard(sent.token)
        await self._write(drop_batch(sent.token))
        for file_id in sent.remote.files:
            await self._api.delete(file_id)

    async def close(self, *, is_complete: bool) -> None:
        """Account for what nobody asked for, and forget what is accounted for."""
        try:
            if is_complete and batches_sent(self._paid.own, self._options.endpoint):
                await self.look_back()
            for sent in list(self._sent):
                if sent.remote.has_ended and is_complete:
                    await self._settle(sent)
                    if not requests_of(self._paid.own, sent.token):
                        await self.forget(sent)
                elif sent.waiting and sent.remote.id and not sent.remote.has_ended:
                    log.warning(
                        "%s goes on at %s, and is paid for: the next run collects its answers",
                        sent.remote.id, self._options.endpoint,
                    )  # fmt: skip
        except ModelError as error:
            log.warning("%s: what was sent in batches is accounted for by a later run", error)
        finally:
            _live.difference_update(sent.token for sent in self._sent)

    async def _look_at(self, batch: SentBatch) -> None:
        remote = await self._find(batch)
        if remote is None:
            files = (batch.file_id,) if batch.file_id else ()
            remote = RemoteBatch(id="", status="failed", files=files)
        sent = BatchUnderWay(batch.token, remote)
        if remote.status == "failed":
            await self.forget(sent)
            return
        if remote.status == "unknown":
            sent.error = TerminalModelError(
                f"{remote.id} is not known at {self._options.endpoint} to this key: use the key "
                'it was sent with, or set llm.lane to "direct" to pay for its answers again',
                "auth",
            )
        for request in requests_of(self._paid.own, batch.token):
            sent.unclaimed[request.id] = request
            self._by_content[request.content_key].append((sent, request))
        if remote.has_ended:
            await self.hold(sent, await self._api.results(remote))
        _live.add(batch.token)
        self._sent.append(sent)

    async def _find(self, batch: SentBatch) -> RemoteBatch | None:
        """Return the batch as the server has it; None where it was never begun."""
        if batch.batch_id is not None:
            try:
                return await self._api.retrieve(batch.batch_id)
            except TerminalModelError as error:
                if error.kind != "model":
                    raise
                return RemoteBatch(id=batch.batch_id, status="unknown")
        remote = await self._api.find(batch.token, batch.created_at)
        settles_in = batch.created_at + _SETTLED - time.time()
        if remote is None and settles_in > 0:
            # It was on its way when its run was killed, and may only be about to appear.
            await asyncio.sleep(min(settles_in, 20 * self._options.retry_seconds))
            remote = await self._api.find(batch.token, batch.created_at)
        if remote is not None:
            await self._write([put_batch_id(batch.token, remote.id)])
        return remote

    async def _settle(self, sent: BatchUnderWay) -> None:
        for name, answer in sent.answers.items():
            await self._keep(sent.unclaimed.pop(name), answer)
        sent.answers = {}

    async def _keep(self, request: SentRequest, answer: Answer) -> None:
        """Count an answer that was paid for, and keep it if it is one."""
        ledger, bought = [drop_request(request.id)], list[Write]()
        if not isinstance(answer, ModelError):
            model, usage = self._options.model, read_usage(answer) or TokenUsage(0, 0)
            cost = self._prices.cost(model, *usage)
            ledger.append(
                put_calls(
                    Call(
                        request.stage,
                        model,
                        request.batch,
                        usage.prompt,
                        usage.completion,
                        cost,
                        cached_tokens=usage.cached,
                    )
                )
            )
            if request.key is not None and (text := self._text(answer)):
                kept = CachedResponse(
                    text.text, usage.prompt, usage.completion, text.finish_reason, request.made_for
                )
                bought = [put_response(request.key, model, kept, request.stage)]
        await self._paid.keep(ledger, bought, [request.key] if bought and request.key else [])

    def _text(self, answer: Mapping[str, object]) -> ChatAnswer | None:
        try:
            return read_answer(answer, self._options.max_answer_chars)
        except ModelError:
            return None

    async def _write(self, writes: Iterable[Write]) -> None:
        await self._paid.own.write(list(writes))


def unanswered(remote: RemoteBatch) -> ModelError:
    """Return the error of a request that a batch did not come to."""
    if remote.status == "cancelled":
        return TerminalModelError(
            f"{remote.id} was cancelled: what it had answered is kept; run again to ask the rest",
            "cancelled",
        )
    return TransientModelError(f"{remote.id} ended before this was answered", "expired")


def fail(group: Iterable[Waiting], error: Exception) -> None:
    """Give an error to those who still wait."""
    for each in group:
        if not each.answer.done():
            each.answer.set_exception(copy.copy(error))
