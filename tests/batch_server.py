"""The strict server with files and batches, as OpenAI's guide and reference say of them.

``/v1/files`` takes JSON lines of the purpose ``batch`` up to 200 MB, ``/v1/batches`` runs them: a
file is validated first, and one fault refuses all of it; answers come in any order, errors in a
file of their own, and neither file is there where it would be empty. What belongs to another key is
not found. Time is what a test lets pass: a batch goes one step further each time it is asked after.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from model_server import METHOD, Fault
from strict_server import StrictServer

from graphrag_pipeline.core.tokens import count_tokens, encoding_for

_ENDPOINTS = ("/v1/responses", "/v1/chat/completions", "/v1/embeddings", "/v1/completions")
_MOST_REQUESTS = 50_000
_MOST_BYTES = 200_000_000
_ENDED = ("completed", "failed", "expired", "cancelled")
_EXPIRED = "This request could not be executed before the completion window expired."
_CANCELLED = "This request was cancelled."
_FULL = (
    "Enqueued token limit reached for {model} in organization org-loopback. Limit: {limit:,} "
    "enqueued tokens. Please try again once some in_progress batches have been completed."
)


@dataclass
class StoredFile:
    id: str
    owner: str
    name: str
    purpose: str
    content: bytes

    def shown(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "file",
            "bytes": len(self.content),
            "created_at": 1_700_000_000,
            "filename": self.name,
            "purpose": self.purpose,
            "status": "processed",
            "expires_at": None,
        }


@dataclass
class RunBatch:
    """A batch; ``steps`` are the states that are still to come."""

    id: str
    owner: str
    made_of: dict[str, Any]
    number: int
    status: str = "validating"
    steps: Iterator[None] = field(default_factory=lambda: iter(()))
    lines: list[dict[str, Any]] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)
    errors: list[bytes] = field(default_factory=list)
    faults: list[dict[str, Any]] = field(default_factory=list)
    output: str | None = None
    error_file: str | None = None
    tokens: int = 0

    def shown(self) -> dict[str, Any]:
        counts = {
            "total": len(self.lines),
            "completed": len(self.answers),
            "failed": len(self.errors),
        }
        return {
            "id": self.id,
            "object": "batch",
            **self.made_of,
            "status": self.status,
            "created_at": 1_700_000_000 + self.number,
            "errors": {"object": "list", "data": self.faults} if self.faults else None,
            "output_file_id": self.output,
            "error_file_id": self.error_file,
            "request_counts": counts,
        }


class BatchServer(StrictServer):
    """The server. What may be told it, beside what a :class:`StrictServer` is told:

    ``validations`` and ``portions`` are how often a batch is asked after until it is validated, and
    in how many portions it is answered then; ``ends`` says of the n-th batch that begins, from 0,
    how it ends where that is not well: ``("expired", 3)`` after three answers; ``queue`` is how
    many tokens may be enqueued. ``api`` may answer a call of these paths otherwise, by its method
    and path.
    """

    def __init__(
        self,
        *given: Any,
        validations: int = 1,
        portions: int = 2,
        ends: Callable[[int], tuple[str, int] | None] = lambda number: None,
        queue: int | None = None,
        api: Callable[[str, str], Fault | None] = lambda method, path: None,
        **named: Any,
    ) -> None:
        super().__init__(*given, **named)
        self.validations, self.portions, self.ends, self.queue = validations, portions, ends, queue
        self.api = api
        self.files: dict[str, StoredFile] = {}
        self.batches: dict[str, RunBatch] = {}
        self.calls: Counter[str] = Counter()
        self.in_batches = 0
        self.largest_upload = 0
        self._numbers = 0
        self._shuffle = random.Random(7)

    async def _answer(
        self,
        path: str,
        headers: dict[str, str],
        content: bytes,
        writer: asyncio.StreamWriter,
    ) -> bool:
        parts = path.partition("?")[0].removeprefix("/v1/").strip("/").split("/")
        if parts[0] not in ("files", "batches"):
            return await super()._answer(path, headers, content, writer)
        method, owner = headers[METHOD], headers.get("authorization", "")
        shape = "/".join(part if place != 1 else "ID" for place, part in enumerate(parts))
        self.calls[f"{method} {shape}"] += 1
        fault = self.api(method, shape)
        if fault is not None and fault.drop == "at once":
            writer.transport.abort()
            return False
        if fault is not None and fault.error is not None and not fault.drop:
            return await self.send(writer, fault.status, {"error": fault.error}, fault.headers)
        query = dict(parse_qsl(path.partition("?")[2]))
        status, answer = self._api(method, parts, query, headers, content, owner)
        if fault is not None and fault.drop:
            # It was done, and nobody is told.
            writer.transport.abort()
            return False
        return await self.send(writer, status, answer)

    @staticmethod
    async def send(
        writer: asyncio.StreamWriter,
        status: int,
        answer: Any,
        headers: Mapping[str, str] | None = None,
    ) -> bool:
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        fields = {"content-length": str(len(body)), "content-type": "application/json"}
        lines = "".join(f"{k}: {v}\r\n" for k, v in {**fields, **(headers or {})}.items())
        writer.write(f"HTTP/1.1 {status} Status\r\n{lines}\r\n".encode() + body)
        await writer.drain()
        return True

    def _api(
        self,
        method: str,
        parts: list[str],
        query: dict[str, str],
        headers: Mapping[str, str],
        content: bytes,
        owner: str,
    ) -> tuple[int, Any]:
        match (method, *parts):
            case ("POST", "files"):
                return self._upload(headers.get("content-type", ""), content, owner)
            case ("GET", "files", name, "content") if stored := self._file(name, owner):
                return 200, stored.content
            case ("GET", "files", name) if stored := self._file(name, owner):
                return 200, stored.shown()
            case ("DELETE", "files", name) if self._file(name, owner):
                del self.files[name]
                return 200, {"id": name, "object": "file", "deleted": True}
            case ("POST", "batches"):
                return self._create(json.loads(content), owner)
            case ("GET", "batches"):
                return self._list(query, owner)
            case ("GET", "batches", name) if batch := self._batch(name, owner):
                next(batch.steps, None)
                return 200, batch.shown()
            case ("POST", "batches", name, "cancel") if batch := self._batch(name, owner):
                return self.cancel(batch)
        return 404, _error("No such object", "invalid_request_error")

    def _file(self, name: str, owner: str) -> StoredFile | None:
        stored = self.files.get(name)
        return stored if stored and stored.owner == owner else None

    def _batch(self, name: str, owner: str) -> RunBatch | None:
        batch = self.batches.get(name)
        return batch if batch and batch.owner == owner else None

    def _upload(self, kind: str, content: bytes, owner: str) -> tuple[int, Any]:
        boundary = re.search(r'boundary="?([^";]+)', kind)
        if boundary is None:
            return 400, _error("The file is missing", "invalid_request_error")
        purpose, name, data = "", "", b""
        for part in content.split(b"--" + boundary[1].encode())[1:-1]:
            head, _, value = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
            value = value.removesuffix(b"\r\n")
            if b'name="purpose"' in head:
                purpose = value.decode()
            elif name_of := re.search(rb'filename="([^"]*)"', head):
                name, data = name_of[1].decode(), value
        if purpose != "batch":
            return 400, _error(f"'{purpose}' is not one of the purposes", "invalid_request_error")
        if not name.endswith(".jsonl"):
            return 400, _error("Invalid file format for Batch API. Must be .jsonl", None)
        if len(data) > _MOST_BYTES:
            return 413, _error("The file is too large", None)
        self.largest_upload = max(self.largest_upload, len(data))
        return 200, self._store(owner, name, "batch", data).shown()

    def _store(self, owner: str, name: str, purpose: str, content: bytes) -> StoredFile:
        self._numbers += 1
        stored = StoredFile(f"file-{self._numbers}", owner, name, purpose, content)
        self.files[stored.id] = stored
        return stored

    def _create(self, asked: dict[str, Any], owner: str) -> tuple[int, Any]:
        allowed = {"input_file_id", "endpoint", "completion_window", "metadata"}
        for name in asked.keys() - allowed:
            return 400, _error(f"Unknown parameter: '{name}'", "unknown_parameter")
        metadata = asked.get("metadata") or {}
        too_long = any(len(key) > 64 or len(value) > 512 for key, value in metadata.items())
        if len(metadata) > 16 or too_long:
            return 400, _error("Invalid 'metadata'", "invalid_request_error")
        if asked.get("endpoint") not in _ENDPOINTS or asked.get("completion_window") != "24h":
            return 400, _error("Invalid value", "invalid_value")
        self._numbers += 1
        batch = RunBatch(f"batch_{self._numbers}", owner, asked, len(self.batches))
        batch.steps = self._steps_of(batch)
        self.batches[batch.id] = batch
        return 200, batch.shown()

    def _list(self, query: dict[str, str], owner: str) -> tuple[int, Any]:
        limit = int(query.get("limit", 20))
        if not 1 <= limit <= 100:
            return 400, _error("Invalid 'limit'", "invalid_request_error")
        mine = [each for each in reversed(self.batches.values()) if each.owner == owner]
        if after := query.get("after"):
            places = [number for number, each in enumerate(mine) if each.id == after]
            if not places:
                return 404, _error("No such batch", "invalid_request_error")
            mine = mine[places[0] + 1 :]
        page = [each.shown() for each in mine[:limit]]
        ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {}
        return 200, {"object": "list", "data": page, "has_more": len(mine) > limit, **ends}

    def cancel(self, batch: RunBatch) -> tuple[int, Any]:
        """Cancel a batch, as its owner does in the dashboard."""
        if batch.status not in ("validating", "in_progress"):
            return 409, _error(f"Cannot cancel a batch that is {batch.status}", None)
        batch.status = "cancelling"
        rest = batch.lines[len(batch.answers) + len(batch.errors) :]
        batch.steps = self._end(batch, "cancelled", rest)
        return 200, batch.shown()

    def _steps_of(self, batch: RunBatch) -> Iterator[None]:
        for _ in range(self.validations):
            yield
        stored = self._file(batch.made_of["input_file_id"], batch.owner)
        lines, batch.faults = self._validated(batch, stored)
        if batch.faults:
            batch.status = "failed"
            return
        batch.lines, batch.status = lines, "in_progress"
        yield
        number = [b for b in self.batches.values() if b.lines].index(batch)
        status, most = self.ends(number) or ("completed", len(lines))
        order = self._shuffle.sample(range(len(lines)), len(lines))
        batch.lines = [lines[place] for place in order]
        portion = -(-len(lines) // self.portions)
        for start in range(0, most, portion):
            for line in batch.lines[start : min(start + portion, most)]:
                self._execute(batch, line)
            yield
        yield from self._end(batch, status, batch.lines[most:])

    def _end(self, batch: RunBatch, status: str, rest: list[dict[str, Any]]) -> Iterator[None]:
        if status == "completed":
            batch.status = "finalizing"
        yield
        code, message = f"batch_{status}", _EXPIRED if status == "expired" else _CANCELLED
        unasked = [
            {"id": "batch_req_0", "custom_id": line["custom_id"], "response": None,
             "error": {"code": code, "message": message}}
            for line in rest
        ]  # fmt: skip
        errors = [*batch.errors, *(json.dumps(line).encode() for line in unasked)]
        self._shuffle.shuffle(batch.answers)
        for place, lines in (("output", batch.answers), ("error_file", errors)):
            if lines:
                content = b"\n".join(lines) + b"\n"
                stored = self._store(batch.owner, f"{place}.jsonl", "batch_output", content)
                setattr(batch, place, stored.id)
        batch.status = status

    def _validated(
        self, batch: RunBatch, stored: StoredFile | None
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        if stored is None:
            return [], [_fault("invalid_file", "The input file could not be found")]
        rows = stored.content.split(b"\n")[:-1] if stored.content.endswith(b"\n") else []
        if not rows:
            return [], [_fault("empty_file", "The batch file is empty")]
        if len(rows) > _MOST_REQUESTS:
            return [], [_fault("too_many_tasks", "The batch has too many tasks")]
        lines, faults = list[dict[str, Any]](), list[dict[str, Any]]()
        for number, row in enumerate(rows, 1):
            try:
                lines.append(json.loads(row))
            except ValueError:
                faults.append(_fault("invalid_json_line", "Not parseable as JSON", number))
                continue
            if code := self._fault_of(lines, batch):
                faults.append(_fault(code, "Invalid line", number))
        if faults:
            return [], faults
        model = lines[0]["body"]["model"]
        batch.tokens = sum(map(_prompt_tokens, lines))
        waiting = sum(b.tokens for b in self.batches.values() if b.status not in _ENDED)
        if self.queue is not None and waiting > self.queue:
            batch.tokens = 0
            return [], [_fault("token_limit_exceeded", _FULL.format(model=model, limit=self.queue))]
        return lines, []

    def _fault_of(self, lines: list[dict[str, Any]], batch: RunBatch) -> str | None:
        line = lines[-1]
        if set(line) != {"custom_id", "method", "url", "body"} or line["method"] != "POST":
            return "missing_required_parameter"
        if len(line["custom_id"]) > 64 or not line["custom_id"]:
            return "invalid_custom_id"
        if any(line["custom_id"] == other["custom_id"] for other in lines[:-1]):
            return "duplicate_custom_id"
        if line["url"] != batch.made_of["endpoint"]:
            return "mismatched_url"
        if line["body"].get("model") != lines[0]["body"].get("model"):
            return "mismatched_model"
        return "invalid_request" if line["body"].get("stream") else None

    def _execute(self, batch: RunBatch, line: dict[str, Any]) -> None:
        body = line["body"]
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        request = self._received("chat/completions", {}, content)
        fault = self._faults(request) or self._refuse_chat(body) or Fault()
        answer: Any = {"error": fault.error}
        if fault.error is None:
            answer = self._completion(request, fault)
            self._bill(request, answer["usage"])
            self.in_batches += 1
        response = {"status_code": fault.status, "request_id": f"req_{request.number}"}
        row = {
            "id": f"batch_req_{request.number}",
            "custom_id": line["custom_id"],
            "response": {**response, "body": answer},
            "error": None,
        }
        lines = batch.answers if fault.error is None else batch.errors
        lines.append(json.dumps(row, ensure_ascii=False).encode())


def _prompt_tokens(line: dict[str, Any]) -> int:
    texts = [str(message.get("content") or "") for message in line["body"]["messages"]]
    return sum(count_tokens(texts, encoding_for(line["body"]["model"])))


def _fault(code: str, message: str, line: int | None = None) -> dict[str, Any]:
    return {"code": code, "message": message, "line": line, "param": None}


def _error(message: str, code: str | None) -> dict[str, Any]:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return {"error": error}
