"""OpenAI's Batch API: a file of requests goes up, a file of answers comes down within a day."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.llm.answers import mapping_of
from graphrag_pipeline.llm.errors import ModelError, TerminalModelError, TransientModelError
from graphrag_pipeline.llm.options import LlmOptions
from graphrag_pipeline.llm.transport import Transport

if TYPE_CHECKING:
    import openai

log = logging.getLogger("graphrag_pipeline.llm")

T = TypeVar("T")
Answer = Mapping[str, Any] | ModelError
"""What a request was answered with, or why it was not."""

MOST_REQUESTS = 50_000
"""The most requests in one file."""
MOST_BYTES = 200_000_000
"""The largest file."""
TOKEN_LIMIT = "token_limit_exceeded"
"""The code of a batch for which the account's queue has no room."""
_ENDED = {"completed", "failed", "expired", "cancelled"}
_MARK = "graphrag_pipeline"
_PAGE = 100
_LONGEST_DELAY = 60.0
_SLOWEST_UPLOAD = 50_000
_BEFORE = 3600
_NAME = pattern_of(r"[\w.-]{1,100}")
_LIMIT = pattern_of(r"limit:\s*([\d,]+)\s+enqueued", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Reason to refuse a file: a code, and the line that is at fault, from 1, where one is."""

    code: str
    message: str = ""
    line: int | None = None

    @property
    def token_limit(self) -> int | None:
        """The most tokens that may wait, where the server says so."""
        limit = _LIMIT.search(self.message)
        return int(limit[1].replace(",", "")) if limit else None


@dataclass(frozen=True, kw_only=True)
class RemoteBatch:
    """A batch as the server tells of it; ``token`` is what it was marked with."""

    id: str
    status: str
    created_at: int = 0
    token: str = ""
    files: tuple[str, ...] = ()
    """What it was read from, and what holds its answers and its errors."""
    results: tuple[str, ...] = ()
    n_ended: int = 0
    faults: tuple[Fault, ...] = ()

    @property
    def has_ended(self) -> bool:
        """Whether it will not change any more."""
        return self.status in _ENDED


class BatchApi:
    """The files and batches of one account. Everything raises a ModelError.

    What may pass is tried again, for as long as options say. Only :meth:`create` is paid for: after
    a lost answer it looks whether the batch is there.
    """

    def __init__(self, options: LlmOptions, transport: Transport) -> None:
        self._options = options
        self._transport = transport

    async def upload(self, token: str, content: bytes) -> str:
        """Send a file of requests and return its id."""
        file = (f"{_MARK}-{token}.jsonl", content, "application/jsonl")
        seconds = self._options.timeout_seconds + len(content) / _SLOWEST_UPLOAD
        uploaded = await self._ask(
            lambda client: client.files.create(file=file, purpose="batch"), seconds=seconds
        )
        return uploaded.id

    async def create(self, file_id: str, token: str, since: float) -> RemoteBatch:
        """Begin a batch, or return the one that was begun since, if its answer was lost."""
        failures = 0
        while True:
            try:
                return await self._create(file_id, token)
            except TransientModelError as error:
                failures = await self._pause_after(error, failures)
            if begun := await self.find(token, since):
                return begun

    async def _create(self, file_id: str, token: str) -> RemoteBatch:
        body = {
            "input_file_id": file_id,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {_MARK: token},
        }
        return _read(await self._once(lambda c: c.post("/batches", body=body, cast_to=object)))

    async def retrieve(self, batch_id: str) -> RemoteBatch:
        """Return how a batch stands."""
        path = f"/batches/{quote(batch_id, safe='')}"
        return _read(await self._ask(lambda client: client.get(path, cast_to=object)))

    async def find(self, token: str, since: float) -> RemoteBatch | None:
        """Return the batch that bears a mark, if it was begun since then."""
        params: dict[str, object] = {"limit": _PAGE}
        while True:
            page = mapping_of(await self._ask(_listing(dict(params))))
            batches = [_read(batch) for batch in page.get("data") or ()]
            for batch in batches:
                if batch.token == token:
                    return batch
            # The newest come first; clocks may differ.
            is_last = not batches or not page.get("has_more")
            if is_last or batches[-1].created_at < since - _BEFORE:
                return None
            params["after"] = batches[-1].id

    async def results(self, remote: RemoteBatch) -> dict[str, Answer]:
        """Return what a batch that has ended gave for each request, by its id.

        A request that it has not come to is not among them.
        """
        results: dict[str, Answer] = {}
        for file_id in remote.results:
            try:
                content = await self._ask(lambda client, name=file_id: _content(client, name))
            except TerminalModelError as error:
                if error.kind != "model":
                    raise
                log.warning("answers of %s are not there any more: asking again", remote.id)
                continue
            for line in filter(None, map(_json, content.split(b"\n"))):
                if (answer := self._answer(line)) is not None:
                    results[str(line.get("custom_id"))] = answer
        return results

    def _answer(self, line: Mapping[str, Any]) -> Answer | None:
        """Return the answer that a line holds, or the error; None where nothing was asked."""
        response, fault = mapping_of(line.get("response")), mapping_of(line.get("error"))
        body, status = mapping_of(response.get("body")), response.get("status_code")
        is_answer = isinstance(status, int) and 200 <= status < 300
        if is_answer and not fault and body and not body.get("error"):
            return body
        if str(fault.get("code")).startswith("batch_"):
            return None
        said = mapping_of(body.get("error")) or fault
        code = status if isinstance(status, int) and not is_answer else 500
        return self._transport.explain(code, said, self._options.model)

    def refusal(self, fault: Fault) -> ModelError:
        """Return the error of a request for which a whole file was refused."""
        said = {"code": fault.code, "message": fault.message}
        return self._transport.explain(400, said, self._options.model)

    async def delete(self, file_id: str) -> None:
        """Remove a file; it may be gone already."""
        try:
            await self._once(lambda client: client.files.delete(file_id))
        except (TransientModelError, TerminalModelError):
            # It holds what documents say, so it goes if it can; after 30 days the server drops it.
            return

    async def _ask(
        self, call: Callable[[openai.AsyncOpenAI], Awaitable[T]], *, seconds: float | None = None
    ) -> T:
        failures = 0
        while True:
            try:
                return await self._once(call, seconds=seconds)
            except TransientModelError as error:
                failures = await self._pause_after(error, failures)

    async def _once(
        self, call: Callable[[openai.AsyncOpenAI], Awaitable[T]], *, seconds: float | None = None
    ) -> T:
        limit = seconds or self._options.timeout_seconds
        return await self._transport.call(call, self._options.model, limit)

    async def _pause_after(self, error: TransientModelError, failures: int) -> int:
        """Wait before the next try; raise the error if there were enough. Returns the failures."""
        if failures >= self._options.max_retries:
            raise error
        backoff = min(self._options.retry_seconds * 2**failures, _LONGEST_DELAY)
        await asyncio.sleep(max(error.retry_after or 0.0, backoff))
        return failures + 1


async def _content(client: openai.AsyncOpenAI, file_id: str) -> bytes:
    return (await client.files.content(file_id)).content


def _listing(params: Mapping[str, object]) -> Callable[[openai.AsyncOpenAI], Awaitable[object]]:
    return lambda client: client.get("/batches", options={"params": params}, cast_to=object)


def _json(line: bytes) -> Mapping[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _read(answer: object) -> RemoteBatch:
    batch = mapping_of(answer)
    if not _NAME.fullmatch(str(batch.get("id"))):
        raise TransientModelError("the server sent what is no batch: check llm.base_url", "body")
    counts, faults = mapping_of(batch.get("request_counts")), mapping_of(batch.get("errors"))
    results = [batch.get("output_file_id"), batch.get("error_file_id")]
    files = [batch.get("input_file_id"), *results]
    return RemoteBatch(
        id=str(batch["id"]),
        status=str(batch.get("status")),
        created_at=_number(batch.get("created_at")),
        token=str(mapping_of(batch.get("metadata")).get(_MARK, "")),
        files=tuple(map(str, filter(None, files))),
        results=tuple(map(str, filter(None, results))),
        n_ended=_number(counts.get("completed")) + _number(counts.get("failed")),
        faults=tuple(map(_fault, faults.get("data") or ())),
    )


def _fault(error: object) -> Fault:
    fields = mapping_of(error)
    line = fields.get("line")
    return Fault(
        code=str(fields.get("code") or "") if _NAME.fullmatch(str(fields.get("code"))) else "",
        message=str(fields.get("message") or ""),
        line=line if isinstance(line, int) else None,
    )


def _number(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0
