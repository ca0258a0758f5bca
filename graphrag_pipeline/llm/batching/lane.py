"""Rounds of requests: those in flight go in files, and are waited for as over a connection.

A round is all that is in flight once nothing more comes. The callers know of no batch. Each batch
is noted before it is sent (:mod:`~graphrag_pipeline.llm.batching.records`); what an earlier run was
still waiting for is found by what it asked, and is not asked again.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphrag_pipeline.core import progress
from graphrag_pipeline.core.tokens import BYTES_PER_TOKEN
from graphrag_pipeline.llm.answer_purposes import made_for
from graphrag_pipeline.llm.batching.api import MOST_BYTES, MOST_REQUESTS, TOKEN_LIMIT, BatchApi
from graphrag_pipeline.llm.batching.earlier import (
    BatchUnderWay,
    EarlierBatches,
    Waiting,
    fail,
    unanswered,
)
from graphrag_pipeline.llm.batching.records import (
    SentBatch,
    SentRequest,
    content_key,
    drop_batch,
    drop_request,
    put_batch,
    put_batch_id,
    put_file_id,
)
from graphrag_pipeline.llm.cache import request_json
from graphrag_pipeline.llm.calls import CallTurn, log
from graphrag_pipeline.llm.errors import ModelError, TerminalModelError, TransientModelError
from graphrag_pipeline.llm.options import LlmOptions
from graphrag_pipeline.llm.paid_answers import PaidAnswers
from graphrag_pipeline.llm.prices import Prices
from graphrag_pipeline.llm.transport import Transport

_AT_ONCE = 20_000
_QUIET = 2.0
_QUIET_OF_RETRY = 2
_LONGEST_POLL = 60.0
_POLLS_LOST = 20


def lane_options(options: LlmOptions) -> LlmOptions:
    """Return the options of a client of the lane: batches have limits of their own."""
    return replace(options, concurrency=_AT_ONCE, requests_per_minute=None, tokens_per_minute=None)


class BatchLane:
    """Sends the requests of one client in batches, within one event loop."""

    def __init__(
        self, options: LlmOptions, transport: Transport, paid: PaidAnswers, prices: Prices
    ) -> None:
        self._options = options
        self._paid = paid
        self._api = BatchApi(options, transport)
        self._earlier = EarlierBatches(options, self._api, paid, prices)
        self._quiet = min(_QUIET, _QUIET_OF_RETRY * options.retry_seconds)
        self._gathered: list[Waiting] = []
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._rounds = 0
        self._running = 0
        self._ended = asyncio.Event()
        self._most_bytes = MOST_BYTES

    async def buy(self, turn: CallTurn, content: bytes) -> Mapping[str, Any]:
        """Return the answer to a request, once a batch has brought it. Raises a ModelError."""
        # Who only waits has called nobody yet: nothing is in the ledger if that is interrupted.
        turn.began = 0.0
        await self._earlier.look_back()
        outgoing = turn.outgoing
        asked = content_key(request_json(outgoing.body))
        about = (asked, outgoing.key, outgoing.stage, outgoing.batch, made_for())
        waiting = Waiting(content, SentRequest("", "", *about), asyncio.get_running_loop())
        sent = self._earlier.claim(waiting)
        if sent is None:
            self._gathered.append(waiting)
            self._wait_for_quiet()
        elif not sent.is_read and not sent.is_followed:
            sent.is_followed = True
            self._begin(self._collect(sent))
        answer = await waiting.answer
        turn.called_at, turn.began = time.time(), time.perf_counter()
        turn.is_timed = False
        turn.writes = [drop_request(waiting.request.id)]
        if isinstance(answer, ModelError):
            raise answer
        return answer

    async def close(self, *, is_complete: bool) -> None:
        """Let go of the batches. Those that have not ended go on."""
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._earlier.close(is_complete=is_complete)

    def _wait_for_quiet(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._quiet, self._send_round)

    def _send_round(self) -> None:
        """Send all that waits: nothing has come for a while, so the rest waits for its answers."""
        gathered, self._gathered = self._gathered, []
        groups = list(self._files([each for each in gathered if not each.answer.done()]))
        self._rounds += bool(groups)
        for number, group in enumerate(groups, 1):
            self._begin(self._carry(group, f"batch {number} of round {self._rounds}"))

    def _files(self, waiting: Sequence[Waiting]) -> Iterator[list[Waiting]]:
        """Yield the requests of one file after the other, each within the limits of one."""
        group, n_bytes = list[Waiting](), 0
        for each in waiting:
            size = len(_line(uuid.uuid4().hex + "-50000", each.content))
            if group and (len(group) >= MOST_REQUESTS or n_bytes + size > self._most_bytes):
                yield group
                group, n_bytes = [], 0
            group.append(each)
            n_bytes += size
        if group:
            yield group

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, group: list[Waiting], name: str) -> None:
        """Bring each of a group of requests its answer, or the error of the batch."""
        try:
            while group:
                sent = await self._send(group)
                await self._follow(sent, name)
                if sent.remote.status != "failed":
                    await self._deliver(sent)
                    return
                group = await self._after_refusal(sent, group, name)
        except Exception as error:
            fail(group, error)

    async def _collect(self, sent: BatchUnderWay) -> None:
        """Bring those who wait for an earlier run's batch their answers."""
        try:
            number = len(sent.waiting) + len(sent.unclaimed)
            await self._follow(sent, f"batch of {number:,} sent before")
            await self._deliver(sent)
        except Exception as error:
            fail(sent.waiting.values(), error)

    async def _send(self, group: Sequence[Waiting]) -> BatchUnderWay:
        """Send requests as a batch, noted before and after each step."""
        token, now = uuid.uuid4().hex, time.time()
        for number, each in enumerate(group):
            each.request = each.request._replace(id=f"{token}-{number}", token=token)
        content = b"".join(_line(each.request.id, each.content) for each in group)
        batch = SentBatch(token, self._options.model, now, None, None)
        sent = self._earlier.add(token, {each.request.id: each for each in group})
        write = self._paid.own.write
        await write(put_batch(batch, self._options.endpoint, [each.request for each in group]))
        try:
            sent.remote = replace(sent.remote, files=(await self._api.upload(token, content),))
            await write([put_file_id(token, sent.remote.files[0])])
            sent.remote = await self._api.create(sent.remote.files[0], token, now)
        except TransientModelError as error:
            raise TerminalModelError(f"{error} (no batch could be sent)", "unreachable") from None
        except TerminalModelError as error:
            await write(drop_batch(token))
            raise self._without_batches(error) from None
        await write([put_batch_id(token, sent.remote.id)])
        log.info("%s: %d requests sent", sent.remote.id, len(group))
        return sent

    def _without_batches(self, error: TerminalModelError) -> TerminalModelError:
        if error.kind != "model":
            return error
        advice = f'{self._options.endpoint} takes no batches (404): set llm.lane to "direct"'
        return TerminalModelError(advice, "model")

    async def _follow(self, sent: BatchUnderWay, name: str) -> None:
        """Wait until a batch has ended, and say how far it is."""
        delay, before = 4 * self._options.retry_seconds, None
        total = len(sent.waiting) + len(sent.unclaimed)
        with self._counted_as_running():
            while True:
                await self._look_at(sent)
                remote = sent.remote
                if (state := (remote.status, remote.n_ended)) != before:
                    progress.report(name, min(remote.n_ended, total), total)
                    before = state
                if remote.has_ended:
                    return
                if remote.status != "validating":
                    for each in sent.waiting.values():
                        each.content = b""
                await asyncio.sleep(delay)
                delay = min(1.5 * delay, _LONGEST_POLL)

    @contextlib.contextmanager
    def _counted_as_running(self) -> Iterator[None]:
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._ended.set()
            self._ended = asyncio.Event()

    async def _look_at(self, sent: BatchUnderWay) -> None:
        """Ask how a batch stands. A server away for minutes does not end a wait of hours."""
        for left in range(_POLLS_LOST, -1, -1):
            try:
                sent.remote = await self._api.retrieve(sent.remote.id)
                return
            except TransientModelError as error:
                if not left:
                    raise _out_of_reach(error) from None

    async def _deliver(self, sent: BatchUnderWay) -> None:
        """Give the answers of a batch that has ended to those who wait for them."""
        try:
            results = await self._api.results(sent.remote)
        except TransientModelError as error:
            raise _out_of_reach(error) from None
        for name, each in sent.waiting.items():
            if not each.answer.done():
                each.answer.set_result(results.get(name) or unanswered(sent.remote))
        sent.waiting.clear()
        await self._earlier.hold(sent, results)

    async def _after_refusal(
        self, sent: BatchUnderWay, group: list[Waiting], name: str
    ) -> list[Waiting]:
        """Return what of a refused file is to be sent again: none of it was asked."""
        await self._earlier.forget(sent)
        faults = sent.remote.faults
        if any(fault.code == TOKEN_LIMIT for fault in faults):
            limits = (fault.token_limit for fault in faults)
            return await self._make_room(next(filter(None, limits), None), group, name)
        lines = range(1, len(group) + 1)
        of_lines = {fault.line - 1: fault for fault in faults if fault.line and fault.line in lines}
        if not of_lines:
            codes = (
                ", ".join(sorted({fault.code for fault in faults} - {""})) or "it did not say why"
            )
            raise TerminalModelError(
                f"a batch was refused by {self._options.endpoint} ({codes}): set llm.lane to "
                '"direct" where the model takes no batches',
                "model",
            )
        for number, fault in of_lines.items():
            fail(group[number : number + 1], self._api.refusal(fault))
        return [each for number, each in enumerate(group) if number not in of_lines]

    async def _make_room(self, limit: int | None, group: list[Waiting], name: str) -> list[Waiting]:
        """Return what to send when the account's queue of tokens has room again.

        More than half of what the queue holds is halved: it may never fit. The rest waits until
        other batches, ours or not, have ended.
        """
        n_tokens = sum(len(each.content) for each in group) // BYTES_PER_TOKEN
        if limit:
            self._most_bytes = min(self._most_bytes, limit * BYTES_PER_TOKEN // 2)
        if len(group) > 1 and n_tokens > (limit or 0) // 2:
            middle = len(group) // 2
            self._begin(self._carry(group[middle:], f"{name}, second half"))
            return group[:middle]
        log.info("the queue of %s is full: waiting for room", self._options.endpoint)
        if self._running:
            await self._ended.wait()
        else:
            await asyncio.sleep(min(40 * self._options.retry_seconds, _LONGEST_POLL))
        return group


def _line(name: str, body: bytes) -> bytes:
    """Return a request as a line of a file; its body is JSON already."""
    head = b'{"custom_id":"%s","method":"POST","url":"/v1/chat/completions","body":'
    return head % name.encode() + body + b"}\n"


def _out_of_reach(error: ModelError) -> TerminalModelError:
    return TerminalModelError(f"{error}; the batch goes on: run again to collect it", "unreachable")
